"""What the fields of a workload's object mean to gangsched, stated where they are decoded.

A field that is decoded says what it decides (`means`) or that it is not honoured although its own system honours it
(`ignored`); the gang's Event then names it. The tables in docs/gangs.md are made from these statements.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct

FieldTree: TypeAlias = "Mapping[str, FieldTree | None] | list[FieldTree]"
"""Fields by name with the fields below them, None for a value; a list with one tree is a list of such objects."""

_KEPT = 256
_IGNORED = "ignored"
_EMPTY = (b"null", b'""', b"{}", b"[]", b"0", b"false")

ABSENT = Raw(b"null")
"""The value of a field that is not honoured and not in use."""


class Field(NamedTuple):
    """A decoded field: its path in the object, what it decides, and whether it is not honoured."""

    path: str
    meaning: str
    ignored: bool


def means(meaning: str) -> Meta:
    """The statement that a field is honoured, and what it decides."""
    return Meta(description=meaning)


def ignored(meaning: str) -> Meta:
    """The statement that a field is not honoured, and what it decides in its own system. Its type is `Raw`."""
    return Meta(description=meaning, extra={_IGNORED: True})


def is_ignored(extra: Mapping[str, Any] | None) -> bool:
    """Whether the statement with this `extra` says that its field is not honoured."""
    return bool((extra or {}).get(_IGNORED))


def fields_of(form: type[Struct], path: str = "") -> Iterator[Field]:
    """The fields of a decoded object, except its metadata, in order. A field with nested fields is not listed itself.

    Raises:
        TypeError: a field states nothing.
    """
    hints = _hints(form)
    for field in msgspec.structs.fields(form):
        if not path and field.name == "metadata":
            continue
        name, hint = f"{path}{field.encode_name}", hints[field.name]
        meta = _meta_of(hint)
        nested, many = _nested(hint)
        if meta is not None:
            yield Field(name, meta.description or "", is_ignored(meta.extra))
        elif nested is not None:
            yield from fields_of(nested, f"{name}[]." if many else f"{name}.")
        else:
            raise TypeError(f"{form.__name__}.{field.name} does not say what it means")


def unheeded(instance: Struct, path: str = "") -> Iterator[str]:
    """The paths of the fields in use that are not honoured."""
    hints = _hints(type(instance))
    for field in msgspec.structs.fields(type(instance)):
        value, name = getattr(instance, field.name), f"{path}{field.encode_name}"
        meta = _meta_of(hints[field.name])
        if meta is not None and is_ignored(meta.extra):
            if bytes(value).strip() not in _EMPTY:
                yield name
        elif meta is None and field.name != "metadata":
            for key, part in _parts(value):
                yield from unheeded(part, f"{name}{key}.")


@lru_cache(_KEPT)
def _hints(form: type[Struct]) -> Mapping[str, Any]:
    return get_type_hints(form, include_extras=True)


def _parts(value: object) -> Iterator[tuple[str, Struct]]:
    if isinstance(value, Struct):
        yield "", value
    elif isinstance(value, Mapping):
        yield from ((f".{key}", part) for key, part in value.items() if isinstance(part, Struct))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield from ((f"[{number}]", part) for number, part in enumerate(value) if isinstance(part, Struct))


def _meta_of(hint: object) -> Meta | None:
    if get_origin(hint) is Annotated:
        return next((argument for argument in get_args(hint)[1:] if isinstance(argument, Meta)), None)
    return None


def _nested(hint: object) -> tuple[type[Struct] | None, bool]:
    """The structs inside this type, and whether there may be several."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        members = [_nested(member) for member in get_args(hint) if member is not type(None)]
        return members[0] if members else (None, False)
    if origin in (list, dict):
        return _nested(get_args(hint)[-1])[0], True
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint, False
    return None, False
