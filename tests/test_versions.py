"""The older versions of Kubernetes, and the table of versions, without building or starting any."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from documentation import tested
from documentation.tested import Played
from testbed import versions
from tests.natives import NATIVE
from tests.versions.played import StoryError, counted
from tests.versions.stories import LACKS


@pytest.fixture
def hack(tmp_path):
    for minor in (9, 34):
        module = tmp_path / "versions" / f"v1.{minor}"
        module.mkdir(parents=True)
        (module / "go.mod").write_text(f"module m\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v1.{minor}.4\n")
        (module / "go.sum").write_text("sums\n")
    return tmp_path


def test_versions_are_listed_from_the_oldest_with_what_their_modules_pin(hack):
    assert [(each.name, each.kubernetes) for each in versions.older(hack).values()] == [
        ("v1.9", "v1.9.4"),
        ("v1.34", "v1.34.4"),
    ]


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_any_change_of_what_is_pinned_is_built_anew(hack, file):
    before = versions.older(hack)["v1.34"].folder
    with (hack / "versions" / "v1.34" / file).open("a") as pinned:
        pinned.write("// changed\n")
    assert versions.older(hack)["v1.34"].folder != before


def test_what_each_version_lacks_is_known():
    known = {(1, int(name.rpartition(".")[2])) for name in versions.older()}
    assert known < LACKS.keys()
    assert {version for version, lacks in LACKS.items() if "native groups" not in lacks} == NATIVE.keys()


def report(*cases: str) -> ET.ElementTree:
    return ET.ElementTree(ET.fromstring(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"))


def test_passed_tests_are_counted_by_file_and_lacks_by_reason():
    lacking = '<testcase file="b.py" name="y"><skipped type="pytest.xfail" message="not served"/></testcase>'
    passed, lacks = counted(report(*['<testcase file="a.py" name="x"/>'] * 2, lacking))
    assert (passed, lacks) == ({"a.py": 2}, {"not served"})


def test_a_test_that_is_skipped_counts_for_nothing():
    with pytest.raises(StoryError, match="x was skipped: no control plane"):
        counted(report('<testcase name="x"><skipped type="pytest.skip" message="no control plane"/></testcase>'))


def test_the_tables_say_what_was_played_and_what_is_lacking(tmp_path):
    (tmp_path / "docs").mkdir()
    lacks = {"devices": "not served", "shares": "not served", "counters": "behind a gate"}
    old = Played(kubernetes="v1.1.0", passed={"race": 1, "devices": 2}, lacks=lacks)
    tested.write(tmp_path, [old, Played(kubernetes="v1.2.0", passed={"race": 1, "devices": 12})])
    place = "before\n<!-- Table of versions, to be made -->\n\nafter\n"
    assert tested.with_versions(tmp_path, place).splitlines()[3:7] == [
        "| Kubernetes | plays | what it lacks |",
        "|---|---|---|",
        "| v1.1.0 | race | devices, shares: not served; counters: behind a gate |",
        "| v1.2.0 | race, devices |  |",
    ]
    assert tested.with_table(tmp_path, place).splitlines()[5:7] == [
        "| v1.1.0 | 1 test passed | not possible | devices, shares: not served; counters: behind a gate |",
        "| v1.2.0 | 1 test passed | 12 tests passed |  |",
    ]
    assert tested.notes(tmp_path) == "  v1.1.0 (lacks devices, shares, counters)\n  v1.2.0\n"
