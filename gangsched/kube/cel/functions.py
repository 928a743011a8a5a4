"""Kubernetes' functions in the Common Expression Language (CEL) that the library lacks.

Source: k8s.io/apiserver/pkg/cel/library at v1.37.2 and github.com/google/cel-go/ext at v0.29.2. For an invalid argument
they raise an ArithmeticError, LookupError, TypeError or ValueError, which counts as an error of the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import cel

from gangsched.core.objects.quantity import InvalidQuantity, exact
from gangsched.kube.cel.networks import NETWORK_FUNCTIONS

Value = dict[str, Any]
"""A quantity or a version in the form in which expressions handle it."""

Container = cel.OptionalValue | dict[str | int, object] | list[object]
_NUMBERS = 3
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_ESCAPES = str.maketrans(
    {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\""}
)
_KINDS: dict[str, tuple[type, ...]] = {
    "s": (str, int, bool),
    "d": (int,),
    "f": (float,),
    "b": (int, bool),
    "x": (int,),
    "X": (int,),
    "o": (int,),
}
_LONGEST_LIST = 10_000
_MOST_WORK = 1_000_000
"""Largest number of steps that matching a pattern may take. A pattern that could take more is an error, because users
write patterns and all groups wait while one is matched."""
_SPACE = " \t\n\v\f\r\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


# Quantities and versions


def quantity(text: str) -> Value:
    """The quantity in the text.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    return _amount(exact(text))


def semver(text: str, normalize: bool = False) -> Value:  # noqa: FBT001, FBT002 - expressions pass it by position
    """The version in the text. `normalize` also accepts a leading v, leading zeros and missing minor or patch numbers.

    Raises:
        ValueError: the text is not a version.
    """
    found = _normalized(text) if normalize else text
    if _SEMVER.fullmatch(found) is None:
        raise ValueError(f"{text!r} is no version")
    return {"semver": found.partition("+")[0]}


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for at, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[at] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < _NUMBERS and any(sign in parts[-1] for sign in "+-"):
        raise ValueError(f"{text!r} is short and has more than numbers")
    return ".".join([*parts, "0", "0"][:_NUMBERS])


def _amount(number: Fraction | int) -> Value:
    return {"quantity": str(Fraction(number))}


def _number(value: Value | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(value["quantity"])


def _is(parse: Callable[..., Value]) -> Callable[..., bool]:
    def can_be_parsed(text: str, *normalize: bool) -> bool:
        try:
            parse(text, *normalize)
        except (InvalidQuantity, ValueError):
            return False
        return True

    return can_be_parsed


def _order(value: Value) -> tuple[object, ...]:
    """The sort key of a quantity or a version."""
    if "quantity" in value:
        return (Fraction(value["quantity"]),)
    found = _SEMVER.fullmatch(value["semver"])
    if found is None:
        raise ValueError(value)
    numbers = tuple(map(int, found.group(1, 2, 3)))
    if not found[4]:
        return (*numbers, 1)
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in found[4].split("."))
    return (*numbers, 0, parts)


def _compare(one: Value, other: Value) -> int:
    if one.keys() != other.keys():
        raise TypeError("a quantity cannot be compared with a version")
    first, second = _order(one), _order(other)
    return int(first > second) - int(first < second)


def _integer(value: Value) -> int:
    number = _number(value)
    if number.denominator != 1 or abs(number) >= 1 << 63:
        raise ValueError("the quantity is no integer")
    return int(number)


def _part(at: int) -> Callable[[Value], int]:
    def part(version: Value) -> int:
        return int(version["semver"].partition("-")[0].split(".")[at])

    return part


# Texts


def _bool(value: bool | str) -> bool:  # noqa: FBT001 - expressions pass it by position
    if isinstance(value, bool):
        return value
    if value not in _TRUE + _FALSE:
        raise ValueError(value)
    return value in _TRUE


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(char) if char.isascii() else char for char in text)


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise IndexError(at)
    return text[at : at + 1]


def _index_of(found: str | list[str], what: str, start: int = 0) -> int:
    if isinstance(found, list):
        return found.index(what) if what in found else -1
    if what == "":
        return start
    if start < 0:
        raise IndexError(start)
    return found.find(what, start)


def _last_index_of(found: str | list[str], what: str, *start: int) -> int:
    if isinstance(found, list):
        return len(found) - 1 - found[::-1].index(what) if what in found else -1
    if what == "":
        return start[0] if start else len(found)
    if not start:
        return found.rfind(what)
    if start[0] < 0:
        raise IndexError(start[0])
    return -1 if start[0] >= len(found) else found.rfind(what, 0, start[0] + len(what))


def _substring(text: str, start: int, *end: int) -> str:
    stop = end[0] if end else len(text)
    if not 0 <= start <= stop <= len(text):
        raise IndexError(start, stop)
    return text[start:stop]


