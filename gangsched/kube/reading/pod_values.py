"""Converts pods to the values of the core, by the rules of kube-scheduler's default profile.

The conversion never raises and never drops an object. `Shape.unsupported` names fields that are unsupported or
unreadable, and the pod waits with that reason. Equal shapes, labels, owners and names become the identical object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

import msgspec
from msgspec import Raw

from gangsched.api.times import parse_if_set
from gangsched.core.objects.declaration import NATIVE, Declaration
from gangsched.core.objects.duration import parse_duration
from gangsched.core.objects.pod import Lifetime, Owner, Pod, PodPhase
from gangsched.core.objects.wording import printable
from gangsched.core.objects.workload import Added, Workload
from gangsched.kube import wire
from gangsched.kube.dialects.dialect_table import DEFAULT, Dialects
from gangsched.kube.reading.storage_values import NO_VOLUMES, pod_volumes
from gangsched.kube.terms import extended_uses, preferences
from gangsched.kube.terms.device_uses import uses
from gangsched.kube.terms.pod_failures import failure, is_rejection
from gangsched.kube.terms.pod_terms import labels
from gangsched.kube.terms.shapes import shape
from gangsched.kube.terms.sharing import sharing
from gangsched.kube.workloads.workload_table import NONE, Workloads

_PHASES = {phase.value: phase for phase in PodPhase}
_KEPT = 1024
_NOTHING: dict[str, str] = {}
_GRACE_S = 30
"""The API server's default of `terminationGracePeriodSeconds`."""
EXPECTED_RUNTIME = "gangsched.io/expected-runtime"
"""The annotation of a pod with how long it will run once it is bound, as a duration."""
_LONGEST_REASON = 100
"""Maximum number of characters of a container's reason that are kept."""
_moment = lru_cache(maxsize=_KEPT)(parse_if_set)
_POD = msgspec.json.Decoder(wire.Pod)
_POD_CORE = msgspec.json.Decoder(wire.PodCore)


def decode_pod(raw: Raw | bytes) -> wire.Pod:
    """The pod. If a field has an unexpected type, only the parts needed to make the pod wait with an error.

    Raises:
        msgspec.DecodeError: even these parts cannot be read.
    """
    try:
        return _POD.decode(raw)
    except msgspec.ValidationError as error:
        core = _POD_CORE.decode(raw)
        spec, status = core.spec or wire.PodCoreSpec(), core.status or wire.Phased()
        return wire.UnreadablePod(
            metadata=core.metadata,
            spec=wire.PodSpec(node_name=spec.node_name, scheduler_name=spec.scheduler_name, priority=spec.priority),
            status=wire.PodStatus(phase=status.phase),
            why=str(error),
        )


_shared_shape, _shared_labels, _shared_owner = sharing(), sharing(), sharing()
# The members of a gang often start in the same second, and the pods of a Job name one group.
_shared_lifetime, _shared_added = sharing(), sharing()


class _Conditions(NamedTuple):
    """The parts of a pod's conditions that gangsched reads."""

    reason: str = ""
    message: str = ""
    resize_infeasible: bool = False
    bound_at: float = 0.0
    ready: bool = False


_NO_CONDITIONS = _Conditions()


def pod_value(pod: wire.Pod, dialects: Dialects = DEFAULT, workloads: Workloads = NONE) -> Pod:
    """The core's value for the pod. Missing fields have the API server's defaults."""
    meta = pod.metadata
    spec = pod.spec or wire.PodSpec()
    status = pod.status or wire.PodStatus()
    conditions = _read_conditions(status.conditions) if status.conditions else _NO_CONDITIONS
    owner = _shared_owner(_owner(meta.owner_references)) if meta.owner_references else None
    why = pod.why if isinstance(pod, wire.UnreadablePod) else ""
    volumes = pod_volumes(meta.name or "", spec.volumes) if spec.volumes else NO_VOLUMES
    found_shape = _shared_shape(
        shape(meta, spec, status, volumes.disks, why=why, resize_infeasible=conditions.resize_infeasible)
    )
    declaration = _declaration(meta, spec, _maker(meta, owner), dialects)
    return Pod(
        uid=meta.uid or "",
        namespace=intern(meta.namespace or "default"),
        name=meta.name or "",
        shape=found_shape,
        created=_created(meta),
        scheduler=intern(spec.scheduler_name or "default-scheduler"),
        phase=_PHASES.get(status.phase, PodPhase.UNKNOWN) if status.phase else PodPhase.PENDING,
        node=intern(spec.node_name or ""),
        nominated_node=status.nominated_node_name or "",
        terminating=meta.deletion_timestamp is not None,
        gated=bool(spec.scheduling_gates),
        priority=spec.priority or 0,
        declaration=declaration,
        labels=_shared_labels(labels(meta.labels)),
        volume_claims=volumes.claims,
        own_volume_claims=volumes.own_claims,
        device_claims=uses(spec, status, _sharing_group(spec, dialects)) if spec.resource_claims else (),
        extended=()
        if spec.node_name or not any("/" in name for name, _ in found_shape.requests)
        else extended_uses.uses(spec),
        owner=owner,
        condition_reason=conditions.reason,
        condition_message=conditions.message,
        rejected=status.phase == "Failed" and is_rejection(status),
        bound_at=conditions.bound_at,
        soft=preferences.soft(spec, meta),
        workload=_workload(meta, owner, declaration, workloads) if owner is not None or workloads.by_label else None,
        failure=failure(status) if status.phase == "Failed" else None,
        gone_by=_moment(meta.deletion_timestamp),
        lifetime=_lifetime(spec, status, meta.annotations or _NOTHING, ready=conditions.ready),
    )


