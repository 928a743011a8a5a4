"""Kubernetes quantities (`500m`, `1.5Gi`, `1e3`) as exact integers.

Accepts exactly what `resource.ParseQuantity` of k8s.io/apimachinery accepts, and rounds as its `MilliValue()` and
`Value()` do: away from zero. Where those overflow an int64, the result here is clamped to its bounds. (They round some
negative quantities with a fraction the other way, but no pod may request those.)
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

Quantity = str | int | float
"""A quantity as it stands in a manifest: nearly always text, but JSON and YAML may carry a bare number."""

Exact = int | Fraction
"""An amount before it is rounded: thousandths of a byte or device are kept while amounts are added."""

MAX_AMOUNT = 2**63 - 1
"""No amount exceeds this in magnitude."""


def clip(amount: int) -> int:
    """The amount as a matrix of int64 holds it: within ±MAX_AMOUNT."""
    return max(-MAX_AMOUNT, min(MAX_AMOUNT, amount))


_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+|)")
_NANO = 9
_NANOS = 1_000_000_000
# No value with more than 30 digits before the point is below MAX_AMOUNT. A nano divided by Ei has 69 decimals, so 70 of
# them and one digit for "more follows" round as all of them would.
_SATURATED_DIGITS = 30
_EXACT_DECIMALS = 70
_INT64_DIGITS = 19
# Kubernetes reads a text without digits as zero, but only with a suffix in this range.
_DIGITLESS_BINARY = 40
_CACHED = 1024
_SHOWN = 64


class InvalidQuantity(ValueError):  # noqa: N818 - what it names is the text, as in Kubernetes' own messages
    """The text is not a Kubernetes quantity; the message quotes it and says what a quantity looks like."""

    def __init__(self, text: object) -> None:
        shown = repr(text)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}…"
        super().__init__(
            f"{shown} is not a quantity: write a number with an optional suffix, such as 2, 500m, 1.5Gi or 1e3"
        )


@lru_cache(maxsize=_CACHED, typed=True)
def milli(text: Quantity) -> int:
    """The quantity in thousandths, rounded away from zero.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    if isinstance(text, str) and text.isascii():
        if text.isdigit():
            return min(int(text) * 1000, MAX_AMOUNT) if len(text) < _SATURATED_DIGITS else _scaled(text, 1000)
        if text[-1:] == "m" and text[:-1].isdigit() and len(text) < _SATURATED_DIGITS:
            return min(int(text[:-1]), MAX_AMOUNT)
    return _scaled(text, 1000)


@lru_cache(maxsize=_CACHED, typed=True)
def whole(text: Quantity) -> int:
    """The quantity in whole units, rounded away from zero.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    if isinstance(text, str) and text.isascii() and len(text) < _SATURATED_DIGITS:
        if text.isdigit():
            return min(int(text), MAX_AMOUNT)
        if text[-2:] in _BINARY and text[:-2].isdigit():
            return min(int(text[:-2]) << _BINARY[text[-2:]], MAX_AMOUNT)
    return _scaled(text, 1)


def amount(resource: str, text: Quantity) -> int:
    """The quantity as the core counts this resource: cpu in millicores, everything else in whole units.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    return milli(text) if resource == "cpu" else whole(text)


@lru_cache(maxsize=_CACHED, typed=True)
def unrounded(resource: str, text: Quantity) -> Exact:
    """As `amount`, but with the thousandths that the API server keeps, so that a sum is rounded only at its end.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    size = amount(resource, text)
    if resource == "cpu":
        return size
    thousandths = milli(text)
    return size if thousandths in (size * 1000, MAX_AMOUNT) else Fraction(thousandths, 1000)


def exact(text: Quantity) -> Fraction:
    """The quantity in units, to the billionth that Kubernetes keeps.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    return Fraction(billionths(text), _NANOS)


def billionths(text: Quantity) -> int:
    """The quantity in billionths, the finest that Kubernetes keeps, rounded away from zero.

    Raises:
        InvalidQuantity: the text is not a quantity.
    """
    written = text if isinstance(text, str) else repr(text)
    match = _QUANTITY.fullmatch(written)
    if match is None or not written:
        raise InvalidQuantity(text)
    sign, integer, fraction, suffix = match.groups(default="")
    binary = _BINARY.get(suffix, 0)
    exponent = 0 if binary else _DECIMAL[suffix] if suffix in _DECIMAL else _exponent(suffix[1:])
    if exponent is None:
        raise InvalidQuantity(text)
    if not integer and not fraction and (exponent < -_NANO or binary > _DIGITLESS_BINARY):
        raise InvalidQuantity(text)
    digits = (integer + fraction).lstrip("0")
    if not digits:
        return 0
    nanos = _significant(digits, point=len(digits) - len(fraction) + exponent, binary=binary)
    return -nanos if sign == "-" else nanos


def from_billionths(amount: int) -> str:
    """A quantity of this many billionths as text, in the largest binary unit that leaves a whole number."""
    units, rest = divmod(amount, _NANOS)
    if rest:
        return f"{amount}n"
    whole_in = ((suffix, power) for suffix, power in reversed(_BINARY.items()) if units and not units % (1 << power))
    suffix, power = next(whole_in, ("", 0))
    return f"{units >> power}{suffix}"


def format_bytes(amount: int) -> str:
    """Bytes in human-readable form, in a binary unit (`1.5Gi`)."""
    return format_amount("memory", amount)


def format_amount(resource: str, amount: int) -> str:
    """An amount in human-readable form: cpu in cores (`1.5`), bytes in a binary unit (`1.5Gi`), others unchanged."""
    if resource == "cpu":
        return _decimal(amount, 1000, places=3)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for suffix, power in reversed(_BINARY.items()):
            if abs(amount) >= 1 << power:
                return _decimal(amount, 1 << power, places=2) + suffix
    return str(amount)


def _decimal(amount: int, unit: int, *, places: int) -> str:
    """`amount / unit`, rounded half up to `places` decimals, without trailing zeros."""
    scale: int = 10**places
    rounded = (2 * abs(amount) * scale + unit) // (2 * unit)
    integer, fraction = divmod(rounded, scale)
    text = f"{integer}.{fraction:0{places}d}".rstrip("0").rstrip(".")
    return f"-{text}" if amount < 0 and rounded else text


def _scaled(text: Quantity, per_unit: int) -> int:
    nanos = billionths(text)
    size = -(-abs(nanos) * per_unit // _NANOS)
    return min(size, MAX_AMOUNT) if nanos > 0 else -min(size, MAX_AMOUNT)


def _exponent(text: str) -> int | None:
    """The decimal exponent, None beyond 64 bits."""
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _INT64_DIGITS:
        return None
    exponent = -int(digits) if text.startswith("-") else int(digits)
    return exponent if -MAX_AMOUNT - 1 <= exponent <= MAX_AMOUNT else None


def _significant(digits: str, *, point: int, binary: int) -> int:
    """`0.digits * 10**point * 2**binary` in billionths, rounded up; work is bounded however long the text is."""
    if point > _SATURATED_DIGITS:
        return MAX_AMOUNT * _NANOS
    digits = digits.rstrip("0")
    kept = point + _EXACT_DECIMALS
    if kept < 1:
        return 1
    if len(digits) > kept:
        digits = digits[:kept] + "1"
    numerator = int(digits) << binary
    shift = point - len(digits) + _NANO
    power: int = 10 ** abs(shift)
    return numerator * power if shift >= 0 else -(-numerator // power)
