"""Spark applications: a driver, which says how many executors it needs and how large, and executors that come later.

Both dialects of them hold places for the executors from the moment at which the driver is bound, so the group's name
must be one that a PodGroup can have. What an executor's place takes is what the driver says; what a pod takes is what
the pod itself asks for. The success of the driver is that of the application.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from gangsched.config.dialects import Key
from gangsched.core.gang.making import OBJECT_NAME
from gangsched.core.objects.declaration import PACKED, Declaration, Placing, Preference, Role
from gangsched.core.objects.quantity import InvalidQuantity, amount
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence

DRIVER, EXECUTOR = "driver", "executor"


@dataclass(frozen=True, kw_only=True)
class SparkDialect(Dialect, ABC):
    """What both have in common. `placing` is where members go, the preferences those of drivers and executors."""

    placing: Placing = PACKED
    driver_prefer: tuple[Preference, ...] = ()
    executor_prefer: tuple[Preference, ...] = ()
    in_turn: bool = False

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        if base.role not in (DRIVER, EXECUTOR):
            found = quoted(base.role) if base.role else "missing"
            raise ValueError(f"{sentence(self.row.role[0])} is {found}: write {DRIVER} or {EXECUTOR}.")
        if base.role == EXECUTOR:
            return replace(base, placement=self.placing, leading=DRIVER)
        least, most = self.executors(said)
        if least and not OBJECT_NAME.fullmatch(base.group):
            raise ValueError(
                f"The application's name {quoted(base.group)} cannot be that of a PodGroup, in which places for its "
                "executors must stand: write at most 63 small letters, digits, '-' and '.', with a letter or digit at "
                "both ends."
            )
        template = Shape(requests=self.requests(said))
        return replace(
            base,
            roles=(
                Role(DRIVER, 1, 1, prefer=self.driver_prefer),
                Role(EXECUTOR, least, most, template, like_declarer=True, prefer=self.executor_prefer),
            ),
            leading=DRIVER,
            placement=self.placing,
            in_turn=self.in_turn,
        )

    @abstractmethod
    def executors(self, said: Mapping[Key, str]) -> tuple[int, int]:
        """The least and the largest number of executors that the driver says.

        Raises:
            ValueError: it does not say, or cannot be read.
        """

    @abstractmethod
    def requests(self, said: Mapping[Key, str]) -> Amounts:
        """What one executor takes, as the driver says.

        Raises:
            ValueError: it does not say, or cannot be read.
        """


def number_text(key: Key, said: Mapping[Key, str]) -> str:
    """What is under the key of a number.

    Raises:
        ValueError: nothing is.
    """
    text = said.get(key)
    if text is None:
        raise ValueError(f"{sentence(key)} is missing: write a whole number.")
    return text


def resource_amount(key: Key, resource: str, text: str) -> int:
    """How much of the resource is under the key.

    Raises:
        ValueError: it is no quantity, or a negative one.
    """
    try:
        found = amount(resource, text)
    except InvalidQuantity:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a quantity, such as 2, 500m or 4Gi.") from None
    if found < 0:
        raise ValueError(f"{sentence(key)} is {quoted(text)}: write a quantity that is not negative.")
    return found
