"""docs/sizing.md: the recommendations follow from the measurements, and the chart's values match them."""

from __future__ import annotations

import yaml

from documentation import sizing
from documentation.generate import ROOT
from documentation.manifests import CHART
from tests.documented_commands import ALL


def test_the_charts_requests_are_those_of_the_first_size() -> None:
    resources = yaml.safe_load((CHART / "values.yaml").read_text())["resources"]
    cpu, memory = sizing.requests(sizing.SIZES[0], sizing.measured(ROOT))
    assert resources["requests"] == {"cpu": cpu, "memory": memory}
    assert resources["limits"] == {"memory": "1Gi"}


def test_the_command_of_the_page_sets_what_the_largest_size_needs() -> None:
    [command] = [each.text for each in ALL if each.page == str(sizing.PAGE)]
    cpu, memory = sizing.requests(sizing.SIZES[-1], sizing.measured(ROOT))
    assert f"resources.requests.cpu={cpu} " in command
    assert command.endswith(f"resources.requests.memory={memory}")
