"""What is known of PodDisruptionBudgets, whoever leads."""

from __future__ import annotations

from gangsched.core.objects.disruption_budget import DisruptionBudget
from tests.builders import node, pod
from tests.harness import Harness

ALL = DisruptionBudget("default", "all", (), allowed=1)
NONE = DisruptionBudget("default", "none", (), allowed=0)


def of_pod(harness: Harness) -> list[str]:
    """The budgets of the pod."""
    return [budget.name for budget in harness.machine.cluster.budgets.of(harness.pod("default/p"))]


def test_budgets_come_change_and_go():
    harness = Harness.of(node(), pod("p", group=""))
    harness.settle(ALL, NONE)
    assert of_pod(harness) == ["all", "none"]
    assert harness.machine.cluster.budgets.allowed == {"default/all": 1, "default/none": 0}
    harness.remove_budget("default/none")
    harness.settle()
    assert of_pod(harness) == ["all"]


def test_budgets_that_cannot_be_read_are_unknown_until_they_can():
    harness = Harness.of(node(), pod("p", group=""))
    harness.settle(ALL)
    harness.hide_budgets("may not be read")
    harness.settle()
    assert (harness.machine.cluster.budgets.known, of_pod(harness)) == (False, [])
    harness.show_budgets()
    harness.settle()
    assert (harness.machine.cluster.budgets.known, of_pod(harness)) == (True, ["all"])
