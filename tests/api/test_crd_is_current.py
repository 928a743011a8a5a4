from __future__ import annotations

from pathlib import Path

import yaml

from gangsched.api.custom_resource import crd, crd_yaml

FOLDER = Path(__file__).resolve().parents[2] / "crds"


def test_the_file_in_crds_is_what_gangsched_crd_prints():
    assert (FOLDER / "gangsched.io_podgroups.yaml").read_text(encoding="utf-8") == crd_yaml()


def test_nothing_else_lies_in_crds():
    assert [path.name for path in FOLDER.iterdir()] == ["gangsched.io_podgroups.yaml"]


def test_the_yaml_means_the_crd():
    assert yaml.safe_load(crd_yaml()) == crd()
