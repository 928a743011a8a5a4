"""Why a group has too few pods, according to the objects that create them: for `explain`.

The kinds are those of the workload registry, custom ones, Deployments, ReplicaSets and CronJobs. An object counts if it
names the group by its label or declares it without one. So do the objects that it controls, such as the Jobs of a
JobSet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from gangsched.config.dialects import GROUP_LABEL
from gangsched.core.objects.wording import printable
from gangsched.core.objects.workload import COMPLETED, ENDED, WorkloadFacts
from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, KubeError
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import ApiSession
from gangsched.kube.workloads.workload_kind import Kind, group_name
from gangsched.kube.workloads.workload_table import Workloads

_OTHERS = {
    "Deployment": ("/apis/apps/v1/namespaces/{}/deployments",),
    "ReplicaSet": ("/apis/apps/v1/namespaces/{}/replicasets",),
    "CronJob": ("/apis/batch/v1/namespaces/{}/cronjobs",),
}
"""Kinds that are no workloads with gangs, with the paths that list them."""
_EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
_NOT_MADE = ("FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod", "MPIJobFailed")
"""The reasons of the Events in which Kubernetes' controllers, LeaderWorkerSet, training-operator, KubeRay and
mpi-operator report that they could not create a pod."""
_NAMED = 3
_MOST = "500"
"""Maximum number of objects of each kind, and of Events of each reason, that are read."""

Decoded = TypeVar("Decoded")
Body = Mapping[str, Any]


class _List(Struct):
    items: list[Raw] | None = None


class _Creator(Struct):
    """An object of any kind that may create pods: only of the metadata it is known what they are like."""

    metadata: wire.Meta
    spec: Any = None
    status: Any = None


class _Regarding(Struct):
    kind: str = ""
    name: str = ""


class _Event(Struct):
    metadata: wire.Meta
    regarding: _Regarding | None = None
    note: str | None = None


class _Events(Struct):
    items: list[_Event] | None = None


_LIST = msgspec.json.Decoder(_List)
_CREATOR = msgspec.json.Decoder(_Creator)
_EVENT_LIST = msgspec.json.Decoder(_Events)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMaker:
    """An object that creates pods.

    `on_itself`: its own label names the group. `in_template`: its pods belong to the group, by the label of their
    template or by the object's declaration. `template` is the path of its pod template, the first if it has several.
    `whole`: none of the other objects controls it, so that its pods are counted here; `pods` is their number, None if
    unknown. `suspended` is the field that suspends it, `ended` says how it ended; both are empty while it is active.
    `in_turn` says how to have all its pods created at once, empty if they are. `failure` is why it last failed to
    create a pod.
    """

    kind: str
    name: str
    on_itself: bool
    in_template: bool
    template: str = "spec.template"
    whole: bool = True
    suspended: str = ""
    ended: str = ""
    in_turn: str = ""
    pods: int | None = None
    failure: str = ""

    @property
    def title(self) -> str:
        """Its kind and name, for messages."""
        return f"the {self.kind} {self.name}"


async def read_owners(session: ApiSession, namespace: str, group: str, workloads: Workloads) -> list[PodMaker]:
    """The objects of the namespace that name the group. Kinds that the caller may not list are left out.

    `workloads` are the kinds that can declare it without a label.
    """
    listed: dict[str, list[Raw]] = {}
    kinds = {workload_kind.row.kind: workload_kind for workload_kind in workloads.kinds.values()}
    for kind, paths in {**dict(map(_listing, kinds.values())), **_OTHERS}.items():
        for path in paths:
            page = await _read(session, path.format(quoted(namespace)), _LIST, {"limit": _MOST})
            if page is not None:
                listed[kind] = page.items or []
                break
    owners = list(_owners(listed, group, kinds))
    if not owners:
        return owners
    notes: dict[tuple[str, str], tuple[float, str]] = {}
    for reason in _NOT_MADE:
        params = {"fieldSelector": f"reason={reason}", "limit": _MOST}
        events = await _read(session, _EVENTS.format(quoted(namespace)), _EVENT_LIST, params)
        for event in (events.items if events is not None else None) or ():
            if event.regarding is not None:
                about, note = (event.regarding.kind, event.regarding.name), printable(event.note or "", limit=300)
                notes[about] = max(notes.get(about, (0.0, "")), (_made_at(event), note))
    return [replace(owner, failure=notes.get((owner.kind, owner.name), (0.0, owner.failure))[1]) for owner in owners]


def remedies(owners: Sequence[PodMaker], minimum: int) -> Iterator[str]:
    """Remedies for missing members, derived from the objects that create them."""
    for owner in owners:
        if owner.on_itself and not owner.in_template:
            where = f"{owner.template}.metadata.labels of {owner.title}"
            yield f"the label {GROUP_LABEL} in {where}, which has it only on itself"
        if owner.suspended:
            yield f"the end of the suspension of {owner.title}: set its {owner.suspended} to false"
        if owner.ended:
            yield f"a new run: {owner.title} {owner.ended}; delete it and create it again"
        if owner.failure:
            yield f"pods that {owner.title} could not make: {owner.failure}"
        if owner.in_turn and minimum > 1:
            yield f"all pods at once of {owner.title}, which makes some only when others run: {owner.in_turn}"
    making = [owner for owner in owners if owner.in_template and owner.whole and not owner.ended]
    counts = [owner.pods for owner in making if owner.pods is not None]
    if making and len(counts) == len(making) and sum(counts) < minimum:
        who = " and ".join(owner.title for owner in making[:_NAMED])
        if not sum(counts):
            yield f"replicas of {who}: no pods are wanted now"
            return
        yield f"a minimum of at most {sum(counts)}, which is all that {who} will make, or more replicas there"


def _listing(kind: Kind[Any]) -> tuple[str, Sequence[str]]:
    """The kind's name in Kubernetes, and the paths that list it, one for each version."""
    resource = kind.row.resource
    paths = [f"/apis/{resource.group}/{version}/namespaces/{{}}/{resource.plural}" for version in resource.versions]
    return kind.row.kind, paths


