"""The form in which Kubernetes' functions are given to the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel

Value = dict[str, Any]
"""A quantity, a version, an address or a network in the form in which expressions handle it: a map with one key."""

BOOL, DOUBLE, INT, TEXT = cel.Type.BOOL, cel.Type.DOUBLE, cel.Type.INT, cel.Type.STRING
VALUE = cel.Type.Map(TEXT, TEXT)
LIST, TEXTS = cel.Type.List(cel.Type.DYN), cel.Type.List(TEXT)


@dataclass(frozen=True)
class Overload:
    """A function for arguments of these types; `member` if the first one stands before the dot."""

    result: cel.Type
    parameters: tuple[cel.Type, ...]
    impl: Callable[..., object]
    member: bool = False


def is_read_by(parse: Callable[..., object]) -> Callable[..., bool]:
    """The function that tells whether this one reads its arguments."""

    def is_read(*arguments: object) -> bool:
        try:
            parse(*arguments)
        except ValueError:
            return False
        return True

    return is_read
