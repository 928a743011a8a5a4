"""Defects that a review of held places, Spark applications and strict FIFO has found; each test tells the steps."""

from __future__ import annotations

from gangsched.core.model import Group, OnDegraded, Owner, Pod, Role, TimeoutPolicy
from gangsched.core.policy import Policy, TurnRules
from tests.builders import group, node, pod, pods, shape
from tests.harness import Harness

TIME_S = 120.0
SET = Owner("StatefulSet", "s", "set", "apps")
POOL = {"resource_channel": "batch"}
IN_TURN = Policy(turns=TurnRules(groups=frozenset({"batch"})))


def app(**spec: object) -> Group:
    """A driver and four workers of 2 CPU each."""
    roles = (Role("driver", 1), Role("worker", 4, template=shape(2)))
    return group("a", min_member=5, roles=roles, max_schedule_time_s=TIME_S, **spec)


def workers(count: int, *, first: int = 0) -> list[Pod]:
    return [pod(f"worker-{number}", role="worker", cpu=2, owner=SET) for number in range(first, first + count)]


def holding(owner: Owner | None = SET, **spec: object) -> Harness:
    """The app with its driver bound and all four places held."""
    harness = Harness()
    harness.add(node("n1", cpu=5), node("n2", cpu=4), app(**spec), pod("driver", role="driver", owner=owner))
    harness.settle()
    assert (harness.bound(), len(harness.gang("default/a").vacant())) == (["default/driver"], 4)
    return harness


def test_a_binding_without_an_answer_beside_held_places_leaves_the_machine_at_rest_when_the_places_would_expire():
    """Places are held, the driver's binding waits in the shell, and maxScheduleTime passes: nothing is due then."""
    harness = Harness()
    harness.withhold = lambda _: True
    harness.add(node("n1", cpu=9), app(), pod("driver", role="driver"))
    harness.wait(TIME_S + 5)
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(5)
    assert harness.bound() == ["default/driver"]
    assert harness.status("default/a").phase == "Degraded", "the places had waited long enough"


def test_who_is_bound_stays_after_the_time_is_over_under_fail_although_the_operator_restarts():
    """The places expire under timeoutPolicy Fail, the operator restarts: what failed is no quorum to be undone."""
    harness = holding(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(TIME_S + 60)
    assert harness.status("default/a").phase == "Failed"
    harness.restart()
    harness.wait(100)
    assert not harness.evicted
    assert harness.status("default/a").phase == "Failed"


def test_who_is_bound_stays_after_the_time_is_over_under_on_degraded_restart():
    """The places expire before the group was ever whole, and then something happens to it: rule 11 lets them stay."""
    harness = holding(on_degraded=OnDegraded.RESTART)
    harness.wait(TIME_S + 5)
    harness.change("default/driver", labels=(("touched", "yes"),))
    harness.wait(5)
    assert not harness.evicted
    assert harness.condition("default/a", "Degraded").reason == "MembersMissing"
    harness.add(*workers(4))
    harness.settle()
    assert harness.status("default/a").phase == "Scheduled"


def test_places_expire_although_a_member_keeps_the_group_from_being_tried():
    """Places are held, a member with an unknown role appears and stays: others get the room when the time is over."""
    harness = holding()
    harness.add(pod("odd", role="nobody"), *pods("", 20))
    harness.wait(TIME_S + 5)
    assert harness.gang("default/a").vacant() == []
    assert len(harness.bound()) == 9
    assert harness.status("default/a").phase == "Degraded"
