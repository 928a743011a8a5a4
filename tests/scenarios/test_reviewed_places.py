"""Defects that a review of held places, Spark applications and strict FIFO has found; each test tells the steps."""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.events import BindRefused, Refused
from gangsched.core.model import Group, OnDegraded, Owner, Role, TimeoutPolicy
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


def workers(count: int, *, first: int = 0) -> list:
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
