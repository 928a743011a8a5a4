"""The audit of the lists at rest: clean worlds pass, and each violation is found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.audit import Lists, audit
from tests.faults.manifests import CREATED, OWNED, a_driver, a_group, a_node, a_pod, an_executor, members
from tests.faults.objects import Json, Key

BARE: Json = {}


TEMPLATE: Json = {"requests": {"cpu": "1"}}
ROLES: list[Json] = [{"name": "chief", "minMember": 1}, {"name": "worker", "minMember": 2, "template": TEMPLATE}]
LARGE: list[Json] = [ROLES[0], ROLES[1] | {"template": {"requests": {"cpu": "3"}}}]


def found(*, nodes=None, pods=(), groups=(), whole=(), stayed=()) -> list[str]:
    lists = Lists(nodes=nodes if nodes is not None else [a_node()], pods=list(pods), groups=list(groups))
    return audit(lists, was_whole=lambda key: key in {Key("default", name) for name in whole}, stayed=stayed)


def late(*, phase: str = "Degraded", spec: Json | None = None, **fields: Any) -> Json:
    """A group of which only the chief came in time."""
    said: Json = {"members": 1, "bound": 1, "phase": phase, "minimum": 3, "reason": "MembersMissing"}
    if phase == "Degraded":
        said["degraded"] = "MembersMissing"
    return a_group("a", min_member=3, spec={"roles": ROLES} | (spec or {}), **(said | fields))


def made_for_driver() -> Json:
    """The PodGroup of an application of which an executor waits."""
    roles = [{"name": "driver", "minMember": 0}, {"name": "executor", "minMember": 2, "template": TEMPLATE}]
    found = a_group("a", min_member=2, phase="Pending", members=1, spec={"roles": roles})
    found["metadata"]["labels"] = {"gangsched.io/created-by": "gangsched"}
    return found


def chief(node: str = "n1") -> Json:
    return a_pod("a-0", "a", node=node, role="chief")


def worker(number: int, node: str = "", **fields: Any) -> Json:
    return a_pod(f"a-{number}", "a", node=node, role="worker", **fields)


def running(name: str, count: int, *, min_member: int, **fields: Any) -> Json:
    given: Json = {
        "phase": "Running",
        "scheduledTime": CREATED,
        "members": count,
        "bound": count,
        "minimum": min_member,
    }
    return a_group(name, min_member=min_member, **(given | fields))


def queued(name: str, count: int, *, min_member: int, **fields: Any) -> Json:
    return a_group(name, min_member=min_member, **(Json(phase="Queued", members=count) | fields))


@pytest.mark.parametrize(
    "world",
    [
        {},
        {"pods": members("a", "n1", "n1", "n1"), "groups": [running("a", 3, min_member=3)]},
        # Complete, and too large for what is free.
        {"pods": members("a", *[""] * 5), "groups": [queued("a", 5, min_member=5)]},
        # Incomplete.
        {"pods": members("a", ""), "groups": [a_group("a", min_member=2, phase="Pending", members=1)]},
        # Two that were never whole, one that nobody would make again and one that may not be evicted.
        {
            "pods": members("a", "n1", meta=BARE),
            "groups": [a_group("a", min_member=2, phase="Degraded", members=1, bound=1, degraded="PartlyBound")],
        },
        {
            "pods": members("a", "n1"),
            "groups": [a_group("a", min_member=2, phase="Degraded", members=1, bound=1, degraded="EvictionRefused")],
        },
        # Scheduled, has lost a member, and its replacement does not exist.
        {
            "pods": members("a", "n1"),
            "groups": [running("a", 1, min_member=2, phase="Degraded", degraded="MembersMissing")],
            "whole": ["a"],
        },
        # Members that ended, are gated, terminate, or are of another scheduler are none.
        {
            "pods": [
                *members("a", "n1", "n1"),
                a_pod("a-5", "a", node="n1", phase="Failed"),
                a_pod("a-6", "a", schedulingGates=[{"name": "wait"}]),
                a_pod("a-8", "a", scheduler="another"),
                a_pod("a-7", "a", node="n1", meta={"deletionTimestamp": CREATED}),
            ],
            "groups": [running("a", 2, min_member=2)],
        },
        # A success of a scheduled group counts.
        {
            "pods": [*members("a", "n1"), a_pod("a-5", "a", node="n1", phase="Succeeded")],
            "groups": [running("a", 1, min_member=2, succeeded=1)],
            "whole": ["a"],
        },
        # Beyond maxMember.
        {"pods": members("a", "n1", ""), "groups": [running("a", 2, min_member=1, bound=1, spec={"maxMember": 1})]},
        # Failed by its clock, for good.
        {
            "pods": members("a", ""),
            "groups": [a_group("a", min_member=1, phase="Failed", members=1, spec={"timeoutPolicy": "Fail"})],
        },
        # The minimum was raised and what is missing does not fit together.
        {
            "pods": members("a", "n1", "n1", "", "", ""),
            "groups": [running("a", 5, min_member=5, bound=2, minimum=2)],
            "whole": ["a"],
        },
        # Nobody declares a group: rightly left alone.
        {"pods": members("a", "")},
        # Declared by annotations, whole.
        {"pods": members("a", "n1", "n1", meta={"annotations": {"gangsched.io/min-member": "2"}})},
        # Nobody knows what it restarts into: never filled up.
        {
            "pods": members("a", "n1", ""),
            "groups": [
                running(
                    "a",
                    2,
                    min_member=2,
                    bound=1,
                    phase="Degraded",
                    degraded="EvictionRefused",
                    spec={"onDegraded": "Restart"},
                )
            ],
        },
        {"pods": [a_pod("alone", cpu="5")]},
        # Complete with those to come, who are too large.
        {
            "pods": [chief("")],
            "groups": [a_group("a", min_member=3, phase="Queued", members=1, spec={"roles": LARGE})],
        },
        # Those to come are not enough without a chief.
        {
            "pods": [worker(1)],
            "groups": [a_group("a", min_member=3, phase="Pending", members=1, spec={"roles": ROLES})],
        },
        # They did not come in time: the chief may stay, and one that came too late is too large.
        {"pods": [chief()], "groups": [late()]},
        {"pods": [chief()], "groups": [late(phase="Failed", reason="GangFailed", spec={"timeoutPolicy": "Fail"})]},
        {"pods": [chief(), worker(1, cpu="4")], "groups": [late(members=2)]},
        # A driver whose executors are too large, and one whose executors are here.
        {"pods": [a_driver("a", executors=4)]},
        {"pods": [a_driver("a", executors=1, node="n1"), an_executor("a", 1, node="n1")], "whole": ["a"]},
        # A scheduled group is repaired member by member; a place held for one that is to come is none of the audit's.
        {
            "pods": [chief(), worker(1, "n1")],
            "groups": [
                late(scheduledTime=CREATED, members=2, bound=2, reason="Scheduled"),
            ],
            "whole": ["a"],
        },
        # The driver has ended, and with it what its group's templates say.
        {"pods": [an_executor("a", 1)], "groups": [made_for_driver()]},
        # Executors without a driver: nobody says how many are enough.
        {"pods": [an_executor("a", 1)]},
    ],
)
def test_a_world_at_rest_that_keeps_the_rules_passes(world) -> None:
    assert found(**world) == []


@pytest.mark.parametrize(
    ("world", "told"),
    [
        (
            {"pods": members("a", "n1", ""), "groups": [queued("a", 2, min_member=4, bound=1)]},
            "has 1 of 4 bound and was never whole, and is not shown as Degraded",
        ),
        # It says that it was scheduled, and nobody has seen two bound.
        (
            {
                "pods": members("a", "n1"),
                "groups": [running("a", 1, min_member=2, phase="Degraded", degraded="MembersMissing")],
            },
            "has 1 of 2 bound and was never whole",
        ),
        (
            {
                "pods": members("a", "n1"),
                "groups": [a_group("a", min_member=2, phase="Degraded", members=1, bound=1, degraded="BindingUndone")],
            },
            "shown as Degraded for BindingUndone, which is no exception",
        ),
        (
            {
                "pods": [a_pod("a-0", "a", node="n1", role="w"), a_pod("a-1", "a", node="n1", role="w")],
                "groups": [
                    a_group(
                        "a",
                        min_member=2,
                        phase="Queued",
                        members=2,
                        bound=2,
                        spec={"roles": [{"name": "chief", "minMember": 1}, {"name": "w"}]},
                    )
                ],
            },
            "has 2 of 2 bound and was never whole",
        ),
        (
            {"pods": members("a", "n1", meta=(OWNED | {"annotations": {"gangsched.io/min-member": "2"}}))},
            "has 1 of 2 bound and was never whole",
        ),
        ({"pods": members("a", ""), "groups": [a_group("a", min_member=2)]}, "no status that says what it is"),
        (
            {"pods": members("a", "n1", "n1"), "groups": [running("a", 2, min_member=1, bound=1)]},
            "has 2 bound, its status says 1",
        ),
        (
            {"pods": members("a", "n1", "n1"), "groups": [running("a", 3, min_member=1, bound=2)]},
            "has 2 members, its status says 3",
        ),
        (
            {"pods": members("a", "n1"), "groups": [running("a", 1, min_member=1, phase="Binding")]},
            "is told to be Binding",
        ),
        (
            {"pods": members("a", "n1"), "groups": [running("a", 1, min_member=2)], "whole": ["a"]},
            "is told to be Running with 1 members, 1 bound",
        ),
        (
            {"pods": members("a", "", ""), "groups": [a_group("a", min_member=3, phase="Queued", members=2)]},
            "expected Pending",
        ),
        (
            {
                "pods": members("a", "n1"),
                "groups": [running("a", 1, min_member=1, reservation={"expires": CREATED, "placements": []})],
            },
            "holds a reservation",
        ),
        ({"pods": [a_pod("x", node="n1", cpu="3"), a_pod("y", node="n1", cpu="2")]}, "carries more than it has: cpu"),
        (
            {"pods": members("a", "", "", ""), "groups": [queued("a", 3, min_member=3)]},
            "its quorum, 3 of 3 members that wait or are to come, would fit",
        ),
        (
            {"pods": members("a", *[""] * 3, meta=(OWNED | {"annotations": {"gangsched.io/min-member": "3"}}))},
            "its quorum, 3 of 3 members that wait or are to come, would fit",
        ),
        (
            {"pods": members("a", "", "", ""), "groups": [queued("a", 3, min_member=2, phase="TimedOut")]},
            "its quorum, 2 of 3 members that wait or are to come, would fit",
        ),
        (
            {
                "pods": members("a", "n1", ""),
                "groups": [
                    running("a", 2, min_member=2, bound=1, phase="Degraded", degraded="MembersMissing"),
                ],
                "whole": ["a"],
            },
            "its waiting member a-1 would fit",
        ),
        (
            {"pods": members("a", "n1", ""), "groups": [running("a", 2, min_member=1, bound=1)]},
            "its waiting member a-1 would fit",
        ),
        (
            {
                "pods": members("a", "n1", "", ""),
                "groups": [running("a", 3, min_member=3, bound=1, minimum=1)],
                "whole": ["a"],
            },
            "its quorum, 2 of 2 members that wait or are to come, would fit",
        ),
        ({"pods": [a_pod("alone")]}, "default/alone: this pod waits and would fit"),
        (
            {
                "pods": [chief("")],
                "groups": [a_group("a", min_member=3, phase="Queued", members=1, spec={"roles": ROLES})],
            },
            "its quorum, 3 of 3 members that wait or are to come, would fit",
        ),
        (
            {
                "pods": [chief("")],
                "groups": [a_group("a", min_member=6, phase="Scheduled", members=1, spec={"roles": ROLES})],
            },
            "told to be Scheduled",
        ),
        # What holds with a template holds for no other group, nor under another policy, nor once the spec asks anew.
        ({"pods": [chief()], "groups": [late(spec={"roles": []})]}, "which is no exception of rule 1"),
        (
            {
                "pods": [chief(), a_pod("x", node="n1", cpu="3")],
                "groups": [a_group("a", min_member=3, phase="Queued", members=1, bound=1, spec={"roles": ROLES})],
            },
            "has 1 of 3 bound and was never whole, and is not shown as Degraded",
        ),
        ({"pods": [chief(), worker(1)], "groups": [late(members=2)]}, "its waiting member a-1 would fit"),
        ({"pods": [chief()], "groups": [late(reservation={"placements": []} | {"expires": CREATED})]}, "a reservation"),
        # minMember beyond the roles' minima is of the one role with a template.
        (
            {
                "pods": [chief("")],
                "groups": [a_group("a", min_member=4, phase="Queued", members=1, spec={"roles": ROLES})],
            },
            "its quorum, 4 of 4 members that wait or are to come, would fit",
        ),
        ({"pods": [a_driver("a", executors=3)]}, "its quorum, 4 of 4 members that wait or are to come, would fit"),
        (
            {"pods": [a_driver("a", executors=5, node="n1"), an_executor("a", 1, node="n1")]},
            "has 2 of 6 bound and was never whole",
        ),
    ],
)
def test_each_violation_is_found_and_nothing_else(world, told: str) -> None:
    (only,) = found(**world)

    assert told in only


def test_a_group_that_would_fit_only_on_a_closed_node_is_not_stuck() -> None:
    closed = [a_node(unschedulable=True), a_node("n2", taints=[{"key": "broken", "effect": "NoExecute"}])]

    assert found(nodes=closed, pods=members("a", ""), groups=[queued("a", 1, min_member=1)]) == []


def test_a_member_of_an_unknown_role_keeps_its_group_waiting() -> None:
    world = [queued("a", 1, min_member=1, phase="Pending")]

    assert found(pods=[a_pod("a-0", "a", role="chief")], groups=world) == []
    assert len(found(pods=[a_pod("a-0", "a")], groups=world)) == 1


def test_members_that_ran_before_their_podgroup_existed_are_no_part_of_a_quorum() -> None:
    pods = members("a", "n1")
    pods[0]["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1999-01-01T00:00:00Z"}
    ]
    assert found(pods=pods, groups=[a_group("a", min_member=2, phase="Pending", members=1, bound=1)]) == []


def test_what_terminates_still_takes_its_room() -> None:
    going = a_pod("going", node="n1", cpu="4", meta={"deletionTimestamp": CREATED})

    assert found(pods=[*members("a", ""), going], groups=[queued("a", 1, min_member=1)]) == []


def test_a_group_without_a_podgroup_that_was_whole_may_have_lost_members() -> None:
    meta = OWNED | {"annotations": {"gangsched.io/min-member": "2"}}

    assert found(pods=members("a", "n1", meta=meta), whole=["a"]) == []


def test_members_whose_podgroup_was_deleted_may_stay() -> None:
    pods = [a_driver("a", executors=5, node="n1"), an_executor("a", 1, node="n1")]

    assert found(pods=pods, stayed={"uid-a-driver", "uid-a-exec-1"}) == []
    assert len(found(pods=pods, stayed={"uid-a-driver"})) == 1


def test_an_executor_above_what_its_driver_asks_for_rightly_waits() -> None:
    pods = [a_driver("a", executors=0, node="n1"), an_executor("a", 1, node="")]

    assert found(pods=pods) == []
    assert len(found(pods=[a_driver("a", executors=1, node="n1"), pods[1]], whole=["a"])) == 1


def test_only_a_group_with_a_template_has_members_to_come() -> None:
    plain = [ROLES[0], {"name": "worker", "minMember": 2}]

    assert found(pods=[chief("")], groups=[queued("a", 1, min_member=3, phase="Pending", spec={"roles": plain})]) == []


def test_a_group_that_is_to_retry_has_not_failed_though_members_did_not_come() -> None:
    partly, phase = found(pods=[chief()], groups=[late(phase="Failed", reason="GangFailed", spec={"roles": LARGE})])

    assert "is not shown as Degraded" in partly
    assert "is told to be Failed" in phase
