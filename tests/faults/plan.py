"""Decides which request gets which fault, by a seed or by a test's orders.

The decision depends on the seed, the request's method and path, and the number of earlier requests for the same method
and path, not on other requests in between. Two runs with the same requests therefore get the same faults, whatever
their timing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import NamedTuple

from msgspec import Struct, field


class Fault(StrEnum):
    """A fault of one request. The server acts on the request unless stated otherwise."""

    RESET_BEFORE = "reset-before"
    """The connection is reset; the request never reaches the server."""
    RESET_AFTER = "reset-after"
    """The connection is reset after the server has answered: the reply is lost."""
    DELAY_BEFORE = "delay-before"
    """The request reaches the server late, even if its sender has given up by then."""
    DELAY_AFTER = "delay-after"
    """The answer arrives late."""
    CONFLICT = "conflict"
    """409; the server does not act."""
    THROTTLED = "throttled"
    """429 with Retry-After; the server does not act."""
    ERROR = "error"
    """500; the server does not act."""
    UNAVAILABLE = "unavailable"
    """503; the server does not act."""
    TIMEOUT = "timeout"
    """504; the server does not act."""
    ERROR_AFTER = "error-after"
    """500 although the server acted."""
    UNAVAILABLE_AFTER = "unavailable-after"
    """503 although the server acted."""
    TIMEOUT_AFTER = "timeout-after"
    """504 although the server acted."""
    TRUNCATED = "truncated"
    """The connection ends in the middle of the answer's body."""
    STALE_LIST = "stale-list"
    """A list is held back until it is old. It may not predate its request, as gangsched asks for no version."""
    EXPIRED = "expired"
    """410 to a watch, or to a list that is continued; the server is not asked."""
    EXPIRED_LATER = "expired-later"
    """A watch delivers an ERROR event with code 410 and ends."""
    WATCH_ENDS = "watch-ends"
    """A watch ends cleanly for no reason."""
    WATCH_SILENT = "watch-silent"
    """A watch stays open but delivers nothing more, not even bookmarks."""
    WATCH_DUPLICATES = "watch-duplicates"
    """A watch delivers events twice."""
    WATCH_REORDERS = "watch-reorders"
    """A watch delivers events of different objects in another order (see tests.faults.streams)."""
    WATCH_LAGS = "watch-lags"
    """A watch delivers its events in order, but late: after those of other watches and after responses."""
    WATCH_CUT = "watch-cut"
    """The connection is reset in the middle of an event."""


_EVERYWHERE = frozenset(
    {
        *(Fault.RESET_BEFORE, Fault.DELAY_BEFORE, Fault.THROTTLED),
        *(Fault.ERROR, Fault.UNAVAILABLE, Fault.TIMEOUT),
    }
)
_OF_ANSWERS = frozenset({Fault.RESET_AFTER, Fault.DELAY_AFTER, Fault.TRUNCATED})
OF_READS = _EVERYWHERE | _OF_ANSWERS
OF_WRITES = OF_READS | {Fault.CONFLICT, Fault.ERROR_AFTER, Fault.UNAVAILABLE_AFTER, Fault.TIMEOUT_AFTER}
OF_LISTS = OF_READS | {Fault.STALE_LIST}
OF_STREAMS = frozenset(
    {
        *(Fault.EXPIRED_LATER, Fault.WATCH_ENDS, Fault.WATCH_SILENT, Fault.WATCH_CUT),
        *(Fault.WATCH_DUPLICATES, Fault.WATCH_REORDERS, Fault.WATCH_LAGS),
    }
)
"""Faults of a watch whose response has begun."""
OF_WATCHES = _EVERYWHERE | OF_STREAMS | {Fault.EXPIRED}

_STORM: Mapping[Fault, float] = {
    **dict.fromkeys((Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.CONFLICT, Fault.THROTTLED), 0.02),
    **dict.fromkeys((Fault.DELAY_BEFORE, Fault.DELAY_AFTER), 0.05),
    **dict.fromkeys((Fault.ERROR, Fault.UNAVAILABLE, Fault.TIMEOUT, Fault.TRUNCATED), 0.01),
    **dict.fromkeys((Fault.ERROR_AFTER, Fault.UNAVAILABLE_AFTER, Fault.TIMEOUT_AFTER), 0.01),
    **dict.fromkeys((Fault.STALE_LIST, Fault.EXPIRED_LATER, Fault.WATCH_CUT, Fault.WATCH_ENDS), 0.1),
    **dict.fromkeys((Fault.WATCH_DUPLICATES, Fault.WATCH_REORDERS, Fault.WATCH_LAGS), 0.1),
    **dict.fromkeys((Fault.EXPIRED, Fault.WATCH_SILENT), 0.05),
}


