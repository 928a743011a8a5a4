"""The fields of a pod's spec that gangsched does not support yet. It refuses them by name rather than bind wrongly.

Which volumes and devices are refused is said in `declarations/volume_claims.py` and `declarations/device_claims.py`,
because it depends on their claims.
"""

from __future__ import annotations

from gangsched.kube import wire

MOST_TERMS = 8
"""A pod may have so many required terms of affinity to pods and of topology spread: each is compared with all pods."""


def unsupported_fields(spec: wire.PodSpec) -> tuple[str, ...]:
    """The unsupported fields that the pod uses, with their names in a manifest, in a fixed order."""
    if (spec.affinity is None and not spec.topology_spread_constraints) or _terms(spec) <= MOST_TERMS:
        return ()
    return (f"more than {MOST_TERMS} terms in spec.affinity and spec.topologySpreadConstraints",)


def _terms(spec: wire.PodSpec) -> int:
    """How many required terms of affinity to other pods, and of topology spread."""
    affinity = spec.affinity or wire.Affinity()
    both = (affinity.pod_affinity, affinity.pod_anti_affinity)
    of_pods = sum(len(each.required or ()) for each in both if each is not None)
    spread = spec.topology_spread_constraints or ()
    return of_pods + sum(each.when_unsatisfiable != "ScheduleAnyway" for each in spread)
