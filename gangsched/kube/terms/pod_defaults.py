"""What the API server adds to pods that are created: LimitRanges to their containers, RuntimeClasses to whole pods.

The rules are `SetDefaults_LimitRangeItem` in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go and the admission plug-ins
LimitRanger and RuntimeClass, at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from gangsched.core.objects.quantity import Exact, unrounded
from gangsched.kube import wire
from gangsched.kube.wire.admission_objects import LimitRange, Overhead, RuntimeClass, Scheduling

CONTAINER = "Container"
"""The type of the items of a LimitRange that give containers defaults."""
Amounts = Mapping[str, Any]
"""Quantities by resource, as written."""


class ContainerDefaults(NamedTuple):
    """The requests and limits that one LimitRange gives containers that lack them."""

    requests: Amounts
    limits: Amounts

    def with_item(
        self, *, default: Amounts, default_request: Amounts, most: Amounts, least: Amounts
    ) -> ContainerDefaults:
        """These, and those of a further item for containers; the parameters are its fields."""
        own = {**most, **default}
        return ContainerDefaults({**self.requests, **least, **own, **default_request}, {**self.limits, **own})


NO_DEFAULTS = ContainerDefaults({}, {})


def container_defaults(limit_range: LimitRange) -> ContainerDefaults:
    """The defaults of a LimitRange."""
    defaults = NO_DEFAULTS
    for item in limit_range.spec.limits or () if limit_range.spec is not None else ():
        if item.type == CONTAINER:
            defaults = defaults.with_item(
                default=item.default or {},
                default_request=item.default_request or {},
                most=item.max or {},
                least=item.min or {},
            )
    return defaults


def filled(own: Amounts, defaults: Iterable[Amounts]) -> dict[str, Any]:
    """The requests or the limits of a container with what it lacks.

    If several LimitRanges of a namespace have a default, the API server takes any of them. The largest counts here.
    """
    most: dict[str, Any] = {}
    for amounts in defaults:
        for name, amount in amounts.items():
            if name not in most or unrounded(name, amount) > unrounded(name, most[name]):
                most[name] = amount
    return {**most, **own}


class InClass(NamedTuple):
    """What a RuntimeClass adds to its pods."""

    overhead: Amounts
    node_selector: Mapping[str, str]
    tolerations: tuple[wire.Toleration, ...]

    @classmethod
    def of(cls, runtime_class: RuntimeClass) -> InClass:
        """What this class adds."""
        scheduling, overhead = runtime_class.scheduling or Scheduling(), runtime_class.overhead or Overhead()
        tolerations = tuple(scheduling.tolerations or ())
        return cls(overhead.pod_fixed or {}, scheduling.node_selector or {}, tolerations)

    def applied(self, spec: wire.PodSpec) -> wire.PodSpec:
        """The spec of a pod with these.

        Raises:
            ValueError: the API server would refuse the pod; a clause that says why.
        """
        own = spec.node_selector or {}
        if other := other_value(self.node_selector, own):
            raise ValueError(f"selects another value of {other} than its RuntimeClass")
        if is_other_overhead(self.overhead, spec.overhead or {}):
            raise ValueError("has another overhead than its RuntimeClass")
        return replace(
            spec,
            overhead=dict(self.overhead),
            node_selector={**own, **self.node_selector},
            tolerations=[*(spec.tolerations or ()), *self.tolerations],
        )


def other_value(selector: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """The first key of a RuntimeClass's node selector of which the pod's own selects another value; empty if none."""
    return next((key for key, value in selector.items() if own.get(key, value) != value), "")


def is_other_overhead(overhead: Amounts, own: Amounts) -> bool:
    """Whether the pod states an overhead of its own that is not the one of its RuntimeClass."""
    return bool(own) and exact(own) != exact(overhead)


def exact(amounts: Amounts) -> dict[str, Exact]:
    """The amounts by resource name.

    Raises:
        InvalidQuantity: one of them is not a quantity.
    """
    return {str(name): unrounded(str(name), amount) for name, amount in amounts.items()}
