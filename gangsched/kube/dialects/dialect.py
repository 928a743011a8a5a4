"""The base class of dialects, with the default parser of the texts under a dialect's keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from gangsched.config.dialects import DialectRow, Key
from gangsched.core.objects.declaration import Declaration, Keys
from gangsched.core.objects.duration import parse_duration
from gangsched.core.objects.wording import printable
from gangsched.kube.dialects.dialect_fields import Field, Use, ignored_texts
from gangsched.kube.dialects.dialect_kind import MOST_MEMBERS, Kind

Texts = Mapping[str, str]
"""The labels or annotations of a pod."""
LONGEST_NAME = 253
"""Longest name of any object, in characters. A name in an annotation could otherwise take a quarter of a megabyte."""
_LONGEST_QUOTE = 40


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A way to declare a group, with the keys of its `row`.

    `texts` says what becomes of further keys of pods. `seconds` parses the text under a time key and raises ValueError
    if it is invalid. A pod without any of `marks` does not use this dialect. `kind` is that system's custom resource
    with the terms of a group; None if there is none, and `create` says what to do if an object is missing. With
    `open_roles` a pod may name a role that the group does not list. `further` are other custom resources, by the name
    under which their objects are filed.
    """

    row: DialectRow
    texts: tuple[Field, ...] = ()
    seconds: Callable[[str], float] = parse_duration
    kind: Kind[Any] | None = None
    create: str = "create it"
    open_roles: bool = False
    further: Mapping[str, Kind[Any]] = field(default_factory=dict)

    @property
    def marks(self) -> tuple[Key, ...]:
        return self.row.group

    def nameless_group(self, labels: Texts, annotations: Texts, *, pod: str, owner: str) -> str:  # noqa: ARG002 - for overrides
        """The group of a pod without a group name: from its other texts, its name or its creator's name."""
        return ""

    @property
    def terms(self) -> tuple[Key, ...]:
        """All keys that are read, except those of the group's name."""
        others = (field.name for field in self.texts if field.use is not Use.NEEDLESS and isinstance(field.name, Key))
        return (*self.row.minimum, *self.row.time, *self.row.role, *others)

    @cached_property
    def keys(self) -> Keys:
        """The names of the keys, for messages."""
        return Keys(
            group=_first(self.row.group),
            minimum=_first(self.row.minimum),
            time=_first(self.row.time),
            role=_first(self.row.role),
            kind=self.kind.name if self.kind is not None else "PodGroup",
            create=self.create,
        )

    def declare(self, group: str, texts: Mapping[Key, str]) -> Declaration | None:
        """The declaration of a pod with these texts; None if it names no group. An empty name names none.

        An unreadable text becomes the declaration's `error`.
        """
        role = next((texts[key] for key in self.row.role if texts.get(key)), "")
        base = Declaration(
            group=printable(group, limit=LONGEST_NAME),
            role=printable(role, limit=LONGEST_NAME),
            source=self.row.name,
            keys=self.keys,
            objects=(self.row.name,) if self.kind is not None else (),
            open_roles=self.open_roles,
            ignored=ignored_texts(self.texts, texts) if self.texts else (),
        )
        if not group:
            return self.nameless(base, texts)
        try:
            check_name("group", group)
            check_name("role", role)
            return self.parse(base, texts)
        except ValueError as error:
            return replace(base, error=str(error))

    def nameless(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:  # noqa: ARG002 - for overrides
        """The declaration of a pod with an empty group name. In most systems such a pod has no group."""
        return None

    def parse(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        """The declaration with its terms; None if the texts mean that the pod belongs to no gang.

        Raises:
            ValueError: a text is unreadable; the message is a sentence for a person.
        """
        least = next((count(key, texts[key]) for key in self.row.minimum if key in texts), None)
        longest_s = next((self._time_s(key, texts[key]) for key in self.row.time if key in texts), None)
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
        ValueError: the text is not a whole number from 1 to 2³¹-1.
    """
    if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_MEMBERS)) and 1 <= int(text) <= MOST_MEMBERS:
        return int(text)
    raise ValueError(f"{sentence(key)} is {quoted(text)}: write a whole number from 1 to {MOST_MEMBERS}.")


def check_name(subject: str, name: str) -> None:
    """Check that a name can be shown to a person.

    Raises:
        ValueError: the name is too long, or has unprintable characters.
    """
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"The {subject}'s name {quoted(name)} cannot be used: write at most {LONGEST_NAME} characters, and only "
            "printable ones."
        )


def sentence(key: Key) -> str:
    """The key for the start of a sentence."""
    words = str(key)
    return words[0].upper() + words[1:]


def quoted(text: str) -> str:
    """The text for a sentence: on one line and of limited length."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")
