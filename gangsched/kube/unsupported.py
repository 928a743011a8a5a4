"""The fields of a pod's spec that gangsched does not support yet. It refuses them by name rather than bind wrongly.

kube-scheduler implements them in the plug-ins VolumeBinding with its companions, VolumeRestrictions, NodeVolumeLimits,
DynamicResources and NodeDeclaredFeatures. The inline volumes that count against a CSINode's limits are those of
`isCSIMigrationOn` in nodevolumelimits/utils.go at v1.36.3, so azureFile and vsphereVolume do not count. The features
that a pod can require of its node are those of `InferForScheduling` in k8s.io/component-helpers/nodedeclaredfeatures at
v0.36.3.
"""

from __future__ import annotations

from gangsched.kube import wire

_PLAIN_VOLUME = wire.Volume()


def unsupported_fields(spec: wire.PodSpec) -> tuple[str, ...]:
    """The unsupported fields that the pod uses, with their names in a manifest, in a fixed order."""
    found: list[str] = []
    if spec.volumes:
        found.extend(_volumes(spec.volumes))
    if spec.resource_claims:
        found.append("spec.resourceClaims")
    if spec.containers and _restarts_all(spec.containers):
        found.append("spec.containers[].restartPolicyRules (RestartAllContainers)")
    if spec.init_containers and _restarts_all(spec.init_containers):
        found.append("spec.initContainers[].restartPolicyRules (RestartAllContainers)")
    if spec.host_network and spec.host_users is False:
        found.append("spec.hostUsers (false, together with hostNetwork)")
    return tuple(found)


def _volumes(volumes: list[wire.Volume]) -> list[str]:
    refused = [volume for volume in volumes if volume != _PLAIN_VOLUME]
    if not refused:
        return []
    in_use = {
        "persistentVolumeClaim": any(volume.persistent_volume_claim is not None for volume in refused),
        "ephemeral": any(volume.ephemeral is not None for volume in refused),
        "gcePersistentDisk": any(volume.gce_persistent_disk is not None for volume in refused),
        "awsElasticBlockStore": any(volume.aws_elastic_block_store is not None for volume in refused),
        "azureDisk": any(volume.azure_disk is not None for volume in refused),
        "cinder": any(volume.cinder is not None for volume in refused),
        "portworxVolume": any(volume.portworx_volume is not None for volume in refused),
        "iscsi": any(volume.iscsi is not None for volume in refused),
        "rbd": any(volume.rbd is not None for volume in refused),
    }
    return [f"spec.volumes[].{kind}" for kind, used in in_use.items() if used]


def _restarts_all(containers: list[wire.Container]) -> bool:
    for container in containers:
        for rule in container.restart_policy_rules or ():
            if rule.action == "RestartAllContainers":
                return True
    return False
