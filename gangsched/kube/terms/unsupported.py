"""The fields of a pod's spec that gangsched does not support yet. It refuses them by name rather than bind wrongly.

`declarations/unready_claims.py` refuses volumes and devices, because that depends on their claims.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.kube import wire

MOST_TERMS = 8
"""Largest number of required terms in a pod: pod affinity, pod anti-affinity and topology spread together. Each term is
compared with all pods."""


SHARES_OF_GPUS = ("gpu-fraction", "gpu-memory")
"""KAI's annotations of a pod that asks for a part of a GPU. Its requests do not show it, so that without KAI the pod
would run without a GPU."""


def unsupported_annotations(meta: wire.Meta) -> Iterator[str]:
    """The unsupported annotations that the pod has."""
    for name in SHARES_OF_GPUS if meta.annotations else ():
        if name in (meta.annotations or {}):
            yield f"the annotation {name}"


def unsupported_fields(spec: wire.PodSpec) -> tuple[str, ...]:
    """The unsupported fields that the pod uses, with their names in a manifest, in a fixed order."""
    if (spec.affinity is None and not spec.topology_spread_constraints) or _terms(spec) <= MOST_TERMS:
        return ()
    return (f"more than {MOST_TERMS} terms in spec.affinity and spec.topologySpreadConstraints",)


def _terms(spec: wire.PodSpec) -> int:
    """The number of required terms of pod affinity, pod anti-affinity and topology spread."""
    affinity = spec.affinity or wire.Affinity()
    both = (affinity.pod_affinity, affinity.pod_anti_affinity)
    of_pods = sum(len(terms.required or ()) for terms in both if terms is not None)
    spread = spec.topology_spread_constraints or ()
    return of_pods + sum(constraint.when_unsatisfiable != "ScheduleAnyway" for constraint in spread)
