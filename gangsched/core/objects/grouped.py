"""Items in groups: each item is in one, and a group without items is forgotten."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterator, Mapping
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)
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
