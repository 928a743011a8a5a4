"""Kubernetes' functions in the Common Expression Language (CEL) that the library lacks.

Source: k8s.io/apiserver/pkg/cel/library at v1.37.2 and github.com/google/cel-go/ext at v0.29.2. For an invalid argument
they raise an ArithmeticError, LookupError, TypeError or ValueError, which counts as an error of the expression.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from cel_expr_python import cel

from gangsched.core.objects.quantity import exact
from gangsched.kube.cel.overloads import BOOL, DOUBLE, INT, LIST, TEXT, TEXTS, VALUE, Overload, Value, is_read_by
from gangsched.kube.cel.patterns import find, find_all

_NUMBERS = 3
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
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
    version = _normalized(text) if normalize else text
    if _SEMVER.fullmatch(version) is None:
        raise ValueError(f"{text!r} is no version")
    return {"semver": version.partition("+")[0]}


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[index] = bare if bare[:1].isdigit() else f"0{bare}"
    if len(parts) < _NUMBERS and any(sign in parts[-1] for sign in "+-"):
        raise ValueError(f"{text!r} is short and has more than numbers")
    return ".".join([*parts, "0", "0"][:_NUMBERS])


def _amount(number: Fraction | int) -> Value:
    return {"quantity": str(Fraction(number))}


def _number(value: Value | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(value["quantity"])


def _order(value: Value) -> tuple[object, ...]:
    """The sort key of a quantity or a version."""
    if "quantity" in value:
        return (Fraction(value["quantity"]),)
    match = _SEMVER.fullmatch(value["semver"])
    if match is None:
        raise ValueError(value)
    numbers = tuple(map(int, match.group(1, 2, 3)))
    if not match[4]:
        return (*numbers, 1)
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in match[4].split("."))
    return (*numbers, 0, parts)


def _compare(value: Value, other: Value) -> int:
    if value.keys() != other.keys():
        raise TypeError("a quantity cannot be compared with a version")
    first, second = _order(value), _order(other)
    return int(first > second) - int(first < second)


def _integer(value: Value) -> int:
    number = _number(value)
    if number.denominator != 1 or abs(number) >= 1 << 63:
        raise ValueError("the quantity is no integer")
    return int(number)


def _sums(impl: Callable[[Value, Any], Value]) -> tuple[Overload, ...]:
    return tuple(Overload(VALUE, (VALUE, other), impl, member=True) for other in (VALUE, INT))


def _part(index: int) -> Callable[[Value], int]:
    def part(version: Value) -> int:
        return int(version["semver"].partition("-")[0].split(".")[index])

    return part


# Texts


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(char) if char.isascii() else char for char in text)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise IndexError(index)
    return text[index : index + 1]


def _index_of(value: str | list[str], item: str, start: int = 0) -> int:
    if isinstance(value, list):
        return value.index(item) if item in value else -1
    if item == "":
        return start
    if start < 0:
        raise IndexError(start)
    return value.find(item, start)


def _last_index_of(value: str | list[str], item: str, *start: int) -> int:
    if isinstance(value, list):
        return len(value) - 1 - value[::-1].index(item) if item in value else -1
    if item == "":
        return start[0] if start else len(value)
    if not start:
        return value.rfind(item)
    if start[0] < 0:
        raise IndexError(start[0])
    return -1 if start[0] >= len(value) else value.rfind(item, 0, start[0] + len(item))


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

    def written(match: re.Match[str]) -> str:
        verb, precision = match["verb"], match["precision"]
        if verb == "%":
            return "%"
        value = next(left, None)
        kind = _KINDS.get(verb, ())
        if type(value) not in kind or (precision and verb != "f"):
            raise ValueError(f"%{verb} of {value!r}")
        if isinstance(value, bool):
            return str(int(value)) if verb == "b" else str(value).lower()
        return f"{value:{precision or ''}{'' if verb == 's' else verb}}"

    result = re.sub(r"%(?P<precision>\.\d{1,3})?(?P<verb>.|$)", written, text)
    if next(left, None) is not None:
        raise ValueError("more values than are written")
    return result


# Lists


def _is_sorted(values: list[Any]) -> bool:
    return all(value <= other for value, other in pairwise(values))


_ANY = (INT, cel.Type.UINT, DOUBLE, TEXT, BOOL, VALUE, LIST)
"""The kinds of values of which lists consist; the library finds a function only by the kind of each argument."""


def _compares(impl: Callable[[Value, Value], object], result: cel.Type) -> tuple[Overload, ...]:
    return (Overload(result, (VALUE, VALUE), impl, member=True),)


def _with_optional(
    result: cel.Type, parameters: tuple[cel.Type, ...], impl: Callable[..., object]
) -> tuple[Overload, ...]:
    """The function of these types, and without the last of them."""
    return tuple(Overload(result, types, impl, member=True) for types in (parameters[:-1], parameters))


FUNCTIONS: dict[str, tuple[Overload, ...]] = {
    "quantity": (Overload(VALUE, (TEXT,), quantity),),
    "isQuantity": (Overload(BOOL, (TEXT,), is_read_by(quantity)),),
    "semver": (Overload(VALUE, (TEXT,), semver), Overload(VALUE, (TEXT, BOOL), semver)),
    "isSemver": (Overload(BOOL, (TEXT,), is_read_by(semver)), Overload(BOOL, (TEXT, BOOL), is_read_by(semver))),
    "compareTo": _compares(_compare, INT),
    "isGreaterThan": _compares(lambda value, other: _compare(value, other) > 0, BOOL),
    "isLessThan": _compares(lambda value, other: _compare(value, other) < 0, BOOL),
    "sign": (Overload(INT, (VALUE,), lambda value: (_number(value) > 0) - (_number(value) < 0)),),
    "isInteger": (Overload(BOOL, (VALUE,), is_read_by(_integer), member=True),),
    "asInteger": (Overload(INT, (VALUE,), _integer, member=True),),
    "asApproximateFloat": (Overload(DOUBLE, (VALUE,), lambda value: float(_number(value)), member=True),),
    "add": _sums(lambda value, other: _amount(_number(value) + _number(other))),
    "sub": _sums(lambda value, other: _amount(_number(value) - _number(other))),
    "major": (Overload(INT, (VALUE,), _part(0), member=True),),
    "minor": (Overload(INT, (VALUE,), _part(1), member=True),),
    "patch": (Overload(INT, (VALUE,), _part(2), member=True),),
    "charAt": (Overload(TEXT, (TEXT, INT), _char_at, member=True),),
    "indexOf": (
        *_with_optional(INT, (TEXT, TEXT, INT), _index_of),
        *(Overload(INT, (LIST, kind), _index_of, member=True) for kind in _ANY),
    ),
    "lastIndexOf": (
        *_with_optional(INT, (TEXT, TEXT, INT), _last_index_of),
        *(Overload(INT, (LIST, kind), _last_index_of, member=True) for kind in _ANY),
    ),
    "join": _with_optional(TEXT, (TEXTS, TEXT), lambda texts, by="": by.join(texts)),
    "lowerAscii": (Overload(TEXT, (TEXT,), _ascii(str.lower), member=True),),
    "upperAscii": (Overload(TEXT, (TEXT,), _ascii(str.upper), member=True),),
    "replace": _with_optional(TEXT, (TEXT, TEXT, TEXT, INT), str.replace),
    "split": _with_optional(TEXTS, (TEXT, TEXT, INT), _split),
    "substring": _with_optional(TEXT, (TEXT, INT, INT), _substring),
    "trim": (Overload(TEXT, (TEXT,), lambda text: text.strip(_SPACE), member=True),),
    "format": (Overload(TEXT, (TEXT, LIST), _format, member=True),),
    "strings.quote": (Overload(TEXT, (TEXT,), _quote),),
    "find": (Overload(TEXT, (TEXT, TEXT), find, member=True),),
    "findAll": _with_optional(TEXTS, (TEXT, TEXT, INT), find_all),
    "isSorted": (Overload(BOOL, (LIST,), _is_sorted, member=True),),
    "sum": (Overload(cel.Type.DYN, (LIST,), sum, member=True),),
    "min": (Overload(cel.Type.DYN, (LIST,), min, member=True),),
    "max": (Overload(cel.Type.DYN, (LIST,), max, member=True),),
}
"""The functions by name, each with its overloads."""
