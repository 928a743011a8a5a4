"""The main stories that make versions plays on each version of Kubernetes, and what a version lacks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.binaries import Version

_TESTS = "tests/integration"
STORIES: dict[str, tuple[str, ...]] = {
    "race": (f"{_TESTS}/test_race.py",),
    "rollback": (f"{_TESTS}/test_rollback.py",),
    "volumes": (f"{_TESTS}/test_volumes.py",),
    "devices": (f"{_TESTS}/test_devices.py",),
    "native groups": (f"{_TESTS}/test_native.py", "tests/versions/test_served.py"),
    "chart": (f"{_TESTS}/test_helm.py",),
}
"""The files of each story."""


@dataclass(frozen=True)
class Lack:
    """Something that a version does not have: why, and the tests that it makes fail, by their names or a fixture.

    These tests must fail there: one that passes shows that this row is wrong.
    """

    why: str
    tests: tuple[str, ...] = ()
    fixture: str = ""


_GATED = "with_gates"
_DEVICES = {
    "devices for extended resources": Lack(
        "behind a feature gate before 1.36",
        (
            "test_devices_stand_for_an_extended_resource_and_the_pod_is_told_of_its_claim",
            "test_a_claim_for_an_extended_resource_is_deleted_with_the_hope_for_its_group",
        ),
    ),
    "shared counters of devices": Lack(
        "behind a feature gate before 1.36", ("test_halves_of_one_device_are_allocated_as_its_counters_allow",)
    ),
    "shares of devices": Lack(
        "behind a feature gate before 1.36", ("test_members_share_a_device_and_each_share_has_its_own_id_and_capacity",)
    ),
    "binding conditions of devices": Lack(
        "behind a feature gate before 1.36", ("test_pods_are_bound_once_their_devices_report_that_they_are_ready",)
    ),
}
LACKS: dict[Version, Mapping[str, Lack]] = {
    (1, 34): {"native groups": Lack("it has none", fixture=_GATED), **_DEVICES},
    (1, 35): {"native groups": Lack("it has only Workloads, with the groups inside", fixture=_GATED), **_DEVICES},
    (1, 36): {
        "trees of native groups": Lack(
            "CompositePodGroups came with 1.37",
            ("test_a_tree_is_bound_as_its_root_says_each_group_in_a_rack_of_one_zone",),
        ),
        "a native group's minCount that changes": Lack(
            "it cannot be changed before 1.37",
            ("test_a_min_count_that_is_lowered_while_the_gang_waits_counts_at_once",),
        ),
        "a native group's priority without a class": Lack(
            "admission writes none before 1.37",
            ("test_the_priority_that_admission_writes_without_a_class_is_not_the_groups",),
        ),
    },
    (1, 37): {},
}
"""By minor version."""
