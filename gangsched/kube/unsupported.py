"""The fields of a pod's spec that gangsched does not support yet. It refuses them by name rather than bind wrongly.

kube-scheduler implements them in the plug-in DynamicResources. Which volumes are refused is said in
`declarations/volume_claims.py`, because it depends on their claims.
"""

from __future__ import annotations

from gangsched.kube import wire


def unsupported_fields(spec: wire.PodSpec) -> tuple[str, ...]:
    """The unsupported fields that the pod uses, with their names in a manifest, in a fixed order."""
    found: list[str] = []
    if spec.resource_claims:
        found.append("spec.resourceClaims")
    return tuple(found)
