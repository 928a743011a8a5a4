"""Pods."""

from __future__ import annotations

from msgspec import Struct, field

from gangsched.kube.wire.shared_parts import (
    LabelSelector,
    Meta,
    NodeSelector,
    Phased,
    PreferredTerm,
    Present,
    Quantities,
    Strings,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinity(Struct, gc=False):
    required: NodeSelector | None = field(name=_REQUIRED, default=None)
    preferred: list[PreferredTerm] | None = field(name=_PREFERRED, default=None)


class PodAffinityTerm(Struct, gc=False, rename="camel"):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None


class PreferredPodTerm(Struct, gc=False, rename="camel"):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm | None = None


class PodAffinity(Struct, gc=False):
    required: list[PodAffinityTerm] | None = field(name=_REQUIRED, default=None)
    preferred: list[PreferredPodTerm] | None = field(name=_PREFERRED, default=None)


class Affinity(Struct, gc=False, rename="camel"):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Resources(Struct, gc=False):
    requests: Quantities | None = None


class Port(Struct, gc=False):
    host_port: int | None = field(name="hostPort", default=None)
    host_ip: str | None = field(name="hostIP", default=None)
    protocol: str | None = None


class RestartRule(Struct, gc=False):
    action: str | None = None


class Container(Struct, gc=False, rename="camel"):
    name: str = ""
    image: str | None = None
    resources: Resources | None = None
    ports: list[Port] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None


class SpreadConstraint(Struct, gc=False, rename="camel"):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None


class ClaimReference(Struct, gc=False, rename="camel"):
    claim_name: str = ""


class Disk(Struct, gc=False):
    """A source of any kind that names a disk itself; only the fields of its kind are set."""

    pd_name: str | None = field(name="pdName", default=None)
    volume_id: str | None = field(name="volumeID", default=None)
    disk_uri: str | None = field(name="diskURI", default=None)
    iqn: str | None = None
    monitors: list[str] | None = None
    pool: str | None = None
    image: str | None = None
    read_only: bool | None = field(name="readOnly", default=None)


class CsiSource(Struct, gc=False, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class InTreeSources(Struct, gc=False, rename="camel"):
    """Sources that name a disk of a cloud, in a pod or a PersistentVolume."""

    gce_persistent_disk: Disk | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None
    portworx_volume: Disk | None = None


class ImageSource(Struct, gc=False):
    reference: str | None = None


class Volume(InTreeSources, gc=False, rename="camel"):
    name: str = ""
    image: ImageSource | None = None
    persistent_volume_claim: ClaimReference | None = None
    ephemeral: Present | None = None
    iscsi: Disk | None = None
    rbd: Disk | None = None


class PodResourceClaim(Struct, gc=False, rename="camel"):
    """A ResourceClaim as a pod's spec or status names it."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Struct, gc=False, rename="camel"):
    pod_group_name: str | None = None


class PodCoreSpec(Struct, gc=False, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None


class PodSpec(PodCoreSpec, gc=False, rename="camel"):
    node_selector: Strings | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: Quantities | None = None
    scheduling_gates: list[Present] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    host_network: bool | None = None
    host_users: bool | None = None
    scheduling_group: SchedulingGroup | None = None
    preemption_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None


class ConditionState(Struct, gc=False):
    """A condition of which only this is read."""

    type: str = ""
    status: str = ""


class Condition(ConditionState, gc=False, rename="camel"):
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class Terminated(Struct, gc=False, rename="camel"):
    exit_code: int = 0
    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class Waiting(Struct, gc=False):
    reason: str | None = None


class ContainerState(Struct, gc=False):
    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, gc=False, rename="camel"):
    name: str = ""
    state: ContainerState | None = None
    resources: Resources | None = None
    allocated_resources: Quantities | None = None


class PodStatus(Phased, gc=False, rename="camel"):
    reason: str | None = None
    message: str | None = None
    nominated_node_name: str | None = None
    start_time: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Resources | None = None
    allocated_resources: Quantities | None = None
    resource_claim_statuses: list[PodResourceClaim] | None = None


class Pod(Struct, gc=False):
    metadata: Meta
    spec: PodSpec | None = None
    status: PodStatus | None = None


class UnreadablePod(Pod):
    """A pod with only the fields of `PodCore`; `why` says why the rest is unreadable."""

    why: str = ""


class PodCore(Struct, gc=False):
    """The parts of a pod that must be readable."""

    metadata: Meta
    spec: PodCoreSpec | None = None
    status: Phased | None = None
