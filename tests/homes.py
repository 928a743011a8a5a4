"""Finds out which modules of the core change which containers of which objects, while stories are played.

Each dict, list and set that an object of the core holds is replaced by one that notes who changes it. So a container is
followed wherever it is handed on, and whatever it is called there.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

_CORE = "gangsched.core."
_HELPERS = f"{_CORE}objects.indexes"
"""A module whose functions change their first argument for whoever calls them; its methods change their own object."""
_CHANGING = {
    dict: ("__setitem__", "__delitem__", "__ior__", "pop", "popitem", "clear", "update", "setdefault"),
    list: (
        *("__setitem__", "__delitem__", "__iadd__", "append", "extend", "insert", "pop", "remove", "clear", "sort"),
        "reverse",
    ),
    set: (
        *("__ior__", "__iand__", "__isub__", "__ixor__", "add", "discard", "remove", "pop", "clear", "update"),
        *("difference_update", "intersection_update", "symmetric_difference_update"),
    ),
}


class Homes:
    """`changed` has the modules that changed each container, by the class and the name of the attribute."""

    def __init__(self) -> None:
        self.changed: dict[str, set[str]] = defaultdict(set)
        self._kinds: dict[type, Any] = {
            base: _following(base, names, self.changed) for base, names in _CHANGING.items()
        }

    def follow(self, root: object) -> None:
        """Follow all containers that are reachable from here."""
        seen: set[int] = set()
        replaced: dict[int, Any] = {}
        waiting = [root]
        while waiting:
            each = waiting.pop()
            if id(each) in seen or (isinstance(each, msgspec.Struct) and each.__struct_config__.frozen):
                continue
            seen.add(id(each))
            if isinstance(each, dict):
                waiting += each.values()
            elif isinstance(each, list | tuple | set | frozenset):
                waiting += each
            elif type(each).__module__.startswith(_CORE):
                waiting += self._parts(each, replaced)

    def _parts(self, owner: object, replaced: dict[int, Any]) -> Iterator[object]:
        for name in _attributes(owner):
            value = getattr(owner, name, None)
            kind = self._kinds.get(type(value))
            if kind is not None:
                if id(value) not in replaced:
                    copy = kind(value)
                    copy.label = f"{type(owner).__name__}.{name}"
                    # The original is kept, so that no other container gets its id.
                    replaced[id(value)] = (copy, value)
                value = replaced[id(value)][0]
                (setattr if isinstance(owner, msgspec.Struct) else object.__setattr__)(owner, name, value)
            yield value


def _following(base: type, names: tuple[str, ...], changed: dict[str, set[str]]) -> type:
    def method(name: str) -> Callable[..., Any]:
        original = getattr(base, name)

        def noting(self: Any, *args: Any, **kwargs: Any) -> Any:
            changed[self.label].add(_who())
            return original(self, *args, **kwargs)

        return noting

    return type(f"Followed{base.__name__}", (base,), {name: method(name) for name in names})


def _who() -> str:
    """The module of the core that runs; empty if none does."""
    frame = sys._getframe(2)  # noqa: SLF001 - documented as the way to look at the caller
    while frame is not None:
        name = frame.f_globals["__name__"]
        helps = name == _HELPERS and "self" not in frame.f_locals
        if name.startswith(_CORE) and not helps:
            break
        frame = frame.f_back  # type: ignore[assignment]
    return str(frame.f_globals["__name__"]).removeprefix(_CORE) if frame is not None else ""


def _attributes(owner: object) -> set[str]:
    if isinstance(owner, msgspec.Struct):
        return {*owner.__struct_fields__}
    slots = (name for each in type(owner).__mro__ for name in _slots(each))
    return {*vars(owner), *slots} if hasattr(owner, "__dict__") else {*slots}


def _slots(each: type) -> tuple[str, ...]:
    slots = vars(each).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
