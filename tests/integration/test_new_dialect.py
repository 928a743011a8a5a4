"""A new dialect, one row and one file, reaches all that `make docs` derives, also the chart as helm renders it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gangsched.config.dialects import NAMES
from tests.integration.test_chart_values import Helm, configured, helm  # noqa: F401 - a fixture
from tests.integration.toy_dialect import run_python, tree_with_a_toy

SCRIPT = """
import json
from pathlib import Path
from gangsched.config.settings import Settings, load
from gangsched.kube.dialects.dialect_table import chosen
from gangsched.whatif.world.building import READ

Path("config.yaml").write_text("dialects: [toy]")
settings = load(Path("config.yaml"))
said = chosen(settings).declaration({"toy.example/band": "g"}, {"toy.example/size": "3"})
found = {
    "default": Settings().dialects,
    "chosen": settings.dialects,
    "said": [said.source, said.group, said.min_member, said.keys.kind],
    "simulated": [version for version, _ in READ if "toy" in version],
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the repository with the toy dialect, after `make docs`."""
    made = tree_with_a_toy(tmp_path_factory.mktemp("toy"))
    run_python(made, "-m", "documentation.generate")
    return made


def test_it_may_be_configured_is_understood_and_is_among_those_that_are_by_default(tree: Path) -> None:
    found = json.loads(run_python(tree, "-c", SCRIPT))
    assert found["chosen"] == ["toy"]
    assert found["default"] == [*NAMES, "toy"]
    assert found["said"] == ["toy", "g", 3, "bands.toy.example"]
    assert found["simulated"] == ["toy.example/v2", "toy.example/v1"]


def test_it_is_in_the_charts_schema_values_and_rights(tree: Path) -> None:
    chart = tree / "charts" / "gangsched"
    schema = json.loads((chart / "values.schema.json").read_text())
    assert schema["properties"]["dialects"]["items"]["enum"] == [*NAMES, "toy"]
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert values["dialects"] == [*(each for each in NAMES if each != "palantir"), "toy"]
    [rights] = chart.rglob("dialects.yaml")
    assert yaml.safe_load(rights.read_text())["toy"] == [
        {"group": "toy.example", "resource": "bands", "verbs": ["list", "watch"]}
    ]


def test_it_is_in_the_docs(tree: Path) -> None:
    page, configuration, palantir = (
        (tree / "docs" / name).read_text() for name in ("dialects.md", "configuration.md", "migrate/palantir.md")
    )
    assert "| `toy` | Toys, for a test | | list, watch `bands.toy.example` | yes |\n\n" in page
    assert "| `toy` | label `toy.example/band` | annotation `toy.example/size` | | |\n\n" in page
    assert "| `toy` | PodGroup of `toy.example/v2`, else `toy.example/v1` |\n\n" in page
    assert page.endswith("| `toy` | PodGroup | `spec.bandSize` | yes | the minimum |\n")
    assert "native, toy` | Systems whose labels" in configuration
    assert "native,toy}'\n" in palantir


def test_it_reaches_role_and_configuration_though_the_schema_that_stood_there_refuses_it(
    helm: Helm,  # noqa: F811 - a fixture
    tree: Path,
) -> None:
    """Helm validates against the schema beside the chart, so the schema must be written before helm renders."""
    assert "at '/dialects/0': value must be one of" in helm(values={"dialects": ["toy"]}).stderr
    done = helm(values={"dialects": ["toy", "kueue"]}, chart=tree / "charts" / "gangsched")
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, (tree / "manifests" / "deployment.yaml").read_text()):
        rules = [rule for each in yaml.safe_load_all(text) if each for rule in each.get("rules", [])]
        assert {"apiGroups": ["toy.example"], "resources": ["bands"], "verbs": ["list", "watch"]} in rules
        assert "toy" in configured(text)["dialects"]
    assert "kai, tenstack, native, toy], workloads: [" in (tree / "manifests" / "static-pod.yaml").read_text()
