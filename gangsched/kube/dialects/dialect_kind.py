"""A custom resource of another system with the terms of a group: its API and its parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from gangsched.config.dialects import CustomResource, Key
from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.duration import LONGEST_S, SHORTEST_S
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec, SeenCondition, SeenPhase
from gangsched.core.objects.quantity import InvalidQuantity, unrounded
from gangsched.core.objects.requests import counted_amounts
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.wording import printable
from gangsched.kube import wire
from gangsched.kube.dialects.dialect_fields import Field, Use, ignored_fields, ignored_texts

MOST_MEMBERS = 2**31 - 1
MOST_ROLES = 64
"""Largest number of roles in a PodGroup."""
_OF_QUOTAS = ("count/", "requests.", "limits.")
Resources = dict[str, str | int | float]
"""Amounts by resource, as the API server accepts them."""
_LONGEST_TEXT = 253
"""Longest name in Kubernetes, in characters."""
_LONGEST_ERROR = 500
"""Longest error, in characters. A name may take a quarter of a megabyte, and an error about it is written to every
member."""

Spec = TypeVar("Spec", bound=Struct)


class _Object(Struct, gc=False):
    metadata: wire.Meta
    spec: Raw = Raw(b"{}")


_OBJECT = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Spec]):
    """PodGroups of another system, served as `resource`.

    `title` is its kind. `spec` has the fields that gangsched reads, and `fields` says what becomes of each field and of
    each key of the object. `terms` converts them and the metadata to the core's terms. It raises ValueError with a
    sentence for a person if they are unsupported. `also_ignored` yields those that are honoured in some cases, but not
    in this one. `parent` returns the object above it in a tree of groups, and `templated` whether it names the Workload
    of whose template it was made. The objects are of the dialect `within`, if
    they are filed under another name. `phase` reads, in a version of the API, what gangsched may write of an
    object's status: of objects in the namespaces `phase_in`, or in all if that is None.
    """

    resource: CustomResource
    spec: type[Spec]
    terms: Callable[[Spec, wire.Meta], GroupSpec]
    fields: tuple[Field, ...] = ()
    also_ignored: Callable[[Spec, wire.Meta], Iterable[str]] = lambda *_: ()
    phase: Callable[[Raw | bytes, str], SeenPhase | SeenCondition | None] | None = None
    phase_in: frozenset[str] | None = None
    parent: Callable[[Spec], str] = lambda _: ""
    templated: Callable[[Spec], bool] = lambda _: False
    within: str = ""
    title: str = "PodGroup"

    @property
    def name(self) -> str:
        """Its usual name, such as `podgroups.scheduling.volcano.sh`."""
        return self.resource.name

    def read(self, dialect: str, raw: Raw | bytes, version: str = "") -> tuple[str | None, ForeignGroup]:
        """The resourceVersion and the group of the object, which was read in this `version` of the API.

        A group with an unreadable spec has a `ForeignGroup.error`. Without a version nothing is written to it.

        Raises:
            msgspec.DecodeError: it is not a Kubernetes object.
        """
        decoded = _OBJECT.decode(raw)
        meta = decoded.metadata
        spec, error, ignored, parent, templated = None, "", tuple[str, ...](), "", False
        try:
            foreign_spec = msgspec.json.decode(decoded.spec, type=self.spec)
            parent, templated = printable(self.parent(foreign_spec), limit=_LONGEST_TEXT), self.templated(foreign_spec)
            terms = self.terms(foreign_spec, meta)
            _check_texts(terms)
            spec, ignored = terms, (*self._ignored(decoded), *self.also_ignored(foreign_spec, meta))
        except (msgspec.DecodeError, RecursionError) as fault:
            error = f"spec cannot be read ({printable(str(fault), limit=200)}): correct it"
        except ValueError as fault:
            error = printable(str(fault), limit=_LONGEST_ERROR)
        return meta.resource_version, ForeignGroup(
            dialect=dialect,
            key=GroupKey(meta.namespace or "default", meta.name or ""),
            uid=meta.uid or "",
            created=meta.creation_timestamp.timestamp() if meta.creation_timestamp is not None else 0.0,
            spec=spec,
            error=f"{self.name} {meta.name}: {error}." if error else "",
            phase=self._phase(raw, meta.namespace or "default", version),
            ignored=ignored,
            parent=parent,
            made_for=_made_for(meta.owner_references or (), templated=templated),
        )

    def _phase(self, raw: Raw | bytes, namespace: str, version: str) -> SeenPhase | SeenCondition | None:
        """What the object's status says of what gangsched may write; None if it writes nothing there."""
        if self.phase is None or not version or not (self.phase_in is None or namespace in self.phase_in):
            return None
        return self.phase(raw, version)

    def _ignored(self, decoded: _Object) -> tuple[str, ...]:
        """The fields and keys that the object sets and that are not honoured."""
        if not any(field.use is Use.TOLD for field in self.fields):
            return ()
        texts = (decoded.metadata.annotations or {}, decoded.metadata.labels or {})
        used = {
            field.name: texts[field.name.label][field.name.name]
            for field in self.fields
            if isinstance(field.name, Key) and field.name.name in texts[field.name.label]
        }
        return (*ignored_fields(self.fields, msgspec.json.decode(decoded.spec)), *ignored_texts(self.fields, used))


