"""The file that users apply is the CRD that `gangsched crd` prints."""

from __future__ import annotations

from pathlib import Path

from gangsched.api.custom_resource import crd, crd_yaml

FILE = Path(__file__).resolve().parents[2] / "crds" / "gangsched.io_podgroups.yaml"


def test_the_file_in_crds_is_what_gangsched_crd_prints():
    assert FILE.read_text(encoding="utf-8") == crd_yaml()


def test_it_says_itself_that_helm_keeps_it():
    """What an earlier revision of a release had and the next one lacks, helm deletes unless the live object says so."""
    assert crd()["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
