"""One dialect: under which keys it says a group's name and terms, and how the texts under them are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace

from gangsched.core.objects.declaration import OWN_DIALECT, Declaration, Keys
from gangsched.core.objects.duration import parse_duration
from gangsched.kube.dialects.kind import MOST_MEMBERS, Kind
from gangsched.kube.errors import printable

LONGEST_NAME = 253
"""As long as any object's name may be. A name from an annotation could have a quarter of a megabyte."""
_LONGEST_QUOTE = 40


class Key(NamedTuple):
    """A label (else an annotation) of pods. A name that begins with a dot, as no annotation's can, is a field's."""

    name: str
    label: bool = False

    def __str__(self) -> str:
        if self.name.startswith("."):
            return f"the field {self.name[1:]}"
        return f"the {'label' if self.label else 'annotation'} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A way to name a group. `source` is its name in configuration, status and messages.

    The first key of `group` that has a text names the group. `minimum`, `time` and the first of `role` that has a text
    say the terms, empty where the dialect has no such key; `others` are keys that it reads besides. `seconds` reads the
    text under `time`, and raises ValueError with what to write. `marks`: a pod without any of these says nothing in
    this dialect. `kind` is the custom resource of that system which says the terms of a group of its name, None where
    there is none. With `open_roles` a role that the group does not list is no mistake.
    """

    source: str
    group: tuple[Key, ...]
    minimum: Key | None = None
    time: Key | None = None
    role: tuple[Key, ...] = ()
    others: tuple[Key, ...] = ()
    seconds: Callable[[str], float] = parse_duration
    kind: Kind[Any] | None = None
    open_roles: bool = False

    @property
    def marks(self) -> tuple[Key, ...]:
        return self.group

    def nameless_group(self, labels: Mapping[str, str], *, pod: str, owner: str) -> str:  # noqa: ARG002 - for one that cares
        """The group of a pod under whose keys no name is found, given its name and that of the pod which made it."""
        return ""

    @property
    def terms(self) -> tuple[Key, ...]:
        """All keys that are read beside the group's name."""
        return tuple(key for key in (self.minimum, self.time, *self.role, *self.others) if key is not None)

    @cached_property
    def keys(self) -> Keys:
        """Where things are said, for messages."""
        return Keys(
            group=str(self.group[0]),
            minimum=str(self.minimum or ""),
            time=str(self.time or ""),
            role=str(self.role[0]) if self.role else "",
            kind=self.kind.name if self.kind is not None else "PodGroup",
        )

    def declare(self, group: str, said: Mapping[Key, str]) -> Declaration | None:
        """What a pod says with these texts; None if it names no group, which an empty name does not.

        What cannot be read becomes the declaration's `error`.
        """
        role = next((said[key] for key in self.role if said.get(key)), "")
        base = Declaration(
            group=printable(group, limit=LONGEST_NAME),
            role=printable(role, limit=LONGEST_NAME),
            source=self.source,
            keys=self.keys,
            objects=(self.source,) if self.kind is not None else (),
            open_roles=self.open_roles,
        )
        if not group:
            return self.nameless(base, said)
        try:
            check_name("group", group)
            check_name("role", role)
            return self.parse(base, said)
        except ValueError as error:
            return replace(base, error=str(error))

    def nameless(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:  # noqa: ARG002 - for dialects that care
        """What a pod says whose group has an empty name: most systems take such a pod for one without a group."""
        return None

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        """The declaration with its terms; None if what is said means that the pod is no gang's.

        Raises:
            ValueError: a text cannot be read; its message is a sentence for a person.
        """
        return replace(
            base,
            min_member=count(self.minimum, said[self.minimum]) if self.minimum and self.minimum in said else None,
            max_schedule_time_s=self._time_s(said),
        )

    def _time_s(self, said: Mapping[Key, str]) -> float | None:
        if self.time is None or self.time not in said:
            return None
        try:
            return self.seconds(said[self.time])
        except ValueError:
            raise ValueError(
                f"{sentence(self.time)} is {quoted(said[self.time])}: write a duration from 1s to 168h, such as 90s, "
                "5m or 1h30m."
            ) from None


class OwnDialect(Dialect):
    """gangsched's own: its label means this scheduler and nothing else, so an empty name is a mistake."""

    def nameless(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:  # noqa: ARG002 - see there
        return replace(base, error=f"{sentence(self.group[0])} is empty: give it the group's name.")


OWN = OwnDialect(
    source=OWN_DIALECT,
    group=(Key("gangsched.io/pod-group", label=True),),
    minimum=Key("gangsched.io/min-member"),
    time=Key("gangsched.io/max-schedule-time"),
    role=(Key("gangsched.io/role", label=True),),
)

KUEUE = Dialect(
    source="kueue",
    group=(Key("kueue.x-k8s.io/pod-group-name", label=True),),
    minimum=Key("kueue.x-k8s.io/pod-group-total-count"),
)


def count(key: Key, text: str) -> int:
    """The number of members under the key.

    Raises:
        ValueError: it is no whole number from 1 to 2³¹-1.
    """
    if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_MEMBERS)) and 1 <= int(text) <= MOST_MEMBERS:
        return int(text)
    raise ValueError(f"{sentence(key)} is {quoted(text)}: write a whole number from 1 to {MOST_MEMBERS}.")


def check_name(what: str, name: str) -> None:
    """See that a name can be shown to a person.

    Raises:
        ValueError: it is too long, or has characters that cannot be shown.
    """
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"The {what}'s name {quoted(name)} cannot be used: write at most {LONGEST_NAME} characters, and only such "
            "as can be shown."
        )


def sentence(key: Key) -> str:
    """The key at the beginning of a sentence."""
    words = str(key)
    return words[0].upper() + words[1:]


def quoted(text: str) -> str:
    """The text for a sentence: on one line and not longer than a glance."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")
