"""What the API server adds to pods that are created: LimitRanges to their containers, RuntimeClasses to whole pods.

The rules are `SetDefaults_LimitRangeItem` in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go and the admission plug-ins
LimitRanger and RuntimeClass, at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from gangsched.kube import wire
from gangsched.kube.wire.admission_objects import LimitRange, RuntimeClass, Scheduling

CONTAINER = "Container"
"""The type of the items of a LimitRange that give containers defaults."""
Amount = TypeVar("Amount")


class ContainerDefaults(NamedTuple):
    """The requests and limits, by resource, that one LimitRange gives containers that lack them."""

    requests: Mapping[str, object]
    limits: Mapping[str, object]

    def with_item(
        self,
        *,
        default: Mapping[str, Amount],
        default_request: Mapping[str, Amount],
        most: Mapping[str, Amount],
        least: Mapping[str, Amount],
    ) -> ContainerDefaults:
        """These, and those of a further item for containers; the parameters are its fields."""
        own = {**most, **default}
        return ContainerDefaults({**self.requests, **least, **own, **default_request}, {**self.limits, **own})


NO_DEFAULTS = ContainerDefaults({}, {})


def container_defaults(limit_range: LimitRange) -> ContainerDefaults:
    """The defaults of a LimitRange."""
    found = NO_DEFAULTS
    for item in limit_range.spec.limits or () if limit_range.spec is not None else ():
        if item.type == CONTAINER:
            found = found.with_item(
                default=item.default or {},
                default_request=item.default_request or {},
                most=item.max or {},
                least=item.min or {},
            )
    return found


def filled(own: Mapping[str, Amount], several: Iterable[Mapping[str, Amount]]) -> dict[str, Amount]:
    """The requests or the limits of a container with what it lacks. The first LimitRange with a default counts."""
    result = dict(own)
    for defaults in several:
        result = {**defaults, **result}
    return result


def in_class(spec: wire.PodSpec, runtime_class: RuntimeClass) -> wire.PodSpec:
    """The spec of a pod of this RuntimeClass, with its overhead, node selector and tolerations."""
    scheduling = runtime_class.scheduling or Scheduling()
    overhead = runtime_class.overhead.pod_fixed if runtime_class.overhead is not None else None
    return replace(
        spec,
        overhead=overhead or spec.overhead,
        node_selector={**(spec.node_selector or {}), **(scheduling.node_selector or {})},
        tolerations=[*(spec.tolerations or ()), *(scheduling.tolerations or ())],
    )
