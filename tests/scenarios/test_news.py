"""What is stored of a gang and what it has decided differ until its turn: nothing is lost or counted twice then."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core import upkeep
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import rollback
from gangsched.core.gang.reconcile import reconcile
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Synced
from gangsched.core.objects.pod import Owner, PodPhase
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.results import BindRefused, Refused, StatusRefused
from gangsched.core.planning import budget as units
from gangsched.core.queueing.agenda import Due
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.scenarios.test_spark import in_pool, queueing

pytestmark = pytest.mark.without("all", why="asserts what one batch of events leads to")

SET = Owner(kind="StatefulSet", api_group="apps", name="s", uid="uid-s")


def failing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Make reconciling this gang fail."""

    def reconciled(gang: Any, *args: Any, **kwargs: Any) -> Any:
        if gang.key.name == name:
            raise ZeroDivisionError(name)
        return reconcile(gang, *args, **kwargs)

    monkeypatch.setattr(upkeep, "reconcile", reconciled)


# Groups that pass to another installation


def test_a_group_that_a_limit_kept_outside_may_pass_to_another_installation():
    """Regression: it was gone when the next gang was let in, and the call failed."""
    harness = Harness(Policy(namespace_limits=NamespaceLimits(waiting_groups=1)))
    harness.add(node(cpu=2))
    for name in "abc":
        harness.settle(group(name, min_member=1), *pods(name, 1, cpu=20))
    harness.delete("default/b-0", "default/a-0")
    harness.add(pod("b-1", scheduler="green", cpu=20), replace(harness.group("default/b"), scheduler="green"))
    harness.delete_group("default/a")
    harness.wait(5)
    assert [key.name for key in harness.machine.gangs] == ["c"]
    assert harness.condition("default/c").reason == "NeverFits"


def test_the_first_of_a_lane_may_pass_to_another_installation():
    """Regression: it was gone when the lane was looked at, and the call failed."""
    harness = queueing()
    harness.wait(3, in_pool("large", 4, 1.0), in_pool("small", 1, 2.0))
    first = harness.pod("default/large-driver")
    harness.delete("default/large-driver", "default/old")
    harness.add(replace(first, uid="uid-green", name="large-green", scheduler="green"))
    harness.wait(5, replace(group("large", min_member=5), scheduler="green"))
    assert harness.bound() == ["default/small-driver"]


# Bindings


def test_a_place_that_went_with_a_pod_to_another_gang_is_not_given_up_by_the_former_one():
    """Regression: the refusal was applied by the former gang after the other one had placed the pod again."""
    harness = Harness.settled(node("n0", cpu=2), group("b", min_member=2), *pods("b", 2, priority=5))
    harness.add(node("n1", cpu=4), group("a", min_member=1))
    harness.withhold = lambda effect: effect.node == "n1"
    harness.settle(*pods("a", 1, cpu=4))
    assert harness.take_withheld()
    harness.delete("default/b-1")
    harness.inbox.append(BindRefused("uid-default/a-0", "n1", Refused.FORBIDDEN, "no"))
    harness.change("default/a-0", declaration=Declaration(group="b"), priority=5)
    sent = [effect.node for effect in harness.step() if isinstance(effect, BindPod)]
    assert (sent, harness.machine.cluster.node_of("uid-default/a-0")) == (["n1"], "n1")


@pytest.mark.parametrize("why", [Refused.UNAVAILABLE, Refused.GONE])
def test_a_place_is_given_up_if_the_refusal_comes_with_the_pods_move_to_another_gang(why):
    """Regression: the former gang had it no more, and the new one had not taken it over yet."""
    harness = Harness.of(node(cpu=4), group("a", min_member=1), group("b", min_member=2))
    harness.withhold = lambda _: True
    harness.settle(*pods("a", 1, cpu=4))
    assert harness.take_withheld()
    harness.change("default/a-0", declaration=Declaration(group="b"))
    harness.inbox.append(BindRefused("uid-default/a-0", "n1", why, "no"))
    harness.step()
    harness.withhold = lambda _: False
    harness.settle(group("c", min_member=1), *pods("c", 1, cpu=4))
    assert harness.bound() == ["default/c-0"]


@pytest.mark.faults
def test_a_place_is_given_up_if_the_refusal_comes_before_its_gang_has_started_anew(monkeypatch):
    """Regression: the state was built anew while a binding was on its way."""
    harness = Harness.of(node(cpu=4))
    harness.withhold = lambda _: True
    harness.settle(group("a", min_member=2), *pods("a", 2, cpu=2))
    assert len(harness.take_withheld()) == 2
    real, fails = Cluster.set_node, [True]

    def set_node(cluster: Cluster, found: Any) -> bool:
        if found.name == "n2" and fails and cluster.nodes:
            raise ZeroDivisionError(fails.pop())
        return real(cluster, found)

    monkeypatch.setattr(Cluster, "set_node", set_node)
    harness.add(node("n2", cpu=1))
    harness.step()
    harness.inbox += [BindRefused(f"uid-default/a-{at}", "n1", Refused.UNAVAILABLE, "no") for at in range(2)]
    harness.delete("default/a-1")
    harness.withhold = lambda _: False
    harness.settle(group("c", min_member=1), *pods("c", 1, cpu=4))
    assert harness.bound() == ["default/c-0"]


