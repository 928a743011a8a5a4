"""Measures how far the watch of pods is behind: the time from the result of a binding until the watch shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gangsched.core.objects.events import Event, PodSeen
from gangsched.core.objects.results import PodBound

_KEPT_S = 60.0
"""Seconds after which a pod with only a result or only a watch event is forgotten: it was deleted, or bound in an
earlier term."""


class WatchLag:
    """By pod UID: results that the watch has yet to show, and bindings that it showed before their results arrived."""

    def __init__(self, add: Callable[[float], None]) -> None:
        self._add = add
        self._answered: dict[str, float] = {}
        self._shown: dict[str, float] = {}

    def observe(self, events: Iterable[Event], now_s: float) -> None:
        """Record events in the order of their arrival, at `now_s` of a monotonic clock."""
        for event in events:
            if isinstance(event, PodBound):
                if self._shown.pop(event.uid, None) is None:
                    self._answered[event.uid] = now_s
                else:
                    self._add(0.0)
            elif isinstance(event, PodSeen) and event.pod.node:
                uid = event.pod.uid
                began = self._answered.pop(uid, None)
                if began is not None:
                    self._add(now_s - began)
                elif uid not in self._shown:
                    self._shown[uid] = now_s
        for times in (self._answered, self._shown):
            while times and times[oldest := next(iter(times))] < now_s - _KEPT_S:
                del times[oldest]
