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


def _kept(said: inspect.Type, raw: Any) -> Kept:  # noqa: ANN401 - a table
    if isinstance(said, inspect.Metadata):
        return bool if is_ignored(said.extra) else _kept(said.type, raw)
    if isinstance(said, inspect.StructType):
        return _struct(said, raw)
    if isinstance(said, inspect.DictType):
        return _each_value(_kept(said.value_type, raw))
    if isinstance(said, inspect.CollectionType):
        return _each_item(_kept(said.item_type, raw))
    if isinstance(said, inspect.UnionType):
        others = [each for each in said.types if not isinstance(each, inspect.NoneType)]
        containers = [each for each in others if isinstance(each, inspect.StructType | inspect.CollectionType)]
        kept = _kept((containers or others)[0], raw)
        return _scalar_or(kept) if containers and len(others) > len(containers) else kept
    if isinstance(said, inspect.RawType):
        return _nothing if raw is None else kept_of(raw)
    return _nothing if isinstance(said, inspect.AnyType) else _scalar


def _struct(said: inspect.StructType, raw: Any) -> Kept:  # noqa: ANN401
    return _fields({field.encode_name: _kept(field.type, raw) for field in said.fields if not _is_free(field.type)})


def _fields(fields: Mapping[str, Kept]) -> Kept:
    def kept(value: Any) -> Any:  # noqa: ANN401
        if not isinstance(value, Mapping):
            return _nothing(value)
        return {name: fields[name](inner) for name, inner in value.items() if name in fields}

    return kept


def _is_free(said: inspect.Type) -> bool:
    """Whether the type says nothing about the content of its values."""
    if isinstance(said, inspect.Metadata):
        return _is_free(said.type)
    if isinstance(said, inspect.UnionType):
        return all(_is_free(each) or isinstance(each, inspect.NoneType) for each in said.types)
    if isinstance(said, inspect.DictType):
        return _is_free(said.value_type)
    if isinstance(said, inspect.CollectionType):
        return _is_free(said.item_type)
    return isinstance(said, inspect.AnyType)


def _each_value(inner: Kept) -> Kept:
    def kept(value: Any) -> Any:  # noqa: ANN401
        if not isinstance(value, Mapping):
            return _nothing(value)
        return {name: inner(each) for name, each in value.items()}

    return kept


def _each_item(inner: Kept) -> Kept:
    return lambda value: [inner(each) for each in value] if isinstance(value, list) else _nothing(value)


def _scalar_or(container: Kept) -> Kept:
    return lambda value: container(value) if isinstance(value, _CONTAINERS) else value


def _scalar(value: Any) -> Any:  # noqa: ANN401
    return _nothing(value) if isinstance(value, _CONTAINERS) else value


def _nothing(value: Any) -> Any:  # noqa: ANN401
    """An empty value of the same type."""
    return None if value is None else type(value)()
