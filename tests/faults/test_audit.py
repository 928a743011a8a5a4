"""The audit of the settled lists finds each violation. Every soak shows that clean worlds pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.faults.audit import Lists, audit
from tests.faults.manifests import CREATED, OWNED, a_driver, a_group, a_node, a_pod, an_executor, members
from tests.faults.objects import Json, Key

TEMPLATE: Json = {"requests": {"cpu": "1"}}
ROLES: list[Json] = [{"name": "chief", "minMember": 1}, {"name": "worker", "minMember": 2, "template": TEMPLATE}]
LARGE: list[Json] = [ROLES[0], ROLES[1] | {"template": {"requests": {"cpu": "3"}}}]


def found(pods: Sequence[Json], *groups: Json, whole: bool = False, stayed: Sequence[str] = ()) -> list[str]:
    """The violations on one node of 4 CPUs; `whole`: the group was whole before."""
    return audit(Lists(nodes=[a_node()], pods=pods, groups=groups), was_whole=lambda _: whole, stayed=stayed)


def group(phase: str, count: int, *, of: int, **fields: Any) -> Json:
    return a_group("a", min_member=of, phase=phase, members=count, **fields)


def queued(count: int, *, of: int, roles: Sequence[Json] = (), **fields: Any) -> Json:
    return group("Queued", count, of=of, spec={"roles": roles} if roles else {}, **fields)


def running(count: int, *, of: int, **fields: Any) -> Json:
    return group(fields.pop("phase", "Running"), count, of=of, **({"bound": count, "minimum": of} | SCHEDULED | fields))


SCHEDULED = {"scheduledTime": CREATED}


def late(*, phase: str = "Degraded", spec: Json | None = None, **fields: Any) -> Json:
    """A group whose chief alone came in time."""
    said: Json = {"bound": 1, "minimum": 3, "reason": "MembersMissing"}
    if phase == "Degraded":
        said["degraded"] = "MembersMissing"
    return group(phase, fields.pop("members", 1), of=3, spec={"roles": ROLES} | (spec or {}), **(said | fields))


def chief(node: str = "n1") -> Json:
    return a_pod("a-0", "a", node=node, role="chief")


def worker(number: int) -> Json:
    return a_pod(f"a-{number}", "a", role="worker")


def annotated(*nodes: str, **fields: Any) -> list[Json]:
    """Members that declare their own number as the minimum, but at least two."""
    said = {"annotations": {"gangsched.io/min-member": str(max(2, len(nodes)))}}
    return members("a", *nodes, meta=OWNED | said, **fields)


QUORUM = "its quorum, {} members that wait or are to come, would fit"
LOST = {"phase": "Degraded", "degraded": "MembersMissing"}
WHOLE = Key("default", "was whole")
"""Marks a row of the table whose group was whole before."""


@pytest.mark.parametrize(
    ("pods", "seen", "told"),
    [
        pytest.param(
            members("a", "n1", ""),
            [queued(2, of=4, bound=1)],
            "has 1 of 4 bound and was never whole, and is not shown as Degraded",
            id="a part is bound",
        ),
        pytest.param(
            members("a", "n1"),
            [running(1, of=2, **LOST)],
            "has 1 of 2 bound and was never whole",
            id="it says that it was scheduled, and nobody has seen two bound",
        ),
        pytest.param(
            members("a", "n1"),
            [group("Degraded", 1, of=2, bound=1, degraded="BindingUndone")],
            "shown as Degraded for BindingUndone, which is no exception",
            id="degraded for another reason",
        ),
        pytest.param(
            [a_pod(f"a-{number}", "a", node="n1", role="w") for number in range(2)],
            [queued(2, of=2, bound=2, roles=[{"name": "chief", "minMember": 1}, {"name": "w"}])],
            "has 2 of 2 bound and was never whole",
            id="a role is missing",
        ),
        pytest.param(annotated("n1"), [], "has 1 of 2 bound and was never whole", id="annotations: a part is bound"),
        pytest.param(
            members("a", ""), [a_group("a", min_member=2)], "no status that says what it is", id="without a status"
        ),
        pytest.param(
            members("a", "n1", "n1"), [running(2, of=1, bound=1)], "has 2 bound, its status says 1", id="bound"
        ),
        pytest.param(
            members("a", "n1", "n1"), [running(3, of=1, bound=2)], "has 2 members, its status says 3", id="members"
        ),
        pytest.param(members("a", "n1"), [running(1, of=1, phase="Binding")], "is told to be Binding", id="Binding"),
        pytest.param(
            members("a", "n1"), [running(1, of=2), WHOLE], "is told to be Running with 1 members, 1 bound", id="Running"
        ),
        pytest.param(members("a", "", ""), [queued(2, of=3)], "expected Pending", id="Queued without its members"),
        pytest.param(
            members("a", "n1"),
            [running(1, of=1, reservation={"expires": CREATED, "placements": []})],
            "holds a reservation",
            id="a reservation",
        ),
        pytest.param(
            [a_pod("x", node="n1", cpu="3"), a_pod("y", node="n1", cpu="2")],
            [],
            "carries more than it has: cpu",
            id="a node too full",
        ),
        pytest.param(members("a", "", "", ""), [queued(3, of=3)], QUORUM.format("3 of 3"), id="a quorum waits"),
        pytest.param(annotated("", "", ""), [], QUORUM.format("3 of 3"), id="annotations: a quorum waits"),
        pytest.param(
            members("a", "", "", ""), [group("TimedOut", 3, of=2)], QUORUM.format("2 of 3"), id="after a time-out"
        ),
        pytest.param(
            members("a", "n1", ""),
            [running(2, of=2, bound=1, **LOST), WHOLE],
            "its waiting member a-1 would fit",
            id="a repair waits",
        ),
        pytest.param(
            members("a", "n1", ""),
            [running(2, of=1, bound=1)],
            "its waiting member a-1 would fit",
            id="a further member waits",
        ),
        pytest.param(
            members("a", "n1", "", ""),
            [running(3, of=3, bound=1, minimum=1), WHOLE],
            QUORUM.format("2 of 2"),
            id="a raised minimum waits",
        ),
        pytest.param([a_pod("alone")], [], "default/alone: this pod waits and would fit", id="a plain pod waits"),
        pytest.param([chief("")], [queued(1, of=3, roles=ROLES)], QUORUM.format("3 of 3"), id="members to come"),
        pytest.param(
            [chief("")],
            [group("Scheduled", 1, of=6, spec={"roles": ROLES})],
            "told to be Scheduled",
            id="Scheduled with members to come",
        ),
        pytest.param(
            [chief()], [late(spec={"roles": []})], "which is no exception of rule 1", id="late without a template"
        ),
        pytest.param(
            [chief(), a_pod("x", node="n1", cpu="3")],
            [queued(1, of=3, bound=1, roles=ROLES)],
            "has 1 of 3 bound and was never whole, and is not shown as Degraded",
            id="a chief alone before its time",
        ),
        pytest.param([chief(), worker(1)], [late(members=2)], "its waiting member a-1 would fit", id="one that came"),
        pytest.param(
            [chief()], [late(reservation={"placements": [], "expires": CREATED})], "a reservation", id="late, and held"
        ),
        pytest.param(
            [chief("")],
            [queued(1, of=4, roles=ROLES)],
            QUORUM.format("4 of 4"),
            id="minMember beyond the roles' minima is of the one role with a template",
        ),
        pytest.param([a_driver("a", executors=3)], [], QUORUM.format("4 of 4"), id="a driver waits"),
        pytest.param(
            [a_driver("a", executors=5, node="n1"), an_executor("a", 1, node="n1")],
            [],
            "has 2 of 6 bound and was never whole",
            id="a part of an application",
        ),
    ],
)
def test_each_violation_is_found_and_nothing_else(pods: list[Json], seen: list[Any], told: str) -> None:
    (only,) = found(pods, *(each for each in seen if each is not WHOLE), whole=WHOLE in seen)

    assert told in only


def test_a_group_that_is_to_retry_has_not_failed_though_members_did_not_come() -> None:
    partly, phase = found([chief()], late(phase="Failed", reason="GangFailed", spec={"roles": LARGE}))

    assert "is not shown as Degraded" in partly
    assert "is told to be Failed" in phase
