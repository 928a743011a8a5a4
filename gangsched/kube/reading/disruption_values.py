"""Converts PodDisruptionBudgets to the values of the core, and says how they are watched."""

from __future__ import annotations

from gangsched.config.dialects import CustomResource
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import BudgetGone, BudgetSeen, BudgetsHidden, BudgetsReplaced
from gangsched.kube.client.resource import Resource, reading
from gangsched.kube.foreign.watch import Subject
from gangsched.kube.terms.pod_terms import selecting
from gangsched.kube.wire import disruption_objects as wire
from gangsched.kube.wire.shared_parts import Meta

_ALWAYS = "AlwaysAllow"
_KIND = CustomResource(group="policy", versions=("v1",), plural="poddisruptionbudgets")


def disruption_budget(budget: wire.DisruptionBudget) -> DisruptionBudget:
    """The core's value for the PodDisruptionBudget. While its controller has said nothing, it allows no eviction.

    Pods that are not ready need its permission unless AlwaysAllow says otherwise, or as many are healthy as it wants
    (https://kubernetes.io/docs/tasks/run-application/configure-pdb, unhealthy pod eviction policy).
    """
    spec = budget.spec or wire.DisruptionBudgetSpec()
    status = budget.status or wire.DisruptionBudgetStatus()
    return DisruptionBudget(
        namespace=_namespace(budget.metadata),
        name=budget.metadata.name or "",
        selector=selecting(spec.selector),
        allowed=status.disruptions_allowed,
        expected=status.expected_pods,
        disrupted=frozenset(status.disrupted_pods or ()),
        counts_unready=not (
            spec.unhealthy_pod_eviction_policy == _ALWAYS or status.current_healthy >= status.desired_healthy > 0
        ),
    )


def _namespace(meta: Meta) -> str:
    return meta.namespace or "default"


BUDGETS = Resource[DisruptionBudget](
    name=_KIND.plural,
    path=_KIND.path("v1"),
    read=reading(wire.DisruptionBudget, disruption_budget),
    form=wire.DisruptionBudget,
    seen=BudgetSeen,
    gone=lambda meta: BudgetGone(f"{_namespace(meta)}/{meta.name or ''}"),
    replaced=BudgetsReplaced,
    optional=True,
)
WATCHED_BUDGETS = Subject(
    dialect=_KIND.group,
    kind=_KIND,
    resource=lambda _: BUDGETS,
    absent=BudgetsReplaced(()),
    hidden=lambda why, **_: BudgetsHidden(why),
    without="no pod is evicted for a group of higher priority",
    remedy="install this version's chart, with its value `rbac.create` true",
)
"""PodDisruptionBudgets, which are watched only if groups may preempt; without the right nothing else waits."""
