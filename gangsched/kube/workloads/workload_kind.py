"""One kind of workload: how its pods are recognised, and how its objects are read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from gangsched.config.dialects import Key
from gangsched.config.workload_registry import WorkloadRow
from gangsched.core.declarations.top_owners import shared
from gangsched.core.objects.declaration import Beside, Declaration, GroupKey, Keys, Role, Topology
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.wording import printable
from gangsched.core.objects.workload import GANG, Series, TopOwner, Workload, WorkloadFacts
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import count, quoted
from gangsched.kube.workloads import template
from gangsched.kube.workloads.template_admission import Admission, Reader
from gangsched.kube.workloads.workload_fields import FieldTree, unheeded

MINIMUM = Key("gangsched.io/min-member")
"""The annotation of a workload's object with the minimum of each of its gangs."""
_LONGEST_NAME = 63
"""Longest name of a PodGroup, in characters."""
_DIGEST = 8
_GANG = {"true": True, "false": False}


class Marks(NamedTuple):
    """The parts of a pod by which its workload is recognised: its labels, its annotations and its controller."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Owner


class Mark(NamedTuple):
    """The object that a pod belongs to, and the pod's `role` in it. `uid` is empty if the pod does not name it.

    `part` distinguishes the gangs of one object. `size` is the size of the pod's gang; None if the pod does not say it.
    `early`: the other pods are created after this one, perhaps for another size.
    """

    name: str
    uid: str = ""
    part: str = ""
    role: str = ""
    size: int | None = None
    early: bool = False


class Desired(NamedTuple):
    """The desired state of an object: the `size` of each gang, and the number of `pods` of all gangs.

    `idle` says why the object wants no pods now; empty if it wants some. `roles` are the sizes of the gang's roles by
    name; empty if it has none. `late` are the pod templates of the roles whose members are created only once others are
    ready; None if only the first such member shows what the others will be like. `beside` says which of them go to the
    domain of a member of another role. `remedy` says how to have those members created at once. `least` is the minimum
    that the object's fields state for the gang as a whole, None if they state none: then it is `size`. If it states
    them, `priority_class`, `time_s` and `topology` are its PriorityClass, its longest wait and the label whose domain
    takes the whole gang. `gang` is whether they ask for gangs, None if they say nothing of it. `completions`,
    `succeeded`, `given_up`, `series`, `recreates_all`, `patient`, `ends_by`, `began`, `succeeded_at` and `not_yet` are
    as in `WorkloadFacts`.
    """

    size: int
    pods: int
    roles: Mapping[str, int] = {}
    idle: str = ""
    late: Mapping[str, Raw | None] = {}
    beside: Mapping[str, Beside] = {}
    remedy: str = ""
    least: int | None = None
    priority_class: str = ""
    time_s: float | None = None
    topology: str = ""
    gang: bool | None = None
    completions: int | None = None
    succeeded: int = 0
    given_up: int = 0
    series: tuple[Series, ...] = ()
    recreates_all: bool = False
    patient: bool = False
    ends_by: float = 0.0
    began: float = 0.0
    succeeded_at: float = 0.0
    not_yet: tuple[str, ...] = ()


_UNKNOWN = Desired(size=1, pods=1)
"""What is taken of an object that cannot be read."""


class Object(Struct, gc=False):
    """The part that all decoded objects have."""

    metadata: wire.Meta


Form = TypeVar("Form", bound=Object)
_BARE = msgspec.json.Decoder(Object)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Form]):
    """A kind of workload.

    `controllers` are the controllers of its pods, as API group and kind; None if any object may control them. `mark`
    recognises a pod with one of them.
    `form` has the fields of the object that are read. `desired` converts them; it raises ValueError with a sentence for
    a person. The success of a gang is that of its role `leading`; empty if all members must succeed. `tops` are the
    kinds whose objects create objects of this kind, if they are watched too: their names by API group and kind.
    `annotations` are those of the object that count, beside the ones that all kinds have, with their meaning. `below`
    are the fields that are read of a spec that the form leaves undecoded; None if it decodes the spec.
    """

    row: WorkloadRow
    controllers: tuple[tuple[str, str], ...] | None
    mark: Callable[[Marks], Mark | None]
    form: type[Form]
    desired: Callable[[Form], Desired]
    leading: str = ""
    tops: Mapping[tuple[str, str], str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    below: FieldTree | None = None

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Form]:
        return msgspec.json.Decoder(self.form)

    @cached_property
    def keys(self) -> Keys:
        """The names of the fields that declare its gangs, for messages."""
        kind = self.row.kind
        return Keys(group=f"their {kind}", minimum=f"{MINIMUM} of the {kind}", time="", role="", kind=kind)

    def workload(self, mark: Mark) -> Workload:
        """The workload of a pod with this mark."""
        declaration = Declaration(
            group=group_name(self.row.name, mark.name, mark.part),
            role=mark.role,
            min_member=mark.size,
            source=self.row.name,
            keys=self.keys,
            objects=(self.row.name,),
            open_roles=True,
            leading=self.leading,
            object_name=mark.name,
            made_with=None if mark.early else mark.size,
        )
        return Workload(self.row.name, mark.name, declaration, mark.uid)

    def read(
        self, raw: Raw | bytes, version: str = "", admission: Reader | None = None
    ) -> tuple[str | None, ForeignGroup]:
        """The object's resourceVersion and its group. An unreadable object has a `ForeignGroup.error`.

        `version` is the version of the API in which the object is served, by default the first in the row. `admission`
        is what the API server adds to pods that are created later, as far as it is known.

        Raises:
            msgspec.DecodeError: it is not a Kubernetes object.
        """
        desired, error, ignored = _UNKNOWN, "", tuple[str, ...]()
        try:
            workload = self._decoder.decode(raw)
            meta = workload.metadata
            desired = self.desired(workload)
            ignored = tuple(unheeded(workload))
        except msgspec.ValidationError as fault:
            meta = _BARE.decode(raw).metadata
            error = f"it cannot be read ({printable(str(fault), limit=200)}): correct it."
        except ValueError as fault:
            error = printable(str(fault), limit=500)
        version = version or self.row.resource.versions[0]
        group = self._group(
            meta, desired, error, version=version, ignored=ignored, admission=admission or Admission().reader()
        )
        return meta.resource_version, group

    def _group(
        self,
        meta: wire.Meta,
        desired: Desired,
        error: str,
        *,
        version: str,
        ignored: tuple[str, ...],
        admission: Reader,
    ) -> ForeignGroup:
        annotations = meta.annotations or {}
        gang, least = None, None
        try:
            gang = _gang_annotation(annotations)
            least = count(MINIMUM, annotations[MINIMUM.name]) if MINIMUM.name in annotations else None
        except ValueError as fault:
            error = error or str(fault)
            # Whatever was meant, the pods must not be bound one by one.
            gang = True if gang is None else gang
        namespace, spec, top = meta.namespace or "default", None, self._top(meta)
        if not error:
            try:
                # For an object below another one the core determines the minimum, because either object may set it.
                spec = _spec(desired, least if top is None else None, namespace, admission)
            except ValueError as fault:
                error = str(fault)
        return ForeignGroup(
            dialect=self.row.name,
            key=GroupKey(namespace, meta.name or ""),
            uid=meta.uid or "",
            created=meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0,
            spec=spec,
            error=f"{self.row.kind} {meta.name}: {error}" if error else "",
            workload=WorkloadFacts(
                title=self.row.kind,
                api_version=f"{self.row.resource.group}/{version}",
                remedy=desired.remedy,
                gang=desired.gang if gang is None else gang,
                size=desired.pods,
                idle="is being deleted" if meta.deletion_timestamp else desired.idle,
                least=least,
                top=top,
                completions=desired.completions,
                succeeded=desired.succeeded,
                given_up=desired.given_up,
                series=desired.series,
                recreates_all=desired.recreates_all,
                patient=desired.patient,
                ends_by=desired.ends_by,
                began=desired.began,
                succeeded_at=desired.succeeded_at,
                owner=_owner(meta),
                not_yet=desired.not_yet,
                ignored=ignored,
            ),
        )

    def _top(self, meta: wire.Meta) -> TopOwner | None:
        """The object of a watched kind whose controller has created this one; None if there is none."""
        for owner in meta.owner_references or () if self.tops else ():
            kind = self.tops.get((owner.api_version.rpartition("/")[0], owner.kind))
            if owner.controller and kind is not None:
                return TopOwner(kind, owner.kind, owner.name, owner.uid)
        return None


def _owner(meta: wire.Meta) -> str:
    """The UID of the object that owns this one, its controller first; empty if none does."""
    owners = sorted(meta.owner_references or (), key=lambda owner: not owner.controller)
    return owners[0].uid if owners else ""


def _spec(desired: Desired, least: int | None, namespace: str, admission: Reader) -> GroupSpec:
    """The terms of each gang. A minimum that the object's owner chose (`least`) counts for the gang as a whole.

    It takes precedence over the one that the object's fields state.

    If it is larger than the number of members that are created at once, the later roles contribute the rest, in order.

    Raises:
        ValueError: no placeholders can be reserved for members that are created later; a sentence for a person.
    """
    least = desired.least if least is None else least
    late = {name: desired.roles[name] for name in desired.late}
    roles = desired.roles if least is None else shared(least, desired.size, late)
    role_values = [
        replace(
            template.role(
                name,
                number,
                desired.late[name],
                namespace=namespace,
                remedy=desired.remedy,
                admission=admission,
            ),
            beside=desired.beside.get(name),
        )
        if number and name in desired.late
        else Role(name=name, min_member=number)
        for name, number in roles.items()
    ]
    return GroupSpec(
        min_member=max(1, desired.size if least is None else least),
        roles=tuple(role_values),
        priority_class=desired.priority_class,
        max_schedule_time_s=desired.time_s,
        topology=Topology(desired.topology) if desired.topology else None,
    )


def _gang_annotation(annotations: Mapping[str, str]) -> bool | None:
    text = annotations.get(GANG)
    if text is None:
        return None
    if text not in _GANG:
        raise ValueError(f'The annotation {GANG} is {quoted(text)}: write "true" or "false".')
    return _GANG[text]


def has_ended(conditions: Sequence[wire.ConditionState] | None, *names: str) -> bool:
    """Whether one of the conditions with these names is true, which says that the object has ended."""
    return any(condition.type in names and condition.status == "True" for condition in conditions or ())


def group_name(kind: str, name: str, part: str = "") -> str:
    """The name of a gang, valid for a PodGroup: a name that would be too long is shortened and gets a digest."""
    full = ".".join(filter(None, (kind, name, part)))
    if len(full) <= _LONGEST_NAME:
        return full
    digest = hashlib.sha256(full.encode()).hexdigest()[:_DIGEST]
    return f"{full[: _LONGEST_NAME - _DIGEST - 1].rstrip('.-')}-{digest}"


def controlled(api_group: str, kind: str) -> Callable[[Marks], Mark | None]:
    """Recognises the pods whose controller is the object itself."""

    def mark(marks: Marks) -> Mark | None:
        owner = marks.owner
        return Mark(owner.name, owner.uid) if (owner.api_group, owner.kind) == (api_group, kind) else None

    return mark


def makes_no_pods(_: Marks) -> Mark | None:
    """Recognises no pod, because the kind creates objects of another kind, which create the pods."""
    return None
