"""Spark applications: a driver, which declares the number and size of its executors, and executors that come later.

Both dialects reserve placeholders for the executors from the moment at which the driver is bound, so the group's name
must be a valid name of a PodGroup. The driver declares the size of a placeholder; an existing executor requests what
its spec says. The application succeeds when the driver succeeds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from gangsched.config.dialects import Key
from gangsched.core.objects.declaration import OBJECT_NAME, PACKED, Declaration, Placing, Preference, Role
from gangsched.core.objects.quantity import InvalidQuantity, amount
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence

DRIVER, EXECUTOR = "driver", "executor"


@dataclass(frozen=True, kw_only=True)
class SparkDialect(Dialect, ABC):
    """The common part of both dialects: `placing` of the members, and the preferences of drivers and executors."""

    placing: Placing = PACKED
    driver_prefer: tuple[Preference, ...] = ()
    executor_prefer: tuple[Preference, ...] = ()
    in_turn: bool = False

    def parse(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        if base.role not in (DRIVER, EXECUTOR):
            shown = quoted(base.role) if base.role else "missing"
            raise ValueError(f"{sentence(self.row.role[0])} is {shown}: write {DRIVER} or {EXECUTOR}.")
        if base.role == EXECUTOR:
            return replace(base, placement=self.placing, leading=DRIVER)
        least, most = self.executors(texts)
        if least and not OBJECT_NAME.fullmatch(base.group):
            raise ValueError(
                f"The application's name {quoted(base.group)} is not a valid name for the PodGroup that records the "
                "reservation for its executors: write at most 63 lower-case letters, digits, '-' and '.', with a "
                "letter or digit at both ends."
            )
        template = Shape(requests=self.requests(texts))
        return replace(
            base,
            roles=(
                Role(DRIVER, 1, 1, prefer=self.driver_prefer),
                Role(EXECUTOR, least, most, template, like_declarer=True, prefer=self.executor_prefer),
            ),
            leading=DRIVER,
            placement=self.placing,
            fifo=self.in_turn,
        )

    @abstractmethod
    def executors(self, texts: Mapping[Key, str]) -> tuple[int, int]:
        """The smallest and the largest number of executors that the driver declares.

        Raises:
            ValueError: the number is missing or unreadable.
        """

    @abstractmethod
    def requests(self, texts: Mapping[Key, str]) -> Amounts:
        """The requests of one executor that the driver declares.

        Raises:
            ValueError: an amount is missing or unreadable.
        """


def number_text(key: Key, texts: Mapping[Key, str]) -> str:
    """The text under the key of a number.

    Raises:
        ValueError: it is missing.
    """
    text = texts.get(key)
    if text is None:
        raise ValueError(f"{sentence(key)} is missing: write a whole number.")
    return text


def resource_amount(key: Key, resource: str, text: str) -> int:
    """The amount of the resource under the key.

    Raises:
        ValueError: the text is not a quantity, or it is negative.
    """
    try:
        value = amount(resource, text)
    except InvalidQuantity:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a quantity, such as 2, 500m or 4Gi.") from None
    if value < 0:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a quantity that is not negative.")
    return value
