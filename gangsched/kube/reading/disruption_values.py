"""Converts PodDisruptionBudgets to the values of the core."""

from __future__ import annotations

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.kube.terms.pod_terms import selecting
from gangsched.kube.wire import disruption_objects as wire


def disruption_budget(budget: wire.DisruptionBudget) -> DisruptionBudget:
    """The core's value for the PodDisruptionBudget. While its controller has said nothing, it allows no eviction."""
    spec = budget.spec or wire.DisruptionBudgetSpec()
    status = budget.status or wire.DisruptionBudgetStatus()
    return DisruptionBudget(
        namespace=budget.metadata.namespace or "default",
        name=budget.metadata.name or "",
        selector=selecting(spec.selector),
        allowed=status.disruptions_allowed,
        expected=status.expected_pods,
        disrupted=frozenset(status.disrupted_pods or ()),
    )
