"""A custom resource of another system that says the terms of a group: where it is found and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from gangsched.config.dialects import CustomResource
from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.duration import LONGEST_S, SHORTEST_S
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.kube import wire
from gangsched.kube.errors import printable

MOST_MEMBERS = 2**31 - 1
MOST_ROLES = 64
"""As many as a PodGroup may have."""
_LONGEST_TEXT = 253
"""As long as any name in Kubernetes."""
_LONGEST_ERROR = 500
"""A name may have a quarter of a megabyte, and what is wrong with it is written to every member."""

Spec = TypeVar("Spec", bound=Struct)


class _Object(Struct, gc=False):
    metadata: wire.Meta
    spec: Raw = Raw(b"{}")


_OBJECT = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[Spec]):
    """PodGroups of another system, which are such a `resource`.

    `spec` has the fields that are read; `terms` makes of them, and of the metadata, what the core knows. It raises
    ValueError with a sentence for a person where they cannot be honoured.
    """

    resource: CustomResource
    spec: type[Spec]
    terms: Callable[[Spec, wire.Meta], GroupSpec]

    @property
    def name(self) -> str:
        """What people call it, such as `podgroups.scheduling.volcano.sh`."""
        return self.resource.name

    def read(self, dialect: str, raw: Raw | bytes) -> tuple[str | None, ForeignGroup]:
        """The object's resourceVersion and the group; see `ForeignGroup.error` for a spec that cannot be read.

        Raises:
            msgspec.DecodeError: it is no object of Kubernetes.
        """
        found = _OBJECT.decode(raw)
        meta = found.metadata
        spec, error = None, ""
        try:
            terms = self.terms(msgspec.json.decode(found.spec, type=self.spec), meta)
            _check_texts(terms)
            spec = terms
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
        )


def _check_texts(terms: GroupSpec) -> None:
    """See that what people are told of these terms is short, and can be shown on a terminal.

    Raises:
        ValueError: a name in them is too long, or has characters that cannot be shown.
    """
    topology = terms.topology.key if terms.topology is not None else ""
    for what, texts in (
        ("role", [role.name for role in terms.roles]),
        ("PriorityClass", [terms.priority_class]),
        ("topology level", [topology]),
    ):
        for text in texts:
            if len(text) > _LONGEST_TEXT or not text.isprintable():
                raise ValueError(
                    f"spec names a {what} {printable(text, limit=40)!r}: write at most {_LONGEST_TEXT} characters, and "
                    "only such as can be shown"
                )


def at_least_one(field: str, number: int) -> int:
    """The minimum under the field.

    Raises:
        ValueError: it is not from 1 to 2³¹-1.
    """
    if not 1 <= number <= MOST_MEMBERS:
        raise ValueError(f"{field} is {number}: write a whole number from 1 to {MOST_MEMBERS}")
    return number


def total(number: int, roles: Iterable[Role]) -> int:
    """The minimum under spec.minMember, which may be left out where roles have minima.

    Raises:
        ValueError: it is out of range.
    """
    return 1 if number == 0 and any(role.min_member for role in roles) else at_least_one("spec.minMember", number)


def roles(field: str, minima: Mapping[str, int], *, field_of_each: str = "") -> tuple[Role, ...]:
    """The roles of these names and minima, by name; the fields are for messages.

    Raises:
        ValueError: they are too many, or a minimum is out of range.
    """
    if len(minima) > MOST_ROLES:
        raise ValueError(f"{field} has {len(minima)} entries: write at most {MOST_ROLES}")
    for name, number in minima.items():
        if not 0 <= number <= MOST_MEMBERS:
            where = printable(f"{field} ({name}){field_of_each}", limit=100)
            raise ValueError(f"{where} is {number}: write a whole number from 0 to {MOST_MEMBERS}")
    return tuple(Role(name=name, min_member=number) for name, number in sorted(minima.items()))


def wait_s(field: str, seconds: float | None) -> float | None:
    """The longest wait under the field; none and 0, which would never let a group wait, leave it to the default.

    Raises:
        ValueError: it is not from 1 second to 7 days.
    """
    if not seconds:
        return None
    if not SHORTEST_S <= seconds <= LONGEST_S:
        # As a float a whole number may be too large to be shown.
        shown = seconds if isinstance(seconds, int) else f"{seconds:g}"
        raise ValueError(f"{field} is {shown} s: write {SHORTEST_S:g} s to {LONGEST_S:g} s, or leave it out")
    return float(seconds)
