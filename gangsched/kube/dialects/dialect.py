"""One dialect: how the texts under its keys are read, unless its own file says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from gangsched.config.dialects import Key, Row
from gangsched.core.objects.declaration import Declaration, Keys
from gangsched.core.objects.duration import parse_duration
from gangsched.kube.dialects.kind import MOST_MEMBERS, Kind
from gangsched.kube.errors import printable

LONGEST_NAME = 253
"""As long as any object's name may be. A name from an annotation could have a quarter of a megabyte."""
_LONGEST_QUOTE = 40


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A way to name a group, under the keys of its `row`.

    `others` are keys that it reads besides. `seconds` reads the text under a key of time, and raises ValueError with
    what to write. `marks`: a pod without any of these says nothing in this dialect. `kind` is the custom resource of
    that system which says the terms of a group of its name, None where there is none. With `open_roles` a role that the
    group does not list is no mistake.
    """

    row: Row
    others: tuple[Key, ...] = ()
    seconds: Callable[[str], float] = parse_duration
    kind: Kind[Any] | None = None
    open_roles: bool = False

    @property
    def marks(self) -> tuple[Key, ...]:
        return self.row.group

    def nameless_group(self, labels: Mapping[str, str], *, pod: str, owner: str) -> str:  # noqa: ARG002 - for one that cares
        """The group of a pod under whose keys no name is found, given its name and that of the pod which made it."""
        return ""

    @property
    def terms(self) -> tuple[Key, ...]:
        """All keys that are read beside the group's name."""
        return (*self.row.minimum, *self.row.time, *self.row.role, *self.others)

    @cached_property
    def keys(self) -> Keys:
        """Where things are said, for messages."""
        return Keys(
            group=_first(self.row.group),
            minimum=_first(self.row.minimum),
            time=_first(self.row.time),
            role=_first(self.row.role),
            kind=self.kind.name if self.kind is not None else "PodGroup",
        )

    def declare(self, group: str, said: Mapping[Key, str]) -> Declaration | None:
        """What a pod says with these texts; None if it names no group, which an empty name does not.

        What cannot be read becomes the declaration's `error`.
        """
        role = next((said[key] for key in self.row.role if said.get(key)), "")
        base = Declaration(
            group=printable(group, limit=LONGEST_NAME),
            role=printable(role, limit=LONGEST_NAME),
            source=self.row.name,
            keys=self.keys,
            objects=(self.row.name,) if self.kind is not None else (),
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
        least = next((count(key, said[key]) for key in self.row.minimum if key in said), None)
        longest_s = next((self._time_s(key, said[key]) for key in self.row.time if key in said), None)
        return replace(base, min_member=least, max_schedule_time_s=longest_s)

    def _time_s(self, key: Key, text: str) -> float:
        try:
            return self.seconds(text)
        except ValueError:
            raise ValueError(
                f"{sentence(key)} is {quoted(text)}: write a duration from 1s to 168h, such as 90s, 5m or 1h30m."
            ) from None


def _first(keys: tuple[Key, ...]) -> str:
    return str(keys[0]) if keys else ""


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
