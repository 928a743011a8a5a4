"""Counts, lists and groups by key that have no empty entries; counts may forget the oldest ones beyond a limit."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator, Mapping
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")


def count(counts: dict[Key, int], key: Key, number: int) -> None:
    """Add the number to the key's; the key is dropped at zero."""
    counts[key] = counts.get(key, 0) + number
    if not counts[key]:
        del counts[key]


def uncount(counts: dict[Key, int], key: Key) -> None:
    """Decrement the key's count and drop it at zero.

    Raises:
        KeyError: it is not counted.
    """
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def enter(index: dict[Key, dict[Item, None]], key: Key, item: Item, sign: int) -> None:
    """Add the item to those of the key (1), or remove it (-1)."""
    if sign > 0:
        index.setdefault(key, {})[item] = None
    else:
        drop(index, key, item)


def drop(index: dict[Key, dict[Item, Value]], key: Key, item: Item) -> None:
    """Remove the item from those of the key.

    Raises:
        KeyError: it is none of them.
    """
    del index[key][item]
    if not index[key]:
        del index[key]


def drop_oldest(known: dict[Any, Any], most: int) -> None:
    """Drop what was entered first as long as there are more than so many."""
    while len(known) > most:
        del known[next(iter(known))]


Group = TypeVar("Group", bound=Hashable)


class Grouped(Generic[Item, Group]):
    """Finds the group of an item, and the items of a group; both in the order in which the items were put in."""

    def __init__(self) -> None:
        self._group_of: dict[Item, Group] = {}
        self._items_of: dict[Group, dict[Item, None]] = {}

    def __contains__(self, item: object) -> bool:
        return item in self._group_of

    def __iter__(self) -> Iterator[Item]:
        return iter(self._group_of)

    def items(self) -> ItemsView[Item, Group]:
        """All items, each with its group."""
        return self._group_of.items()

    def groups(self) -> Mapping[Group, Mapping[Item, None]]:
        """All groups, none of which is empty, each with its items."""
        return self._items_of

    def of(self, group: Group) -> Mapping[Item, None]:
        """The items of the group; none if there is no such group."""
        return self._items_of.get(group, {})

    def group_of(self, item: Item) -> Group | None:
        """The group of the item; None if it is in none."""
        return self._group_of.get(item)

    def put(self, item: Item, group: Group) -> None:
        """Put the item into this group, and remove it from another one."""
        before = self._group_of.get(item)
        if before != group:
            if before is not None:
                self.drop(item)
            self._group_of[item] = group
            self._items_of.setdefault(group, {})[item] = None

    def drop(self, item: Item) -> None:
        """Remove the item, if it is there."""
        if item in self._group_of:
            group = self._group_of.pop(item)
            del self._items_of[group][item]
            if not self._items_of[group]:
                del self._items_of[group]
