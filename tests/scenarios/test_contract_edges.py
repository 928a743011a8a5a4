"""Edges of the contract rules; each docstring gives the steps."""

from __future__ import annotations

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Role
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import NodeSeen, PodGone, PodSeen, PodsReplaced, Synced
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, Refused, StatusRefused
from tests.builders import group, key, node, pod, pods
from tests.harness import Harness


@pytest.mark.without("all", why="it has no harness")
def test_an_answer_may_overtake_the_end_of_its_pod():
    """A plain pod is deleted while its binding is in flight; the 404 arrives before the watch reports the deletion."""
    plain = pod("p", group="")
    for end in (PodGone(plain.uid), PodsReplaced(())):
        machine = Machine(Policy())
        machine.handle([NodeSeen(node()), PodSeen(plain), Synced()], 1e6)
        machine.handle([BindRefused(plain.uid, "n1", Refused.GONE, "404")], 1e6 + 0.1)
        machine.handle([end], 1e6 + 0.2)

        assert machine.validate() == []
        assert machine.stats().pods == 0


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="counts what one leader does")
def test_a_pod_that_fails_while_its_binding_is_in_flight_leaves_no_binding_behind():
    """A kubelet or an eviction ends the pod before the server has responded; another pod waits for the room."""
    harness = Harness()
    harness.withhold = lambda _: True
    harness.add(node(cpu="2"), group("a", min_member=2), *pods("a", 2), pod("p", group="", created=1.0))
    harness.settle()
    assert [effect.name for effect in harness.effects if isinstance(effect, BindPod)] == ["a-0", "a-1"]
    harness.change("default/a-0", phase=PodPhase.FAILED)
    harness.settle()

    assert [effect.name for effect in harness.effects if isinstance(effect, BindPod)] == ["a-0", "a-1", "p"]


def test_a_status_refused_after_its_podgroup_went_leads_to_no_busy_loop():
    """The PodGroup is deleted while a status write is in flight; the server answers it with 404."""
    harness = Harness.settled(node(cpu="1"), group("a", min_member=2), *pods("a", 2))
    harness.delete_group("default/a")
    harness.settle()
    harness.inbox.append(StatusRefused(key("a"), stale=False))
    harness.step()
    harness.wait(10)

    assert (harness.machine.next_deadline() or float("inf")) > harness.now


@pytest.mark.without("restarts", "standbys", why="a new leader tries again at once")
def test_a_scheduled_groups_member_that_the_server_refuses_is_let_go_of_told_and_tried_again_later():
    """All members are replaced, and the server answers each binding with 403."""
    harness = Harness.settled(node(cpu="2"), group("a", min_member=2), *pods("a", 2))
    harness.add(pod("a-2"))
    harness.wait(5)
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "quota")
    before = sum(isinstance(effect, BindPod) for effect in harness.effects)
    harness.delete("default/a-0", "default/a-1")
    harness.wait(5)
    tries = sum(isinstance(effect, BindPod) for effect in harness.effects) - before
    told = harness.pod("default/a-2").condition_reason
    harness.add(pod("z", group="", cpu="2"))
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "quota") if effect.name == "a-2" else None
    )
    harness.wait(60)
    harness.refuse_bind = lambda _: None
    harness.delete("default/z")
    harness.wait(120)

    assert tries == 1
    assert told == "BindingRefused"
    assert "default/z" in [name for name, _ in harness.bound_log]
    assert harness.bound() == ["default/a-2"]


def test_max_member_does_not_keep_those_out_who_make_the_quorum():
    """The oldest member is too large; the other two fit, and maxMember allows two."""
    harness = Harness.of(node(cpu="8"), group("a", min_member=2, max_member=2))
    harness.add(pod("a-0", cpu="100", created=1.0), pod("a-1", created=2.0), pod("a-2", created=3.0))
    harness.wait(5)

    assert harness.bound() == ["default/a-1", "default/a-2"]
    assert harness.pod("default/a-0").condition_reason == "AboveMaxMember"


def test_max_member_leaves_room_for_a_role_that_is_owed():
    """Three workers are older than the leader. The quorum is the leader and two workers; maxMember allows no more."""
    harness = Harness()
    roles = (Role("leader", 1), Role("worker", 2))
    harness.add(node(cpu="8"), group("a", min_member=3, max_member=3, roles=roles))
    harness.add(*[pod(f"w-{number}", role="worker", created=1.0) for number in range(3)])
    harness.add(pod("l-0", role="leader", created=2.0))
    harness.wait(5)

    assert harness.bound() == ["default/l-0", "default/w-0", "default/w-1"]


def test_a_run_that_began_while_nobody_looked_is_bound_whole_or_not_at_all():
    """The group is scheduled; all members are replaced while the operator is down; there is room for two of three."""
    harness = Harness.waited(5, node(cpu="3"), group("a", min_member=3), *pods("a", 3))
    harness.delete("default/a-0", "default/a-1", "default/a-2")
    harness.add(pod("x", group="", node="n1", scheduler="other"))
    harness.add(*[pod(f"a-{number}", uid=f"new-{number}", created=9e6) for number in range(3)])
    harness.restart()
    harness.wait(5)

    assert harness.bound("default/a") == []
    assert harness.status("default/a").phase == "Queued"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_transaction_does_not_outlive_its_podgroup():
    """Two are bound under a PodGroup that is deleted; a new PodGroup of the same name asks for five."""
    harness = Harness.of(node(cpu="2"), group("a", min_member=2), *pods("a", 2))
    harness.step()
    harness.delete_group("default/a")
    harness.settle()
    harness.wait(5)
    harness.add(group("a", min_member=5, uid="g2"))
    harness.wait(5)

    assert harness.status("default/a").phase == "Pending"
    assert "2 of 5 members exist" in harness.condition("default/a").message
    assert harness.bound() == ["default/a-0", "default/a-1"]


def test_a_success_whose_pod_is_gone_still_counts_for_its_role_after_a_restart():
    """A role of two: one succeeds, its pod is deleted, the operator restarts."""
    harness = Harness.of(node(cpu="2"), group("a", min_member=2, roles=(Role("w", 2),)))
    harness.add(pod("a-0", role="w"), pod("a-1", role="w"))
    harness.wait(5)
    harness.run_pods()
    harness.wait(5)
    harness.change("default/a-0", phase=PodPhase.SUCCEEDED)
    harness.wait(5)
    harness.delete("default/a-0")
    harness.wait(5)
    harness.restart()
    harness.wait(10)

    assert harness.status("default/a").phase == "Running"