def _made_for(owners: Sequence[wire.Owner], *, templated: bool) -> str:
    """The UID of the object whose controller has made the group unasked; empty if there is none, as far as one can see.

    The group that the Job controller makes of the Job's own Workload is owned by that Workload too. One of another
    Workload's template is not: the Job is part of something larger, which asks for this group
    (job_scheduling_manager.go of Kubernetes 1.37.2).
    """
    if templated and not any(owner.kind == "Workload" for owner in owners):
        return ""
    return next((owner.uid for owner in owners if owner.controller), "")


def _check_texts(terms: GroupSpec) -> None:
    """Check that the names in these terms are short and printable, because they appear in messages.

    Raises:
        ValueError: a name is too long, or has unprintable characters.
    """
    topology = terms.topology.key if terms.topology is not None else ""
    for term, texts in (
        ("role", [role.name for role in terms.roles]),
        ("PriorityClass", [terms.priority_class]),
        ("topology level", [topology]),
    ):
        for text in texts:
            if len(text) > _LONGEST_TEXT or not text.isprintable():
                raise ValueError(
                    f"spec names a {term} {printable(text, limit=40)!r}: write at most {_LONGEST_TEXT} characters, and "
                    "only printable ones"
                )


def at_least_one(field: str, number: int) -> int:
    """The minimum in the field.

    Raises:
        ValueError: it is not from 1 to 2³¹-1.
    """
    if not 1 <= number <= MOST_MEMBERS:
        raise ValueError(f"{field} is {number}: write a whole number from 1 to {MOST_MEMBERS}")
    return number


def total(number: int, roles: Iterable[Role]) -> int:
    """The minimum in spec.minMember, which may be missing if roles have minima.

    Raises:
        ValueError: it is out of range.
    """
    return 1 if number == 0 and any(role.min_member for role in roles) else at_least_one("spec.minMember", number)


def roles(field: str, minima: Mapping[str, int], *, field_of_each: str = "") -> tuple[Role, ...]:
    """The roles with these names and minima, sorted by name; the fields are for messages.

    Raises:
        ValueError: there are too many, or a minimum is out of range.
    """
    if len(minima) > MOST_ROLES:
        raise ValueError(f"{field} has {len(minima)} entries: write at most {MOST_ROLES}")
    for name, number in minima.items():
        if not 0 <= number <= MOST_MEMBERS:
            entry = printable(f"{field} ({name}){field_of_each}", limit=100)
            raise ValueError(f"{entry} is {number}: write a whole number from 0 to {MOST_MEMBERS}")
    return tuple(Role(name=name, min_member=number) for name, number in sorted(minima.items()))


def resources(
    quantities: Mapping[str, str | int | float] | None, *, field: str = "spec.minResources", times: int = 1
) -> Amounts:
    """The amounts in the field, each of them this many `times`; without names of quotas, which no node has.

    Volcano's controllers write what the members use of a quota too, such as `count/pods` and `limits.cpu`.

    Raises:
        ValueError: an amount is unreadable or negative.
    """
    exact = {}
    for name, text in (quantities or {}).items():
        try:
            amount = unrounded(name, text)
        except InvalidQuantity:
            amount = -1
        if amount < 0:
            raise ValueError(f"{field} ({name}) is {text!r}: write an amount such as 8 or 16Gi")
        if not name.startswith(_OF_QUOTAS):
            exact[name] = amount * times
    return counted_amounts(exact)


def wait_s(field: str, seconds: float | None) -> float | None:
    """The longest wait in the field. None means the default, and so does 0, which would never let a group wait.

    Raises:
        ValueError: it is not from 1 second to 7 days.
    """
    if not seconds:
        return None
    if not SHORTEST_S <= seconds <= LONGEST_S:
        # A whole number may be too large for the format of a float.
        shown = seconds if isinstance(seconds, int) else f"{seconds:g}"
        raise ValueError(f"{field} is {shown} s: write {SHORTEST_S:g} s to {LONGEST_S:g} s, or leave it out")
    return float(seconds)
