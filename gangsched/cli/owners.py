"""Why a group has too few pods, as far as the Jobs, StatefulSets and JobSets that make them say: for `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.declaration import OWN_DIALECT
from gangsched.kube import wire
from gangsched.kube.errors import UNREADABLE, KubeError, printable
from gangsched.kube.session import ApiSession

LABEL = DIALECTS[OWN_DIALECT].group[0].name
_KINDS = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
}
_EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
_NAMED = 3
_MOST = "500"
"""So many objects of a kind, and Events, are looked at."""

Found = TypeVar("Found")


class _Template(Struct):
    metadata: wire.Meta | None = None


class _JobSpec(Struct):
    template: _Template | None = None


class _JobTemplate(Struct):
    spec: _JobSpec | None = None


class _Replicated(Struct):
    template: _JobTemplate | None = None


class _Spec(Struct, rename="camel"):
    template: _Template | None = None
    replicated_jobs: list[_Replicated] | None = None
    suspend: bool | None = None
    pod_management_policy: str | None = None
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None


class _Item(Struct):
    metadata: wire.Meta
    spec: _Spec | None = None


class _List(Struct):
    items: list[_Item] | None = None


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
_EVENT_LIST = msgspec.json.Decoder(_Events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """An object that makes pods. `on_itself`: its own label names the group; `in_template`: that of its pods does.

    `pods` is how many it makes, None if that is not read. `failure` is why it last could not make one.
    """

    kind: str
    name: str
    on_itself: bool
    in_template: bool
    suspended: bool = False
    one_by_one: bool = False
    pods: int | None = None
    failure: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return f"the {self.kind} {self.name}"


async def read_owners(session: ApiSession, namespace: str, group: str) -> list[Owner]:
    """The objects of the namespace that name the group; those of kinds that the caller may not list are left out."""
    found: list[Owner] = []
    for kind, path in _KINDS.items():
        listed = await _read(session, path.format(quote(namespace, safe="")), _LIST, {"limit": _MOST})
        items = listed.items if listed is not None and listed.items is not None else []
        found += [owner for item in items if (owner := _owner(kind, item, group)) is not None]
    if not found:
        return found
    path, failed = _EVENTS.format(quote(namespace, safe="")), {"fieldSelector": "reason=FailedCreate", "limit": _MOST}
    events = await _read(session, path, _EVENT_LIST, failed)
    in_order = sorted((events.items if events is not None else None) or (), key=_made_at)
    notes = {
        (event.regarding.kind, event.regarding.name): printable(event.note or "", limit=300)
        for event in in_order
        if event.regarding is not None
    }
    return [replace(owner, failure=notes.get((owner.kind, owner.name), "")) for owner in found]


def remedies(owners: Sequence[Owner], minimum: int) -> Iterator[str]:
    """What would bring the members that are missing, given who makes them."""
    for owner in owners:
        if owner.on_itself and not owner.in_template:
            yield f"the label {LABEL} in spec.template.metadata.labels of {owner.title}, which has it only on itself"
        if owner.suspended:
            yield f"the end of the suspension of {owner.title}: set its spec.suspend to false"
        if owner.failure:
            yield f"pods that {owner.title} could not make: {owner.failure}"
        if owner.one_by_one and minimum > 1:
            yield (
                f"podManagementPolicy: Parallel for {owner.title}, which makes a pod only when the one before runs; "
                "delete it and create it again, because the field cannot be changed"
            )
    making = [owner for owner in owners if owner.in_template]
    known = [owner.pods for owner in making if owner.pods is not None]
    if making and len(known) == len(making) and sum(known) < minimum:
        who = " and ".join(owner.title for owner in making[:_NAMED])
        yield f"a minimum of at most {sum(known)}, which is all that {who} will make, or more replicas there"


def _owner(kind: str, item: _Item, group: str) -> Owner | None:
    spec = item.spec or _Spec()
    templates = [spec.template]
    for each in spec.replicated_jobs or ():
        job = each.template.spec if each.template is not None else None
        templates.append(job.template if job is not None else None)
    metas = [each.metadata for each in templates if each is not None and each.metadata is not None]
    in_template = any(_names(meta, group) for meta in metas)
    on_itself = _names(item.metadata, group)
    if not (in_template or on_itself):
        return None
    return Owner(
        kind=kind,
        name=item.metadata.name or "",
        on_itself=on_itself,
        in_template=in_template,
        suspended=bool(spec.suspend),
        one_by_one=kind == "StatefulSet" and spec.pod_management_policy != "Parallel",
        pods=_pods(kind, spec),
    )


def _made_at(event: _Event) -> float:
    made = event.metadata.creation_timestamp
    return made.timestamp() if made is not None else 0.0


def _pods(kind: str, spec: _Spec) -> int | None:
    """How many pods it makes at a time; None for a JobSet, whose jobs say that."""
    if kind == "JobSet":
        return None
    asked = spec.parallelism if kind == "Job" else spec.replicas
    number = 1 if asked is None else asked
    return number if kind != "Job" or spec.completions is None else min(number, spec.completions)


def _names(meta: wire.Meta, group: str) -> bool:
    return (meta.labels or {}).get(LABEL) == group


async def _read(
    session: ApiSession, path: str, decoder: msgspec.json.Decoder[Found], params: Mapping[str, str]
) -> Found | None:
    try:
        return decoder.decode((await session.request("GET", path, params=params)).checked().body)
    except (KubeError, *UNREADABLE):
        return None
