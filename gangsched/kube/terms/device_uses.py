"""The ResourceClaims that a pod uses."""

from __future__ import annotations

from sys import intern

from gangsched.core.objects.pod import DeviceUse
from gangsched.kube import wire


def uses(spec: wire.PodSpec, status: wire.PodStatus, group: str = "") -> tuple[DeviceUse, ...]:
    """The ResourceClaims of the pod, which names this PodGroup of Kubernetes.

    Claims from templates are left out if the pod's status says that it needs none.
    """
    statuses = {entry.name: entry for entry in status.resource_claim_statuses or ()}
    device_uses = []
    for pod_claim in spec.resource_claims or ():
        if pod_claim.resource_claim_name is not None:
            device_uses.append(DeviceUse(pod_claim.name, pod_claim.resource_claim_name, group=group))
        elif pod_claim.name not in statuses or statuses[pod_claim.name].resource_claim_name:
            claim = statuses[pod_claim.name].resource_claim_name or "" if pod_claim.name in statuses else ""
            device_uses.append(
                DeviceUse(pod_claim.name, claim, intern(pod_claim.resource_claim_template_name or ""), group)
            )
    return tuple(device_uses)