class Rates(Struct, frozen=True, kw_only=True):
    """The probability (0 to 1) of each fault for a request that can have it, and the ranges of its random parameters.

    `delay_s` applies to delays, lagging watches and late lists. A watch chosen to fail does so after at most
    `watch_events` events or a time within `watch_s`, whichever comes first. `retry_after_s` goes with a 429.

    Raises:
        ValueError: a rate is not between 0 and 1, or the rates of one kind of request add up to more than 1.
    """

    of: dict[Fault, float] = field(default_factory=lambda: dict(_STORM))
    delay_s: tuple[float, float] = (0.05, 1.5)
    watch_s: tuple[float, float] = (0.0, 5.0)
    watch_events: int = 10
    retry_after_s: int = 1

    def __post_init__(self) -> None:
        for possible in (OF_WRITES, OF_LISTS | {Fault.EXPIRED}, OF_WATCHES):
            rates = [self.of.get(fault, 0.0) for fault in possible]
            if min(rates) < 0 or sum(rates) > 1:
                raise ValueError(f"rates must be between 0 and 1, also together: {self.of}")


def only(*faults: Fault, rate: float) -> dict[Fault, float]:
    """These faults at this rate and no other, for `Rates.of`."""
    return dict.fromkeys(faults, rate)


class Asked(NamedTuple):
    """A request: its path without the query, the query, and its body."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes = b""

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and self.query.get("watch") in ("true", "1")

    @property
    def possible(self) -> frozenset[Fault]:
        """The faults that the request can get."""
        if self.is_watch:
            return OF_WATCHES
        if self.method != "GET":
            return OF_WRITES
        continued = frozenset({Fault.EXPIRED} if "continue" in self.query else ())
        return continued | (OF_LISTS if _is_collection(self.path) else OF_READS)


class Rule(Struct, frozen=True, kw_only=True):
    """A fault ordered for certain requests; see `Plan.add`."""

    fault: Fault
    method: str = ""
    path_contains: tuple[str, ...] = ()
    body_contains: tuple[str, ...] = ()
    times: int = 1
    after: int = 0

    def matches(self, asked: Asked) -> bool:
        return (
            self.method in ("", asked.method)
            and all(part in asked.path for part in self.path_contains)
            and all(part.encode() in asked.body for part in self.body_contains)
            and self.fault in asked.possible
        )


class Decision(NamedTuple):
    """The fault of a request, None for none, and the dice for its details."""

    fault: Fault | None
    dice: Random


class _Standing:
    """A rule and how many requests have matched it."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._met = 0

    def is_due(self) -> bool:
        """Count a matching request; returns whether it gets the fault."""
        self._met += 1
        return self._met > self.rule.after

    @property
    def used_up(self) -> bool:
        return self._met >= self.rule.after + self.rule.times


class Plan:
    """Decides the fault of each request. Rules always apply, rates only while `stormy`."""

    def __init__(self, *, seed: int, rates: Rates) -> None:
        self.rates = rates
        self.stormy = True
        self._seed = seed
        self._asked: Counter[tuple[str, str, bool]] = Counter()
        self._rules: list[_Standing] = []

    def add(self, rule: Rule) -> None:
        """From now on, skip the first `after` matching requests that could have the fault, then apply it to `times`.

        If several rules match a request, the oldest that is due decides; younger ones do not count the request.
        """
        self._rules.append(_Standing(rule))

    def forget(self) -> None:
        """Drop all rules."""
        self._rules.clear()

    def decide(self, asked: Asked) -> Decision:
        """Decide the fault of this request."""
        identity = (asked.method, asked.path, asked.is_watch)
        dice = Random(f"{self._seed} {identity} {self._asked[identity]}")
        self._asked[identity] += 1
        ordered = self._ordered(asked)
        if ordered is not None:
            return Decision(ordered, dice)
        return Decision(self._drawn(asked, dice) if self.stormy else None, dice)

    def _ordered(self, asked: Asked) -> Fault | None:
        for standing in self._rules:
            if standing.rule.matches(asked) and standing.is_due():
                if standing.used_up:
                    self._rules.remove(standing)
                return standing.rule.fault
        return None

    def _drawn(self, asked: Asked, dice: Random) -> Fault | None:
        left = dice.random()
        possible = asked.possible
        for fault in Fault:
            if fault in possible:
                left -= self.rates.of.get(fault, 0.0)
                if left < 0:
                    return fault
        return None


def _is_collection(path: str) -> bool:
    """Whether GET of this path is a list: /api/v1/pods, /apis/GROUP/VERSION/namespaces/NAME/RESOURCE, …"""
    root, *parts = path.strip("/").split("/")
    parts = parts[1 if root == "api" else 2 :]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return root in ("api", "apis") and len(parts) == 1
