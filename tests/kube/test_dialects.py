from __future__ import annotations

import pytest

from gangsched.core.model import Declaration
from gangsched.kube.dialects import declaration

GROUP = {"gangsched.io/pod-group": "a"}


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({}, {}, None),
        ({"gangsched.io/role": "worker"}, {"gangsched.io/min-member": "3"}, None),
        (GROUP, {}, Declaration(group="a")),
        (GROUP | {"gangsched.io/role": "worker"}, {}, Declaration(group="a", role="worker")),
        (GROUP, {"gangsched.io/min-member": "3"}, Declaration(group="a", min_member=3)),
        (GROUP, {"gangsched.io/max-schedule-time": "1m30s"}, Declaration(group="a", max_schedule_time_s=90.0)),
        (
            GROUP,
            {"gangsched.io/min-member": "2147483647", "gangsched.io/max-schedule-time": "168h"},
            Declaration(group="a", min_member=2147483647, max_schedule_time_s=604800.0),
        ),
    ],
)
def test_a_pod_says_its_group_by_label_and_its_numbers_by_annotation(
    labels: dict[str, str], annotations: dict[str, str], expected: Declaration | None
) -> None:
    assert declaration(labels, annotations) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "+1", "1.5", "three", " 3", "3 ", "2147483648", "9" * 5000, "٣"])
def test_a_minimum_that_is_no_count_becomes_an_error_and_no_number(text: str) -> None:
    found = declaration(GROUP, {"gangsched.io/min-member": text, "gangsched.io/max-schedule-time": "5m"})
    assert found is not None
    assert (found.min_member, found.max_schedule_time_s) == (None, None)
    assert found.error.startswith("The annotation gangsched.io/min-member is '")
    assert found.error.endswith("': write a whole number from 1 to 2147483647.")
    assert len(found.error) < 200


@pytest.mark.parametrize("text", ["", "0s", "5", "5 m", "1d", "169h", "m", "1s\n"])
def test_a_time_that_is_no_duration_becomes_an_error_and_no_number(text: str) -> None:
    found = declaration(GROUP, {"gangsched.io/min-member": "3", "gangsched.io/max-schedule-time": text})
    assert found is not None
    assert (found.min_member, found.max_schedule_time_s) == (None, None)
    assert found.error == (
        f"The annotation gangsched.io/max-schedule-time is {text!r}:"
        " write a duration from 1s to 168h, such as 90s, 5m or 1h30m."
    )


def test_an_empty_group_name_is_an_error() -> None:
    found = declaration({"gangsched.io/pod-group": "", "gangsched.io/role": "r"}, {})
    assert found == Declaration(
        group="", role="r", error="The label gangsched.io/pod-group is empty: give it the group's name."
    )
