"""Which ResourceClaims a pod uses, by name."""

from __future__ import annotations

from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod

_LONGEST_NAME = 200


def claims_of(pod: Pod) -> list[ObjectKey]:
    """The pod's claims that have a name already, without duplicates, and one that may be created before it is bound."""
    return [*named(pod), made_key(pod)] if pod.extended and not pod.node else named(pod)


def named(pod: Pod) -> list[ObjectKey]:
    """The claims in the pod's spec that have a name already, without duplicates."""
    if not pod.device_claims:
        return []
    return [(pod.namespace, name) for name in dict.fromkeys(each.claim for each in pod.device_claims) if name]


def made_key(pod: Pod) -> ObjectKey:
    """The key of the claim that is created for the pod's extended resources.

    No other pod has the same key, not even a later one of the same name.
    """
    name = pod.name if len(pod.name) <= _LONGEST_NAME else pod.name[:_LONGEST_NAME].rstrip(".-")
    return pod.namespace, f"{name}-extended-resources-{pod.uid[:8]}"