def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by:
        return text.split(by, most - 1 if most > 0 else -1)
    chars = list(text)
    return chars if most < 0 or len(chars) <= most else [*chars[: most - 1], "".join(chars[most - 1 :])]


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _format(text: str, values: list[Any]) -> str:
    """The formatted text. Values of kinds that Go formats differently from Python are an error."""
    left = iter(values)

    def written(found: re.Match[str]) -> str:
        verb, precision = found["verb"], found["precision"]
        if verb == "%":
            return "%"
        value = next(left, None)
        kind = _KINDS.get(verb, ())
        if type(value) not in kind or (precision and verb != "f"):
            raise ValueError(f"%{verb} of {value!r}")
        if isinstance(value, bool):
            return str(int(value)) if verb == "b" else str(value).lower()
        return f"{value:{precision or ''}{'' if verb == 's' else verb}}"

    made = re.sub(r"%(?P<precision>\.\d{1,3})?(?P<verb>.|$)", written, text)
    if next(left, None) is not None:
        raise ValueError("more values than are written")
    return made


def _pattern(pattern: str, text: str) -> re.Pattern[str]:
    repeats, choices = len(re.findall(r"[*+{]", pattern)), len(re.findall(r"[|?]", pattern))
    if re.search(r"\)\s*[*+{]|\(\?[^:]|\\[1-9]", pattern) or max(2, len(text)) ** repeats << choices > _MOST_WORK:
        raise ValueError(f"the pattern {pattern!r} could take too long")
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ValueError(pattern) from error


def _find(text: str, pattern: str) -> str:
    found = _pattern(pattern, text).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = [each[0] for each in _pattern(pattern, text).finditer(text)]
    return found if most < 0 else found[:most]


# Lists and sets


def _is_sorted(found: list[Any]) -> bool:
    return all(one <= other for one, other in pairwise(found))


def _slice(found: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(found):
        raise IndexError(start, end)
    return found[start:end]


def _flatten(found: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise ValueError(depth)
    out: list[Any] = []
    for each in found:
        if isinstance(each, list) and depth:
            out += _flatten(each, depth - 1)
        else:
            out.append(each)
    return out


def _range(number: int) -> list[int]:
    if number > _LONGEST_LIST:
        raise ValueError(number)
    return list(range(number))


def _entries(found: list[Any] | dict[str, Any]) -> list[list[Any]]:
    """The pairs of key, or index, and value."""
    return [[key, value] for key, value in (found.items() if isinstance(found, dict) else enumerate(found))]


def _distinct(found: list[Any]) -> list[Any]:
    return [each for at, each in enumerate(found) if each not in found[:at]]


def _within(inner: Sequence[Any], outer: Sequence[Any]) -> bool:
    return all(each in outer for each in inner)


# Optional values


def _optional_field(found: Container, key: str | int) -> cel.OptionalValue:
    """The value, if any, under the key or index of a map or list, which may itself be optional."""
    if isinstance(found, cel.OptionalValue):
        return _optional_field(found.value(), key) if found.has_value() else found
    if isinstance(found, list):
        return _first(found[key : key + 1] if isinstance(key, int) and key >= 0 else [])
    return cel.OptionalValue.of(found[key]) if key in found else cel.OptionalValue.none()


def _first(found: Sequence[object]) -> cel.OptionalValue:
    return cel.OptionalValue.of(found[0]) if found else cel.OptionalValue.none()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": quantity,
    "isQuantity": _is(quantity),
    "semver": semver,
    "isSemver": _is(semver),
    "compareTo": _compare,
    "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    "isLessThan": lambda one, other: _compare(one, other) < 0,
    "sign": lambda value: (_number(value) > 0) - (_number(value) < 0),
    "isInteger": lambda value: _number(value).denominator == 1 and abs(_number(value)) < 1 << 63,
    "asInteger": _integer,
    "asApproximateFloat": lambda value: float(_number(value)),
    "add": lambda one, other: _amount(_number(one) + _number(other)),
    "sub": lambda one, other: _amount(_number(one) - _number(other)),
    "major": _part(0),
    "minor": _part(1),
    "patch": _part(2),
    "bool": _bool,
    "sizeOf": len,
    "charAt": _char_at,
    "indexOf": _index_of,
    "join": lambda found, by="": by.join(found),
    "lastIndexOf": _last_index_of,
    "lowerAscii": _ascii(str.lower),
    "replace": lambda text, old, new, most=-1: text.replace(old, new, most),
    "split": _split,
    "substring": _substring,
    "format": _format,
    "strings_quote": _quote,
    "trim": lambda text: text.strip(_SPACE),
    "upperAscii": _ascii(str.upper),
    "find": _find,
    "findAll": _find_all,
    "isSorted": _is_sorted,
    "sum": sum,
    "min": min,
    "max": max,
    "slice": _slice,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": sorted,
    "reverse": lambda found: found[::-1],
    "sortedBy": lambda pairs: [value for _, value in sorted(pairs, key=lambda pair: pair[0])],
    "lists_range": _range,
    "entries": _entries,
    "mapOf": dict,
    "sets_contains": lambda outer, inner: _within(inner, outer),
    "sets_equivalent": lambda one, other: _within(one, other) and _within(other, one),
    "sets_intersects": lambda one, other: any(each in other for each in one),
    **NETWORK_FUNCTIONS,
    "optionalField": _optional_field,
    "present": lambda found: [found.value()] if found.has_value() else [],
    "firstPresent": _first,
    "firstOfFirst": lambda found: _first(_flatten(found)),
    "first": _first,
    "last": lambda found: _first(found[-1:]),
}
"""The functions by the names that `cel_syntax.py` leaves unchanged or gives them."""
