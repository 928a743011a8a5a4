"""Numbers in sentences."""

from __future__ import annotations


def number_of(number: int, thing: str) -> str:
    """The number and the thing, in the singular or the plural."""
    return f"1 {thing}" if number == 1 else f"{number} {thing}s"


def number_is(number: int, thing: str) -> str:
    """As in "1 member is" and "3 members are"."""
    return f"{number_of(number, thing)} {'is' if number == 1 else 'are'}"


def counted(number: int, thing: str, one: str, many: str) -> str:
    """As in "1 pod has" and "3 pods have"."""
    return f"{number_of(number, thing)} {one if number == 1 else many}"
