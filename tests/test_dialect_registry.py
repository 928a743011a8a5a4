"""A dialect is one row in the registry and one file: everything else is derived from these."""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module

import pytest
import yaml

from documentation.dialects import with_tables
from gangsched.config.dialects import DIALECTS, NAMES
from gangsched.config.settings import Settings
from gangsched.kube import dialects
from tests.toy_dialect import run_python, tree_with_a_toy

SCRIPT = """
import json, sys
from pathlib import Path
from gangsched.config.settings import Settings, load
from gangsched.kube.dialects.dialect_table import chosen
from gangsched.whatif.world.building import READ
from documentation.generate import pages

Path("config.yaml").write_text("dialects: [toy]")
settings = load(Path("config.yaml"))
said = chosen(settings).declaration({"toy.example/band": "g"}, {"toy.example/size": "3"})
found = {
    "pages": {str(path): text for path, text in pages().items()},
    "default": Settings().dialects,
    "chosen": settings.dialects,
    "said": [said.source, said.group, said.min_member, said.keys.kind],
    "simulated": [version for version, _ in READ if "toy" in version],
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The contents of the copy with the toy dialect, by the names in the script."""
    tree = tree_with_a_toy(tmp_path_factory.mktemp("toy"))
    return json.loads(run_python(tree, "-c", SCRIPT))


@pytest.mark.slow
def test_a_new_dialect_may_be_configured_is_understood_and_is_among_those_that_are_by_default(made):
    assert made["chosen"] == ["toy"]
    assert made["default"] == [*NAMES, "toy"]
    assert made["said"] == ["toy", "g", 3, "bands.toy.example"]
    assert made["simulated"] == ["toy.example/v2", "toy.example/v1"]


@pytest.mark.slow
def test_a_new_dialect_is_in_the_charts_schema_values_and_rights(made):
    chart = {path.rpartition("/")[2]: text for path, text in made["pages"].items() if path.startswith("charts/")}
    schema = json.loads(chart["values.schema.json"])
    assert schema["properties"]["dialects"]["items"]["enum"] == [*NAMES, "toy"]
    assert yaml.safe_load(chart["values.yaml"])["dialects"] == [*(each for each in NAMES if each != "palantir"), "toy"]
    assert yaml.safe_load(chart["dialects.yaml"])["toy"] == [
        {"group": "toy.example", "resource": "bands", "verbs": ["list", "watch"]}
    ]


@pytest.mark.slow
def test_a_new_dialect_is_in_the_docs(made):
    page = made["pages"]["docs/dialects.md"]
    assert "| `toy` | Toys, for a test | | list, watch `bands.toy.example` | yes |\n\n" in page
    assert "| `toy` | label `toy.example/band` | annotation `toy.example/size` | | |\n\n" in page
    assert "| `toy` | PodGroup of `toy.example/v2`, else `toy.example/v1` |\n\n" in page
    assert page.endswith("| `toy` | PodGroup | `spec.bandSize` | yes | the minimum |\n")
    assert "native, toy` | Systems whose labels" in made["pages"]["docs/configuration.md"]
    assert "native,toy}'\n" in made["pages"]["docs/migrate/palantir.md"]


def test_each_row_has_a_file_and_each_file_a_row():
    modules = [import_module(f"{dialects.__name__}.{each.name}") for each in pkgutil.iter_modules(dialects.__path__)]
    files = {module.__name__.rpartition(".")[2] for module in modules if hasattr(module, "dialect")}
    assert files == {name.replace("-", "_") for name in NAMES}


def test_the_settings_that_a_row_names_exist():
    known = {field.alias or name for name, field in Settings.model_fields.items()}
    assert {key for row in DIALECTS.values() for key in row.settings} == {"pfnet", "spark", "fifo", "native", "volcano"}
    assert {key for row in DIALECTS.values() for key in row.settings} <= known


def test_a_page_that_has_lost_the_place_of_a_table_is_told():
    with pytest.raises(ValueError, match=r"Table of dialects, .* is found 0 times"):
        with_tables("# Groups\n")
