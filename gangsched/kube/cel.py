"""Selectors of devices in the Common Expression Language, with Kubernetes' functions for quantities and versions.

Source: k8s.io/dynamic-resource-allocation/cel and k8s.io/apiserver/pkg/cel/library at v1.36.3. What the library does
not know (`cel.bind`, optional values, and functions not named here) is an error, by which the pod is refused.

The library is imported for the first expression that is evaluated: where nobody uses devices, its 15 MB and a tenth of
a second at the start are saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gangsched.core.objects.devices import Attribute, AttributeType, Device, Selector, Verdict
from gangsched.core.objects.quantity import InvalidQuantity, exact

if TYPE_CHECKING:
    import cel

MOST_LOOPS = 3
"""An expression may go through so many lists: each multiplies the work. The API server limits the cost of each."""
_LONGEST = 10 * 1024
_LOOPS = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(")
_DOMAINS = re.compile(r"device\s*\.\s*(attributes|capacity)\s*\[\s*(?:\"([^\"]*)\"|'([^']*)')\s*\]")
_ASKS_FOR_DOMAINS = re.compile(r"\bin\s+device\s*\.\s*(?:attributes|capacity)\s*(?![\s\[.])")
_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
Value = dict[str, Any]
"""A quantity or a version, as expressions pass it on."""


class CelSelector(Selector, frozen=True, gc=False):
    """An expression as claims and classes have it."""

    def verdict(self, driver: str, device: Device) -> Verdict:
        """Whether it selects the device: what does not compile, fails, or is no truth value is an error."""
        return _verdict(self.expression, driver, device.attributes, device.capacity)


@lru_cache(maxsize=10_000)
def _verdict(
    expression: str, driver: str, attributes: tuple[Attribute, ...], capacity: tuple[tuple[str, str], ...]
) -> Verdict:
    import cel  # noqa: PLC0415 - see the module

    program, domains = _compiled(expression)
    if program is None:
        return Verdict.ERROR
    found: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for field, domain in domains:
        found[field][domain] = {}
    try:
        for each in attributes:
            domain, _, name = each.name.partition("/")
            found["attributes"].setdefault(domain, {})[name] = _value(each)
        for full_name, amount in capacity:
            domain, _, name = full_name.partition("/")
            found["capacity"].setdefault(domain, {})[name] = _quantity(amount)
        context = cel.Context(
            variables={"device": {"driver": driver, "allowMultipleAllocations": False, **found}}, functions=_FUNCTIONS
        )
        result = program.execute(context)
    except (ArithmeticError, InvalidQuantity, LookupError, RuntimeError, TypeError, ValueError):
        return Verdict.ERROR
    if not isinstance(result, bool):
        return Verdict.ERROR
    return Verdict.TRUE if result else Verdict.FALSE


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> tuple[cel.Program | None, tuple[tuple[str, str], ...]]:
    """The program, None if there is none; and the domains that it looks into, which need not exist."""
    if len(expression) > _LONGEST or len(_LOOPS.findall(expression)) > MOST_LOOPS:
        return None, ()
    import cel  # noqa: PLC0415 - see the module

    try:
        program = cel.compile(expression)
    except (RuntimeError, TypeError, ValueError):
        return None, ()
    if _ASKS_FOR_DOMAINS.search(expression):
        return program, ()
    return program, tuple((field, double or single) for field, double, single in _DOMAINS.findall(expression))


def _value(attribute: Attribute) -> object:
    match attribute.type:
        case AttributeType.INT:
            return int(attribute.value)
        case AttributeType.BOOL:
            return attribute.value == "true"
        case AttributeType.STRING:
            return attribute.value
        case AttributeType.VERSION:
            return _semver(attribute.value)
    raise ValueError(f"{attribute.name} has a type that expressions cannot read")


def _quantity(text: str) -> Value:
    return _amount(exact(text))


def _amount(number: Fraction) -> Value:
    return {"quantity": str(number)}


def _number(value: Value | int) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(value["quantity"])


def _semver(text: str) -> Value:
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no version")
    return {"semver": text.partition("+")[0]}


def _is(parse: Callable[[str], Value]) -> Callable[[str], bool]:
    def can_be_parsed(text: str) -> bool:
        try:
            parse(text)
        except (InvalidQuantity, ValueError):
            return False
        return True

    return can_be_parsed


def _order(value: Value) -> tuple[object, ...]:
    """What quantities, or versions, are compared by."""
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


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "isQuantity": _is(_quantity),
    "semver": _semver,
    "isSemver": _is(_semver),
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
    "lowerAscii": lambda text: "".join(char.lower() if char.isascii() else char for char in text),
    "upperAscii": lambda text: "".join(char.upper() if char.isascii() else char for char in text),
    "find": _find,
}
