"""The fields of a pod's spec that gangsched does not support yet. It refuses them by name rather than bind wrongly.

kube-scheduler implements them in the plug-ins DynamicResources and NodeDeclaredFeatures. The features that a pod can
require of its node are those of `InferForScheduling` in k8s.io/component-helpers/nodedeclaredfeatures at v0.36.3. Which
volumes are refused is said in `declarations/volume_claims.py`, because it depends on their claims.
"""

from __future__ import annotations

from gangsched.kube import wire


def unsupported_fields(spec: wire.PodSpec) -> tuple[str, ...]:
    """The unsupported fields that the pod uses, with their names in a manifest, in a fixed order."""
    found: list[str] = []
    if spec.resource_claims:
        found.append("spec.resourceClaims")
    if spec.containers and _restarts_all(spec.containers):
        found.append("spec.containers[].restartPolicyRules (RestartAllContainers)")
    if spec.init_containers and _restarts_all(spec.init_containers):
        found.append("spec.initContainers[].restartPolicyRules (RestartAllContainers)")
    if spec.host_network and spec.host_users is False:
        found.append("spec.hostUsers (false, together with hostNetwork)")
    return tuple(found)


def _restarts_all(containers: list[wire.Container]) -> bool:
    for container in containers:
        for rule in container.restart_policy_rules or ():
            if rule.action == "RestartAllContainers":
                return True
    return False