def _lifetime(spec: wire.PodSpec, status: wire.PodStatus, annotations: Mapping[str, str], *, ready: bool) -> Lifetime:
    grace_s, expected = spec.termination_grace_period_seconds, annotations.get(EXPECTED_RUNTIME)
    return _shared_lifetime(
        Lifetime(
            preempts=spec.preemption_policy != "Never",
            start=_moment(status.start_time),
            ready=ready,
            grace_s=_GRACE_S if grace_s is None else grace_s,
            deadline_s=spec.active_deadline_seconds,
            expected_s=_duration(expected) if expected is not None else None,
            not_started=_not_started(status),
        )
    )


def _not_started(status: wire.PodStatus) -> str:
    """Why the first container that waits does so; empty if none waits."""
    for container in (*(status.init_container_statuses or ()), *(status.container_statuses or ())):
        if container.state is not None and container.state.waiting is not None and container.state.waiting.reason:
            return printable(container.state.waiting.reason, limit=_LONGEST_REASON)
    return ""


@lru_cache(maxsize=_KEPT)
def _duration(text: str) -> float | None:
    """The seconds that the text means; None if it is no duration."""
    try:
        return parse_duration(text)
    except ValueError:
        return None


def _declaration(meta: wire.Meta, spec: wire.PodSpec, maker: str, dialects: Dialects) -> Declaration | None:
    group = spec.scheduling_group.pod_group_name if spec.scheduling_group is not None else None
    if not (meta.labels or meta.annotations or group):
        return None
    return dialects.declaration(
        meta.labels or _NOTHING,
        meta.annotations or _NOTHING,
        pod=meta.name or "",
        owner=maker,
        scheduling_group=group or "",
    )


def _sharing_group(spec: wire.PodSpec, dialects: Dialects) -> str:
    """The PodGroup of Kubernetes that the pod names, and that may share its claims; empty if none or none is read."""
    if spec.scheduling_group is None or NATIVE not in dialects.kinds:
        return ""
    return intern(spec.scheduling_group.pod_group_name or "")


def _workload(
    meta: wire.Meta, owner: Owner | None, declaration: Declaration | None, workloads: Workloads
) -> Workload | None:
    """The workload of the pod. A native group alone may have been added by the pod's controller.

    The Job controller makes its pods owned by the group too: pkg/controller/job/job_controller.go.
    """
    if declaration is None or declaration.source != NATIVE or declaration.error:
        return workloads.of(meta, owner, named=declaration is not None)
    certain = any(
        (reference.kind, reference.name) == ("PodGroup", declaration.group)
        and reference.api_version.startswith("scheduling.k8s.io/")
        for reference in meta.owner_references or ()
    )
    return workloads.of(meta, owner, added=_shared_added(Added(declaration, certain)))


def _created(meta: wire.Meta) -> float:
    return meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0


def _owner(references: Iterable[wire.Owner]) -> Owner | None:
    for reference in references:
        if reference.controller:
            group, _, _ = reference.api_version.rpartition("/")
            return Owner(kind=reference.kind, name=reference.name, uid=reference.uid, api_group=group)
    return None


def _maker(meta: wire.Meta, controller: Owner | None) -> str:
    """The pod that created this one: its controller if that is a pod, or its only pod owner if it has no controller.

    Scripts that create the executors of a driver set no controller.
    """
    if controller is not None:
        return controller.name if controller.kind == "Pod" else ""
    if not meta.owner_references:
        return ""
    makers = [reference.name for reference in meta.owner_references if reference.kind == "Pod"]
    return makers[0] if len(makers) == 1 else ""


def _read_conditions(conditions: Iterable[wire.Condition]) -> _Conditions:
    reason = message = ""
    infeasible = ready = False
    bound_at = 0.0
    for condition in conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            reason, message = condition.reason or "", condition.message or ""
        elif condition.type == "PodScheduled":
            bound_at = _moment(condition.last_transition_time)
        elif condition.type == "PodResizePending":
            infeasible = condition.reason == "Infeasible"
        elif condition.type == "Ready":
            ready = condition.status == "True"
    return _Conditions(reason, message, infeasible, bound_at, ready)
