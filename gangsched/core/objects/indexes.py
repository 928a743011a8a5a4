"""Counts and lists by key that have no empty entries, and that forget the oldest ones beyond a limit."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

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
