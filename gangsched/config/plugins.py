"""Placement strategies from other Python packages, which declare the entry point `gangsched.strategies`.

A plug-in decides where members go, never whether they fit, and cannot break the scheduler. Each answer is checked. If a
plug-in fails or its answer is invalid, the gang is packed and the log says why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from operator import index

from gangsched.core.objects.strategy import Room, Strategy
from gangsched.core.objects.wording import printable

ENTRY_POINTS = "gangsched.strategies"
_LONGEST_NAME = 253
_LONGEST_TEXT = 200
_MOST_COMPLAINTS = 8
"""Maximum number of different faults of one plug-in that are logged, each once."""
_ANY_ERROR = (Exception, SystemExit)
"""No exception of a plug-in may stop the scheduler. A SystemExit would even end it with success."""
_log = logging.getLogger(__name__)


class InvalidPlugin(ValueError):  # noqa: N818 - what it names is the installed package
    """An installed plug-in cannot be used; the message names it and its package and says what to do."""


def installed_strategies(points: Iterable[EntryPoint] | None = None) -> Mapping[str, Strategy]:
    """The strategies of the installed plug-ins (`points` unless None), by name.

    Raises:
        InvalidPlugin: a plug-in has an invalid or duplicate name, or cannot be loaded.
    """
    strategies: dict[str, Strategy] = {}
    for point in sorted(entry_points(group=ENTRY_POINTS) if points is None else points):
        strategy = f"The strategy {point.name!r}{_origin(point)}"
        if "/" not in point.name or len(point.name) > _LONGEST_NAME:
            raise InvalidPlugin(
                f"{strategy} cannot be named by a PodGroup: name its entry point like example.com/name, with at most "
                f"{_LONGEST_NAME} characters, or uninstall the package."
            )
        if point.name in strategies:
            raise InvalidPlugin(f"{strategy} is also provided by another package: uninstall one of them.")
        try:
            strategies[point.name] = _Checked(point.name, point.load()())
        except _ANY_ERROR as error:
            raise InvalidPlugin(
                f"{strategy} cannot be loaded ({_described(error)}): correct or uninstall the package."
            ) from error
    return strategies


def _origin(point: EntryPoint) -> str:
    return f" of the package {point.dist.name}" if point.dist is not None else ""


def _described(error: BaseException) -> str:
    """The error as part of a sentence: on one line, of limited length, even if its text cannot be printed."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot be printed is shown as its type
        text = ""
    return f"{type(error).__name__}: {printable(' '.join(text.split()), limit=_LONGEST_TEXT)}"


class _Checked:
    """Checks the answers of a plug-in's strategy: an invalid one becomes an empty one, and the gang is packed."""

    def __init__(self, name: str, strategy: Strategy) -> None:
        if not callable(getattr(strategy, "distribute", None)):
            raise TypeError("the class has no method distribute(room, count)")
        self._name = name
        self._strategy = strategy
        self._complaints: set[str] = set()

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        caps = dict(zip(room.rows.tolist(), room.caps.tolist(), strict=True))
        for array in (room.rows, room.caps, room.fullness, room.own, room.rank, *room.preferences):
            array.setflags(write=False)
        try:
            answer = islice(self._strategy.distribute(room, count), len(caps) + 1)
            shares = [(index(row), index(number)) for row, number in answer]
        except _ANY_ERROR as error:
            return self._refuse(f"it failed ({_described(error)})", error)
        if len(dict(shares)) < len(shares):
            return self._refuse("it names a node twice")
        if any(not 0 < number <= caps.get(row, 0) for row, number in shares):
            return self._refuse("it gives a node no members, or more than the node has room for")
        if sum(number for _, number in shares) != count:
            return self._refuse("it places more or fewer members than the gang has")
        return shares

    def _refuse(self, why: str, error: BaseException | None = None) -> list[tuple[int, int]]:
        if why not in self._complaints and len(self._complaints) < _MOST_COMPLAINTS:
            self._complaints.add(why)
            _log.error(
                "the strategy plug-in %s failed, and gangs that name it are packed: %s",
                self._name,
                why,
                exc_info=error,
            )
        return []
