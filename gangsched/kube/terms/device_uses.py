"""The ResourceClaims that a pod uses."""

from __future__ import annotations

from sys import intern

from gangsched.core.objects.pod import DeviceUse
from gangsched.kube import wire


def uses(spec: wire.PodSpec, status: wire.PodStatus, group: str = "") -> tuple[DeviceUse, ...]:
    """The ResourceClaims of the pod, which names this PodGroup of Kubernetes.

    Claims from templates are left out if the pod's status says that it needs none.
    """
    made = {each.name: each for each in status.resource_claim_statuses or ()}
    found = []
    for each in spec.resource_claims or ():
        if each.resource_claim_name is not None:
            found.append(DeviceUse(each.name, each.resource_claim_name, group=group))
        elif each.name not in made or made[each.name].resource_claim_name:
            claim = made[each.name].resource_claim_name or "" if each.name in made else ""
            found.append(DeviceUse(each.name, claim, intern(each.resource_claim_template_name or ""), group))
    return tuple(found)
