"""docs/sizing.md: the recommendations follow from the measurements, and the chart's values match them."""

from __future__ import annotations

import json

import pytest
import yaml

from documentation import sizing
from documentation.generate import ROOT
from documentation.manifests import CHART
from tests.documented_commands import ALL


def line(scenario: str, **figures: float) -> str:
    return json.dumps({"scenario": scenario, "runs": 1} | {name: [0, value, 9e9] for name, value in figures.items()})


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


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    lines = [
        line("stream 500 × 10 × 20", rss_mb=100, cpu_ms_per_pod=2, pods_per_s=400, gang_ms_p50=40, gang_ms_p99=90),
        line("backlog 5,000 × 100 × 20", rss_mb=200, whole_s=2.5, cpu_s=2),
        line("footprint 5,000 × 100,000", rss_mb=300, cpu_s=7, updates_cpu=0.05),
        line("backlog mixed 500 × 100 × 20 with priority and fairness", rss_mb=900),
        line("core: plan", first_ms=1),
    ]
    (tmp_path / sizing.FIGURES).write_text("\n".join(lines))
    return tmp_path


def test_requests_cover_what_was_measured_in_clusters_of_that_size_and_a_quarter_more_memory(root) -> None:
    found = sizing.measured(root)
    assert sizing.requests(sizing.Size(500, 1000, 10), found) == ("100m", "128Mi")
    assert sizing.requests(sizing.Size(5000, 100_000, 200), found) == ("500m", "384Mi")
