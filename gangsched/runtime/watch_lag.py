"""How far the watch of pods is behind: from the answer to a binding until the watch shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gangsched.core.objects.events import Event, PodSeen
from gangsched.core.objects.results import PodBound

_KEPT_S = 60.0
"""A pod whose other half is not heard of for so long is forgotten: it was deleted, or bound in an earlier term."""


class WatchLag:
    """The answers that the watch has yet to show, and bindings that it has shown before their answers, by UID."""

    def __init__(self, add: Callable[[float], None]) -> None:
        self._add = add
        self._answered: dict[str, float] = {}
        self._shown: dict[str, float] = {}

    def heed(self, events: Iterable[Event], now_s: float) -> None:
        """These events have arrived, in this order. Times are monotonic seconds."""
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
        for known in (self._answered, self._shown):
            while known and known[oldest := next(iter(known))] < now_s - _KEPT_S:
                del known[oldest]