@pytest.mark.faults
def test_a_binding_of_a_pod_that_ended_unbound_is_forgotten_with_it(monkeypatch):
    """Regression: what was remembered of it made a later fault in another gang end the process."""
    harness = Harness.of(node(cpu=4))
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no", 100.0)
    harness.settle(pod("p", group="", cpu=1))
    harness.change("default/p", phase=PodPhase.FAILED)
    harness.settle()
    failing(monkeypatch, "d")
    harness.settle(group("d", min_member=1), *pods("d", 1))
    assert [type(found).__name__ for found in harness.machine.take_faults()] == ["Fault"]


# Room


def test_room_that_a_gang_gives_up_at_its_turn_is_offered_to_one_that_was_refused_before_it():
    """Regression: a gang was parked only at the end of the call, when the room had been looked through."""
    harness = Harness.of(node("n1", cpu=8), node("n0", cpu=2), group("x", min_member=2), *pods("x", 2, priority=10))
    harness.settle()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no", 1e3) if effect.name.startswith("y") else None
    )
    harness.settle(group("y", min_member=2, max_schedule_time_s=1e5), *pods("y", 2, cpu=3))
    harness.delete("default/x-1", "default/y-0")
    harness.settle(*pods("x", 1, first=2, cpu=7, priority=10))
    assert harness.bound() == ["default/x-0", "default/x-2"]


# Starting from a record


def test_a_success_in_the_record_is_not_counted_again_when_its_pod_goes_before_the_gang_starts():
    """Regression: the pod went in the batch with which a new leader began, and the gang succeeded with one too few."""
    harness = Harness.settled(node(cpu=8), group("a", min_member=3), *pods("a", 3))
    harness.run_pods()
    harness.change("default/a-0", phase=PodPhase.SUCCEEDED)
    harness.wait(60)
    machine, lists = Machine(harness.policy), harness.lists()
    harness.inbox = []
    harness.delete("default/a-0")
    machine.handle([*lists, Synced(), *harness.inbox], harness.now)
    [gang] = machine.gangs.values()
    assert gang.record.succeeded == (("", 1),)


def test_a_record_is_not_written_to_a_podgroup_that_has_taken_the_place_of_its_own(monkeypatch):
    """Regression: the status was due in a call that did not reach the gang, which then recalled it as the new one's."""
    harness = Harness.of(node(cpu=80))
    for at in range(30):
        harness.add(group(f"z{at}", min_member=2), *pods(f"z{at}", 2, priority=5))
    harness.add(group("a", min_member=2, max_schedule_time_s=20.0, timeout_policy=TimeoutPolicy.FAIL))
    harness.settle(*pods("a", 2, cpu=50))
    harness.run_pods()
    harness.wait(10)
    harness.refuse_status = lambda effect: (
        StatusRefused(effect.key, stale=False) if effect.key.name == "a" and effect.status.phase != "Pending" else None
    )
    harness.wait(12)
    assert harness.gang("default/a").record.phase == "Failed"
    harness.refuse_status = lambda _: None
    harness.now = max(harness.now, harness.machine._state.agenda._first(Due.STATUS))  # noqa: SLF001 - the moment matters
    with monkeypatch.context() as patch:
        patch.setattr(units, "CALL", 7_000)
        for at in range(30):
            harness.change(f"default/z{at}-0", phase=PodPhase.SUCCEEDED)
        harness.delete_group("default/a")
        harness.add(group("a", min_member=2, uid="uid-new", created=harness.now), node("n2", cpu=100))
        harness.step()
    harness.wait(600)
    assert harness.bound("default/a") == ["default/a-0", "default/a-1"]


@pytest.mark.faults
def test_a_group_whose_rollback_fails_too_still_hears_that_its_status_was_not_written(monkeypatch):
    """Regression: results waited in its inbox for as long as it was parked."""
    harness = Harness.of(node(cpu=4))
    harness.refuse_bind = lambda effect: (
        None if effect.name == "a-0" else BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no")
    )
    harness.settle(group("a", min_member=2), *pods("a", 2, owner=SET))
    failing(monkeypatch, "a")
    monkeypatch.setattr(rollback, "go_on", lambda *_: 1 / 0)
    refusals = [True] * 4
    harness.refuse_status = lambda effect: (
        StatusRefused(effect.key, stale=True) if refusals and refusals.pop() else None
    )
    harness.change("default/a-1", labels=(("x", "y"),))
    harness.wait(30)
    assert harness.condition("default/a").reason == "InternalError"
    assert not harness.gang("default/a").inbox
