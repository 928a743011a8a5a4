"""PodDisruptionBudgets."""

from __future__ import annotations

from msgspec import Struct

from gangsched.kube.wire.shared_parts import LabelSelector, Meta


class DisruptionBudgetSpec(Struct, gc=False, rename="camel"):
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class DisruptionBudgetStatus(Struct, gc=False, rename="camel"):
    disruptions_allowed: int = 0
    expected_pods: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    disrupted_pods: dict[str, str | None] | None = None


class DisruptionBudget(Struct, gc=False):
    metadata: Meta
    spec: DisruptionBudgetSpec | None = None
    status: DisruptionBudgetStatus | None = None
