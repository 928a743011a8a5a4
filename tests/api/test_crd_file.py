"""The file that users apply is the CRD that `gangsched crd` prints."""

from __future__ import annotations

from pathlib import Path

from gangsched.api.custom_resource import crd_yaml

FILE = Path(__file__).resolve().parents[2] / "crds" / "gangsched.io_podgroups.yaml"


def test_the_file_in_crds_is_what_gangsched_crd_prints():
    assert FILE.read_text(encoding="utf-8") == crd_yaml()
