"""What becomes of each field of a dialect: honoured, refused by name, not honoured and told, or without effect here.

A dialect's file lists its fields. docs/dialects.md shows them, and whatever a group sets of the fields that are told is
named in an Event on the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from gangsched.config.dialects import Key


class Use(StrEnum):
    """What becomes of a field, in the words of the docs."""

    HONOURED = "yes"
    """It means here what it means there, or nearly so."""
    REFUSED = "refused"
    """It cannot be honoured, and scheduling without it would be wrong: the group waits, and its reason names it."""
    TOLD = "no, told"
    """It is not honoured, which may change the outcome: an Event on the group says so."""
    NEEDLESS = "not needed"
    """It changes nothing that gangsched does."""


class Field(NamedTuple):
    """One field: a path below `spec` of the object or in the JSON of an annotation, or a key of pods or of the object.

    In a path, `[]` follows the name of a list, and means each of its items. `usual` are values that a field that is
    told may have without changing the outcome.
    """

    name: str | Key
    use: Use
    note: str
    usual: tuple[object, ...] = ()


def honoured(name: str | Key, note: str) -> Field:
    """A field that is honoured; the note says how."""
    return Field(name, Use.HONOURED, note)


def refused(name: str | Key, note: str) -> Field:
    """A field that is refused; the note says when, and what to do instead."""
    return Field(name, Use.REFUSED, note)


def told(name: str | Key, note: str, *, usual: tuple[object, ...] = ()) -> Field:
    """A field that is not honoured, which an Event says; the note says what would be different."""
    return Field(name, Use.TOLD, note, usual)


def needless(name: str | Key, note: str) -> Field:
    """A field without effect here; the note says why."""
    return Field(name, Use.NEEDLESS, note)


def ignored_fields(fields: Iterable[Field], spec: object) -> Iterator[str]:
    """The names of the fields that are told and that this decoded spec sets to an unusual value."""
    for path, usual in _told_paths(fields):
        if any(_is_unusual(value, usual) for value in _values_at(spec, path.split("."))):
            yield f"spec.{path}"


def mark_ignored(fields: Iterable[Field], spec: object, target: object) -> None:
    """Set the fields that `ignored_fields` finds in this decoded spec in another one too, without their values."""
    for path, usual in _told_paths(fields):
        _mark(spec, target, path.split("."), usual)


def _told_paths(fields: Iterable[Field]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """The paths of the fields that are told, with their usual values."""
    for field in fields:
        if field.use is Use.TOLD and isinstance(field.name, str):
            yield field.name, field.usual


def _is_unusual(value: object, usual: tuple[object, ...]) -> bool:
    return value not in (None, "", [], {}, *usual)


def _mark(source: object, target: object, path: list[str], usual: tuple[object, ...]) -> None:
    name, rest = path[0].removesuffix("[]"), path[1:]
    value = source.get(name) if isinstance(source, dict) else None
    if not _is_unusual(value, usual) or not isinstance(target, dict):
        return
    if path[0].endswith("[]"):
        for source_item, target_item in zip(_listed(value), _listed(target.get(name)), strict=False):
            _mark(source_item, target_item, rest, usual)
    elif rest:
        _mark(value, target.setdefault(name, {}), rest, usual)
    else:
        # What the reader decodes itself is kept, emptied, and must keep its type.
        left = target.setdefault(name, True)
        target[name] = "true" if left == "" else {"inUse": True} if left == {} else left


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def ignored_texts(fields: Iterable[Field], texts: Mapping[Key, str]) -> tuple[str, ...]:
    """The keys that are told and that have an unusual value among these texts, in words."""
    return tuple(
        str(field.name)
        for field in fields
        if field.use is Use.TOLD and isinstance(field.name, Key) and texts.get(field.name, "") not in ("", *field.usual)
    )


def _values_at(value: object, path: list[str]) -> Iterator[object]:
    """All values at the path; none where a part of it is missing."""
    if not path:
        yield value
        return
    name, rest = path[0], path[1:]
    child = value.get(name.removesuffix("[]")) if isinstance(value, dict) else None
    if not name.endswith("[]"):
        yield from _values_at(child, rest) if child is not None else ()
    elif isinstance(child, list):
        for item in child:
            yield from _values_at(item, rest)
