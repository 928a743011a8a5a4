"""Placement strategies that other Python packages bring, found by their entry points `gangsched.strategies`.

A plug-in decides where members go, never whether they fit, and cannot harm the rest: what it hands out is checked, and
where it fails or hands out nonsense the gang is packed and the log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from gangsched.core.strategies import STRATEGIES, Room, Strategy

ENTRY_POINTS = "gangsched.strategies"
_LONGEST_NAME = 253
_log = logging.getLogger(__name__)


class InvalidPlugin(ValueError):  # noqa: N818 - what it names is the installed package
    """A plug-in that is installed cannot be used; the message says which, of which package, and what to do."""


def installed_strategies(found: Iterable[EntryPoint] | None = None) -> Mapping[str, Strategy]:
    """Gangsched's own strategies and those of the installed plug-ins (`found` unless None), by name.

    Raises:
        InvalidPlugin: a plug-in has an impossible name, another's name, or cannot be loaded.
    """
    strategies = dict(STRATEGIES)
    for point in sorted(entry_points(group=ENTRY_POINTS) if found is None else found):
        said = f"The strategy {point.name!r}{_origin(point)}"
        if "/" not in point.name or len(point.name) > _LONGEST_NAME:
            raise InvalidPlugin(
                f"{said} cannot be named by a PodGroup: name its entry point like example.com/name, with at most "
                f"{_LONGEST_NAME} characters, or uninstall the package."
            )
        if point.name in strategies:
            raise InvalidPlugin(f"{said} is brought by another package as well: uninstall one of them.")
        try:
            strategies[point.name] = _Checked(point.name, point.load()())
        except Exception as error:
            raise InvalidPlugin(
                f"{said} cannot be loaded ({type(error).__name__}: {error}): correct or uninstall the package."
            ) from error
    return strategies


def _origin(point: EntryPoint) -> str:
    return f" of the package {point.dist.name}" if point.dist is not None else ""


class _Checked:
    """A plug-in's strategy that hands out nothing where it would harm; then the gang is packed instead."""

    def __init__(self, name: str, strategy: Strategy) -> None:
        if not callable(getattr(strategy, "distribute", None)):
            raise TypeError("it has no method distribute(room, count)")
        self._name = name
        self._strategy = strategy
        self._complained = False

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        try:
            shares = [(int(row), int(number)) for row, number in self._strategy.distribute(room, count)]
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises must not stop the scheduler
            return self._refuse(f"it failed ({type(error).__name__}: {error})")
        caps = dict(zip(room.rows.tolist(), room.caps.tolist(), strict=True))
        if len(dict(shares)) < len(shares):
            return self._refuse("it names a node twice")
        if any(not 0 < number <= caps.get(row, 0) for row, number in shares):
            return self._refuse("it gives a node more members than it has room for, or none")
        if sum(number for _, number in shares) != count:
            return self._refuse("it gives places to more or fewer members than there are")
        return shares

    def _refuse(self, why: str) -> list[tuple[int, int]]:
        if not self._complained:
            self._complained = True
            _log.error(
                "a strategy plug-in does not work; gangs that name it are packed",
                extra={"strategy": self._name, "why": why},
            )
        return []
