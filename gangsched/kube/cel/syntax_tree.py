"""What a compiled expression contains, read from its serialized syntax tree (cel.expr.Expr of github.com/cel-expr).

The library offers no other view of it. Only the fields that are needed are read; a tree is at most 32 levels deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_ANY_VALUE, _ROOT = 2, 4
_CONSTANT, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _COMPREHENSION = 3, 4, 5, 6, 7, 8, 9
_OPERANDS = {_SELECT: (1,), _CALL: (1, 3), _LIST: (1,), _COMPREHENSION: (2, 4, 5, 6, 7)}
_INT, _TEXT = 3, 6
_DEVICE_MAPS = ("attributes", "capacity")
_INDEXES = ("_[_]", "_[?_]", "_?._")
_RANGE = "lists.range"


@dataclass(frozen=True)
class _Place:
    """Where a node is: `within` are the comprehensions around it by number, the outermost first.

    `fewest` and `most` limit the number of the library's slots that these use: a variable of cel.bind uses one, a loop
    two, or three with two variables.
    """

    within: tuple[int, ...] = ()
    fewest: int = 0
    most: int = 0


@dataclass
class Content:
    """What matters of an expression.

    `domains`: the pairs of a map of the device and a constant key. `whole`: a map of the device is also used in another
    way. `longest_range`: the largest argument of `lists.range`; infinite if one is not a constant.
    """

    domains: set[tuple[str, str]] = field(default_factory=set)
    whole: bool = False
    longest_range: float = 0
    _number: int = 0
    _loops: list[tuple[int, _Place]] = field(default_factory=list)
    _binds: list[tuple[int, _Place]] = field(default_factory=list)

    @property
    def misread(self) -> bool:
        """Whether version 0.1.3 of the library may evaluate it wrongly.

        A loop that ends early leaves its variable behind, and a later cel.bind (optMap, sortBy) in the same slot takes
        that for its own value: `device.list.exists(x, x == 1) && cel.bind(y, 7, y == 7)` is false.
        """
        return any(
            loop not in place.within
            and place.most >= left.fewest
            and (loop < bind or (left.within[:1] == place.within[:1] != ()))
            for loop, left in self._loops
            for bind, place in self._binds
        )

    def add(self, node: bytes, place: _Place) -> None:
        """Add what the node and all below it contain."""
        if self._reads_domain(node):
            return
        self.whole |= bool(_device_map(node))
        for kind, value in _fields(node):
            if not isinstance(value, bytes):
                continue
            if kind == _CALL and _text(value, 2) == _RANGE:
                self._measure(next(_all(value, 3), b""))
            inner = self._enter(value, place) if kind == _COMPREHENSION else place
            for part in _parts(kind, value):
                self.add(part, inner)

    def _enter(self, comprehension: bytes, place: _Place) -> _Place:
        """The place of what the comprehension contains."""
        self._number += 1
        within = (*place.within, self._number)
        if not _one(_one(comprehension, 2), _LIST) and _LIST in _kinds(_one(comprehension, 2)):
            # cel.bind is written as a loop over an empty list.
            self._binds.append((self._number, place))
            return _Place(within, place.fewest + 1, place.most + 1)
        if _CONSTANT not in _kinds(_one(comprehension, 5)):
            self._loops.append((self._number, place))
        return _Place(within, place.fewest + 2, place.most + 3)

    def _reads_domain(self, node: bytes) -> bool:
        select, call = _one(node, _SELECT), _one(node, _CALL)
        if select:
            map_, key = _device_map(_one(select, 1)), _text(select, 2)
        elif _text(call, 2) in _INDEXES:
            map_, key = (reader(part) for reader, part in zip((_device_map, _key), _all(call, 3), strict=True))
        else:
            return False
        if map_ and key:
            self.domains.add((map_, key))
        return bool(map_ and key)

    def _measure(self, argument: bytes) -> None:
        numbers = [value for number, value in _fields(_one(argument, _CONSTANT)) if number == _INT]
        longest = numbers[0] if numbers and isinstance(numbers[0], int) else float("inf")
        self.longest_range = max(self.longest_range, longest)


def content(serialized: bytes) -> Content:
    """The content of an expression that was compiled with the type check, and serialized."""
    contents = Content()
    contents.add(_one(_one(serialized, _ANY_VALUE), _ROOT), _Place())
    return contents


def _parts(kind: int, value: bytes) -> Iterator[bytes]:
    """The expressions in a node of this kind."""
    for number in _OPERANDS.get(kind, ()):
        yield from _all(value, number)
    if kind == _STRUCT:
        for entry in _all(value, 2):
            yield from _all(entry, 3)
            yield from _all(entry, 4)


def _key(node: bytes) -> str:
    """The constant text that the node is; empty if it is something else."""
    return _text(_one(node, _CONSTANT), _TEXT)


def _kinds(message: bytes) -> set[int]:
    return {number for number, _ in _fields(message)}


def _device_map(node: bytes) -> str:
    """`attributes` or `capacity` if the node is that field of the device; empty otherwise."""
    select = _one(node, _SELECT)
    if not select or _text(_one(_one(select, 1), _IDENT), 1) != "device":
        return ""
    name = _text(select, 2)
    return name if name in _DEVICE_MAPS else ""


def _one(message: bytes, number: int) -> bytes:
    return next(_all(message, number), b"")


def _all(message: bytes, number: int) -> Iterator[bytes]:
    return (value for tag, value in _fields(message) if tag == number and isinstance(value, bytes))


def _text(message: bytes, number: int) -> str:
    return _one(message, number).decode("utf-8", "replace")


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of Protocol Buffers by number: whole numbers, and the bytes of everything else."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == _LENGTH:
            length, position = _varint(message, position)
        else:
            length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[kind]
        yield number, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            return value, position
