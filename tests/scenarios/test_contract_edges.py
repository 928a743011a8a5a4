"""Edges of the contract rules; each docstring gives the steps."""

from __future__ import annotations

import pytest

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods
from tests.harness import Harness


@pytest.mark.without("restarts", "standbys", why="a new leader tries again at once")
def test_a_scheduled_groups_member_that_the_server_refuses_is_let_go_of_told_and_tried_again_later():
    """All members are replaced, and the server answers each binding with 403."""
    harness = Harness.settled(node(cpu="2"), group("a", min_member=2), *pods("a", 2))
    harness.wait(5, pod("a-2"))
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


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_transaction_does_not_outlive_its_podgroup():
    """Two are bound under a PodGroup that is deleted; a new PodGroup of the same name asks for five."""
    harness = Harness.of(node(cpu="2"), group("a", min_member=2), *pods("a", 2))
    harness.step()
    harness.delete_group("default/a")
    harness.settle()
    harness.wait(5)
    harness.wait(5, group("a", min_member=5, uid="g2"))

    assert harness.status("default/a").phase == "Pending"
    assert "2 of 5 members exist" in harness.condition("default/a").message
    assert harness.bound() == ["default/a-0", "default/a-1"]