def _owners(listed: Mapping[str, Sequence[Raw]], group: str, kinds: Mapping[str, Kind[Any]]) -> Iterator[PodMaker]:
    """The objects that name the group, and the objects that these control."""
    entries = [(kind, raw, _CREATOR.decode(raw)) for kind, raws in listed.items() for raw in raws]
    owner_uids: set[str] = set()
    parts = {creator.metadata.uid or "": _controller(creator.metadata) for _, _, creator in entries}
    for kind, raw, creator in entries:
        owner = _owner(kind, raw, creator, group, kinds.get(kind))
        if owner is not None:
            owner_uids.add(creator.metadata.uid or "")
            yield replace(owner, whole=parts[creator.metadata.uid or ""] not in parts)
    for kind, _, creator in entries:
        uid = creator.metadata.uid or ""
        if uid not in owner_uids and parts[uid] in owner_uids:
            name = creator.metadata.name or ""
            yield PodMaker(kind=kind, name=name, on_itself=False, in_template=False, failure=_failed(creator))


def _owner(kind: str, raw: Raw, creator: _Creator, group: str, workload: Kind[Any] | None) -> PodMaker | None:
    spec = _body(creator.spec)
    templates = dict(_templates(spec, "spec"))
    on_itself = (creator.metadata.labels or {}).get(GROUP_LABEL) == group
    in_template = any(_label(template) == group for template in templates.values())
    declares = workload is not None and _declares(workload, creator.metadata.name or "", group)
    if not (on_itself or in_template or declares):
        return None
    facts = None if workload is None else workload.read(raw)[1].workload
    return PodMaker(
        kind=kind,
        name=creator.metadata.name or "",
        on_itself=on_itself,
        in_template=in_template or declares,
        template=next(iter(templates), "spec.template"),
        suspended=_suspended(spec),
        ended=_ended(creator) if facts is not None and facts.idle in (COMPLETED, ENDED) else "",
        in_turn=facts.remedy if facts is not None else "",
        pods=_pods(facts, spec),
        failure=_failed(creator),
    )


def _declares(workload: Kind[Any], name: str, group: str) -> bool:
    """Whether the object declares the group without a label."""
    own = group_name(workload.row.name, name)
    return group == own or group.startswith(f"{own}.")


def _templates(body: Body, path: str) -> Iterator[tuple[str, Body]]:
    """The pod templates in a spec, each with its path."""
    for key, value in body.items():
        values = value if isinstance(value, list) else [value]
        below = f"{path}.{key}[]" if isinstance(value, list) else f"{path}.{key}"
        for inner in values:
            if isinstance(inner, dict):
                if "containers" in _body(inner.get("spec")):
                    yield below, inner
                else:
                    yield from _templates(inner, below)


def _label(template: Body) -> object:
    return _body(_body(template.get("metadata")).get("labels")).get(GROUP_LABEL)


def _suspended(spec: Body) -> str:
    """The path of the field that suspends the object; empty if none does."""
    if spec.get("suspend") is True:
        return "spec.suspend"
    return "spec.runPolicy.suspend" if _body(spec.get("runPolicy")).get("suspend") is True else ""


def _ended(creator: _Creator) -> str:
    why = next(
        (condition for condition in _conditions(creator) if condition.status == "True" and condition.type == "Failed"),
        None,
    )
    if why is None:
        return "has ended"
    return f"has failed ({printable(': '.join(filter(None, (why.reason, why.message))), limit=200)})"


def _failed(creator: _Creator) -> str:
    """Why the object could not create a pod, by its own condition; empty if no condition says so."""
    for condition in _conditions(creator):
        if (condition.type, condition.status) == ("ReplicaFailure", "True"):
            return printable(condition.message or "", limit=300)
    return ""


def _conditions(creator: _Creator) -> Sequence[wire.Condition]:
    """The object's conditions; none if they have a form of their own."""
    try:
        return msgspec.convert(_body(creator.status).get("conditions") or [], list[wire.Condition])
    except msgspec.ValidationError:
        return []


def _body(value: object) -> Body:
    """The value itself if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _pods(facts: WorkloadFacts | None, spec: Body) -> int | None:
    """How many pods the object wants at a time; None if unknown. Whether it is suspended is reported separately."""
    if facts is not None:
        return facts.size
    replicas = spec.get("replicas")
    return replicas if isinstance(replicas, int) else None


def _controller(meta: wire.Meta) -> str:
    uids = (reference.uid for reference in meta.owner_references or () if reference.controller)
    return next(uids, None) or ""


def _made_at(event: _Event) -> float:
    created = event.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


async def _read(
    session: ApiSession, path: str, decoder: msgspec.json.Decoder[Decoded], params: Mapping[str, str]
) -> Decoded | None:
    try:
        return decoder.decode((await session.request("GET", path, params=params)).checked().body)
    except (KubeError, *UNREADABLE):
        return None
