"""The ResourceClaims that a pod uses."""

from __future__ import annotations

from gangsched.core.objects.pod import DeviceUse
from gangsched.kube import wire


def uses(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[DeviceUse, ...]:
    """The pod's ResourceClaims. Claims from templates are left out if the pod's status says that it needs none."""
    made = {each.name: each for each in status.resource_claim_statuses or ()}
    found = []
    for each in spec.resource_claims or ():
        if each.resource_claim_name is not None:
            found.append(DeviceUse(each.name, each.resource_claim_name))
        elif each.name not in made:
            found.append(DeviceUse(each.name, made=True))
        elif made[each.name].resource_claim_name:
            found.append(DeviceUse(each.name, made[each.name].resource_claim_name or "", made=True))
    return tuple(found)
