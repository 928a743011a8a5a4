"""What of an object is kept for a snapshot: exactly the fields that the reader of its kind decodes.

A list of what to keep, not of what to leave out, so that nothing that a new field or a new kind holds gets into a
snapshot before gangsched reads it. Values of free form (`Any`), such as a driver's parameters, decide nothing and are
not kept. Of a field that is not honoured, which is only told, no more is kept than whether it is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import inspect

from gangsched.kube.workloads.workload_fields import FieldTree, is_ignored

Kept: TypeAlias = "Callable[[Any], Any]"
"""Returns what is kept of a value; of a value of another type than the reader expects, only that type."""

_CONTAINERS = (dict, list)


def kept_of(form: Any, raw: Any = None) -> Kept:  # noqa: ANN401 - any type that msgspec decodes
    """What is kept of a value that is decoded as `form`; what the form keeps undecoded is decoded as `raw`."""
    return _kept(inspect.type_info(form), raw)


def kept_below(fields: FieldTree | None) -> Kept:
    """What is kept of a value of which these fields are read."""
    if fields is None:
        return _scalar
    if isinstance(fields, list):
        return _each_item(kept_below(fields[0]))
    return _fields({name: kept_below(inner) for name, inner in fields.items()})


def _kept(type_: inspect.Type, raw: Any) -> Kept:  # noqa: ANN401 - a table
    if isinstance(type_, inspect.Metadata):
        return bool if is_ignored(type_.extra) else _kept(type_.type, raw)
    if isinstance(type_, inspect.StructType):
        return _struct(type_, raw)
    if isinstance(type_, inspect.DictType):
        return _each_value(_kept(type_.value_type, raw))
    if isinstance(type_, inspect.CollectionType):
        return _each_item(_kept(type_.item_type, raw))
    if isinstance(type_, inspect.UnionType):
        others = [member for member in type_.types if not isinstance(member, inspect.NoneType)]
        containers = [member for member in others if isinstance(member, inspect.StructType | inspect.CollectionType)]
        inner = _kept((containers or others)[0], raw)
        return _scalar_or(inner) if containers and len(others) > len(containers) else inner
    if isinstance(type_, inspect.RawType):
        return _nothing if raw is None else kept_of(raw)
    return _nothing if isinstance(type_, inspect.AnyType) else _scalar


def _struct(type_: inspect.StructType, raw: Any) -> Kept:  # noqa: ANN401
    return _fields({field.encode_name: _kept(field.type, raw) for field in type_.fields if not _is_free(field.type)})


def _fields(fields: Mapping[str, Kept]) -> Kept:
    def kept(value: Any) -> Any:  # noqa: ANN401
        if not isinstance(value, Mapping):
            return _nothing(value)
        return {name: fields[name](inner) for name, inner in value.items() if name in fields}

    return kept


def _is_free(type_: inspect.Type) -> bool:
    """Whether the type says nothing about the content of its values."""
    if isinstance(type_, inspect.Metadata):
        return _is_free(type_.type)
    if isinstance(type_, inspect.UnionType):
        return all(_is_free(member) or isinstance(member, inspect.NoneType) for member in type_.types)
    if isinstance(type_, inspect.DictType):
        return _is_free(type_.value_type)
    if isinstance(type_, inspect.CollectionType):
        return _is_free(type_.item_type)
    return isinstance(type_, inspect.AnyType)


def _each_value(inner: Kept) -> Kept:
    def kept(value: Any) -> Any:  # noqa: ANN401
        if not isinstance(value, Mapping):
            return _nothing(value)
        return {name: inner(item) for name, item in value.items()}

    return kept


def _each_item(inner: Kept) -> Kept:
    return lambda value: [inner(item) for item in value] if isinstance(value, list) else _nothing(value)


def _scalar_or(container: Kept) -> Kept:
    return lambda value: container(value) if isinstance(value, _CONTAINERS) else value


def _scalar(value: Any) -> Any:  # noqa: ANN401
    return _nothing(value) if isinstance(value, _CONTAINERS) else value


def _nothing(value: Any) -> Any:  # noqa: ANN401
    """An empty value of the same type."""
    return None if value is None else type(value)()
