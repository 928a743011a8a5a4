"""The older versions of Kubernetes, and the table of versions, without building or starting any."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from testbed import versions
from tests.natives import NATIVE
from tests.versions.played import StoryError, counted
from tests.versions.stories import LACKS


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
