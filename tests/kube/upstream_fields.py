"""The fields of other systems' PodGroups, and the keys of pods in gangs, as those systems define them.

Read in their sources: kubernetes v1.36.3 and v1.37.2 (k8s.io/api/scheduling), scheduler-plugins v0.34.7 and koordinator
v1.6.0 (apis, apis/extension/coscheduling.go), and in 2026 the main branches of volcano (apis/scheduling/v1beta1), KAI
(pkg/apis/scheduling/v2alpha2, pkg/common/constants), kueue (pkg/controller/jobs/pod/constants) and yunikorn-k8shim
(pkg/common/constants).
"""

from __future__ import annotations

SPECS: dict[str, tuple[str, ...]] = {
    "koordinator": ("minMember", "minResources", "scheduleTimeoutSeconds"),
    "scheduler-plugins": ("minMember", "minResources", "scheduleTimeoutSeconds"),
    "tenstack": ("minMember", "priorityClassName", "minResources", "maxScheduleTime"),
    "volcano": (
        "minMember",
        "minTaskMember",
        "queue",
        "priorityClassName",
        "minResources",
        "networkTopology.mode",
        "networkTopology.highestTierAllowed",
        "networkTopology.highestTierName",
        "subGroupPolicy",
    ),
    "kai": (
        "minMember",
        "minSubGroup",
        "queue",
        "priorityClassName",
        "preemptibility",
        "topologyConstraint.topology",
        "topologyConstraint.requiredTopologyLevel",
        "topologyConstraint.preferredTopologyLevel",
        "subGroups[].name",
        "subGroups[].minMember",
        "subGroups[].minSubGroup",
        "subGroups[].parent",
        "subGroups[].topologyConstraint.topology",
        "subGroups[].topologyConstraint.requiredTopologyLevel",
        "subGroups[].topologyConstraint.preferredTopologyLevel",
        "markUnschedulable",
        "schedulingBackoff",
    ),
    "native": (
        "parentCompositePodGroupName",
        "workloadRef",
        "podGroupTemplateRef",
        "schedulingPolicy.basic",
        "schedulingPolicy.gang.minCount",
        "schedulingConstraints.topology[].key",
        "resourceClaims[].name",
        "resourceClaims[].resourceClaimName",
        "resourceClaims[].resourceClaimTemplateName",
        "disruptionMode",
        "priorityClassName",
        "priority",
        "preemptionPolicy",
    ),
}

POD_KEYS: dict[str, tuple[str, ...]] = {
    "kueue": tuple(
        f"kueue.x-k8s.io/{name}"
        for name in (
            "pod-group-name",
            "pod-group-total-count",
            "pod-group-fast-admission",
            "pod-group-serving",
            "role-hash",
            "retriable-in-group",
            "pod-group-sets",
            "pod-group-role",
        )
    ),
    "koordinator": tuple(
        f"gang.scheduling.koordinator.sh/{name}"
        for name in (
            "name",
            "min-available",
            "waiting-time",
            "total-number",
            "mode",
            "groups",
            "timeout",
            "match-policy",
        )
    ),
    "scheduler-plugins": ("scheduling.x-k8s.io/pod-group",),
    "yunikorn": (
        "applicationId",
        "yunikorn.apache.org/app-id",
        "queue",
        "yunikorn.apache.org/queue",
        "spark-app-selector",
        "yunikorn.apache.org/task-group-name",
        "yunikorn.apache.org/task-groups",
        "yunikorn.apache.org/schedulingPolicyParameters",
    ),
    "volcano": (
        "scheduling.k8s.io/group-name",
        "scheduling.volcano.sh/group-name",
        "scheduling.volcano.sh/group-min-member",
        "scheduling.volcano.sh/group-min-resources",
        "scheduling.volcano.sh/queue-name",
        "volcano.sh/sla-waiting-time",
        "volcano.sh/preemptable",
        "volcano.sh/cooldown-time",
        "volcano.sh/revocable-zone",
        "volcano.sh/jdb-min-available",
        "volcano.sh/jdb-max-unavailable",
        "volcano.sh/numa-topology-policy",
    ),
    "kai": (
        "pod-group-name",
        "kai.scheduler/subgroup-name",
        "kai.scheduler/queue",
        "kai.scheduler/node-pool",
        "gpu-fraction",
        "gpu-fraction-container-name",
        "gpu-memory",
        "gpu-fraction-num-devices",
    ),
}
"""Keys that a user or a controller sets on pods, without those that only the system's own scheduler writes."""
