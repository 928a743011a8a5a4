"""Reads YAML that anybody may have written: nesting and aliases that no reader could follow are refused.

The parser's own recursion ends the process where the nesting is deep enough, an alias may contain itself, and aliases
of aliases make a few lines stand for more values than fit into memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

MOST_LEVELS = 200
"""Deepest nesting that is read. Objects of Kubernetes have fewer levels; the deepest are schemas, with about 60."""
_MOST_REPEATED = 1_000_000
"""Most values that the aliases of one document may add to those that are written."""
_MOST_MERGED = 10_000
"""Most keys that one mapping may get by merging others."""
_BRACKETS = re.compile(r"[\[\]{}]")
_INDENTED = re.compile(rf"^(?: {{{MOST_LEVELS // 4},}}|(?:[-?] ){{{MOST_LEVELS // 4},}})", re.MULTILINE)
_ALIAS = re.compile(r"(?:^|[\s,:\[{-])\*\S", re.MULTILINE)


class Unfollowable(yaml.YAMLError):
    """The YAML is too deep, contains itself, or stands for too much; the message, a participle, says which."""


class Loader(yaml.CSafeLoader):
    """A safe loader that refuses mappings into which others are merged without end."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge the mappings that this one names.

        Raises:
            Unfollowable: they have too many keys.
        """
        super().flatten_mapping(node)
        if len(node.value) > _MOST_MERGED:
            raise Unfollowable(f"merged into a mapping of more than {_MOST_MERGED} keys")


def documents(text: str, loader: type[Loader] = Loader) -> Iterator[Any]:
    """The documents of the text, in order.

    Raises:
        yaml.YAMLError, ValueError: it is not YAML, or nothing that can be followed.
    """
    check_depth(text)
    aliases = _ALIAS.search(text) is not None
    for document in yaml.load_all(text, Loader=loader):
        if aliases:
            _check_aliases(document)
        yield document


def document(text: str) -> Any:  # noqa: ANN401 - anything that YAML can say
    """The only document of the text; None if it is empty. Raises as `documents`."""
    head = list(islice(documents(text), 2))
    if len(head) > 1:
        raise yaml.YAMLError("has more than one document")
    return head[0] if head else None


def check_depth(text: str) -> None:
    """Refuse nesting that is too deep, also of JSON, before a parser recurses. Only a text that looks so is read twice.

    Raises:
        Unfollowable: the nesting is too deep.
    """
    if _most_open(text) <= MOST_LEVELS // 4 and _INDENTED.search(text) is None:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_LEVELS:
            raise Unfollowable(f"nested in more than {MOST_LEVELS} levels")


def _most_open(text: str) -> int:
    """The largest number of brackets that are open at one place, as if all of them counted."""
    depth = most = 0
    for bracket in _BRACKETS.finditer(text):
        depth = depth + 1 if bracket[0] in "[{" else max(0, depth - 1)
        most = max(most, depth)
    return most


def _check_aliases(document: object) -> None:
    """Refuse a document that contains itself, or whose aliases stand for too many values."""
    sizes: dict[int, int] = {}
    entered: set[int] = set()
    waiting = [document]
    while waiting:
        value = waiting[-1]
        parts = _parts(value)
        if id(value) in sizes or not parts:
            sizes.setdefault(id(value), 1)
            waiting.pop()
        elif id(value) not in entered:
            entered.add(id(value))
            following = [part for part in parts if id(part) not in sizes]
            if any(id(part) in entered for part in following):
                raise Unfollowable("part of itself, by an alias")
            waiting += following
        else:
            sizes[id(value)] = 1 + sum(sizes[id(part)] for part in parts)
            waiting.pop()
            entered.discard(id(value))
            if sizes[id(value)] > len(sizes) + _MOST_REPEATED:
                raise Unfollowable(f"made of more than {_MOST_REPEATED} repeated values, by aliases")


def _parts(value: object) -> list[object]:
    """What the value contains; aliases make the same list or mapping a part of several."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
