"""The fields of a pod's spec that gangsched does not support yet. It refuses them by name rather than bind wrongly.

kube-scheduler implements them in the plug-ins InterPodAffinity, PodTopologySpread, VolumeBinding with its companions,
VolumeRestrictions, NodeVolumeLimits and DynamicResources. The inline volumes that count against a CSINode's limits are
those of `isCSIMigrationOn` in nodevolumelimits/utils.go at v1.36.3, so azureFile and vsphereVolume do not count.
"""

from __future__ import annotations

from gangsched.kube import wire

_PLAIN_VOLUME = wire.Volume()


def unsupported_fields(spec: wire.PodSpec) -> tuple[str, ...]:
    """The unsupported fields that the pod uses, with their names in a manifest, in a fixed order."""
    found: list[str] = []
    if spec.affinity is not None:
        if spec.affinity.pod_affinity is not None and spec.affinity.pod_affinity.required:
            found.append("spec.affinity.podAffinity (required)")
        if spec.affinity.pod_anti_affinity is not None and spec.affinity.pod_anti_affinity.required:
            found.append("spec.affinity.podAntiAffinity (required)")
    if spec.topology_spread_constraints and any(
        constraint.when_unsatisfiable != "ScheduleAnyway" for constraint in spec.topology_spread_constraints
    ):
        found.append("spec.topologySpreadConstraints (DoNotSchedule)")
    if spec.volumes:
        found.extend(_volumes(spec.volumes))
    if spec.resource_claims:
        found.append("spec.resourceClaims")
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
