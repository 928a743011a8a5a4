"""Who is told next to leave for an open plan."""

from __future__ import annotations

from gangsched.core.contention.batches import next_batch
from gangsched.core.gang.plan import Plan
from tests.builders import key, node, pod
from tests.harness import Harness


def test_who_leaves_instead_of_another_that_was_told_is_told_too():
    """Regression: victims and those who were told were compared by number, and a pod that moves replaces another."""
    harness = Harness.settled(node(), pod("moved", group="", node="n1"))
    whole = {key("a"): frozenset({"uid-default/moved"})}
    plan = Plan(places=(), opened_at=0.0, expires=0.0, whole=whole, told=frozenset({"gone"}), start=0.0)
    assert next_batch(plan, harness.machine.cluster) == {"uid-default/moved"}
