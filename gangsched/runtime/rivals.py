"""Counts and reports pods of our schedulerName that another process has bound."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

_NAMED = 3
_REMEMBERED_S = 60.0

_ADVICE = (
    "another scheduler, or a second gangsched without leader election or with another Lease, serves the same"
    " schedulerName: stop it, or change the schedulerName of one of the two"
)


class Rivals:
    """Remembers when another process last bound a pod that was ours to bind."""

    def __init__(self, metrics: Metrics, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._last = float("-inf")

    def seen(self, rivals: Sequence[tuple[str, str]]) -> None:
        """Count and log these pods ("NAMESPACE/POD" and node) that another process has bound."""
        if not rivals:
            return
        self._last = self._monotonic()
        self._metrics.rivals_bound(len(rivals))
        named = ", ".join(f"{pod} to {node}" for pod, node in rivals[:_NAMED])
        _log.warning(
            "another process binds pods of our schedulerName",
            extra={"count": len(rivals), "pods": named, "why": _ADVICE},
        )

    def forget(self) -> None:
        """Forget the last binding by another process. After a loss of the lease it was probably the new leader's."""
        self._last = float("-inf")

    def problem(self) -> str:
        """The problem, for a minute after the last such binding; empty otherwise."""
        ago_s = self._monotonic() - self._last
        if ago_s >= _REMEMBERED_S:
            return ""
        return f"another process bound a pod of our schedulerName {ago_s:.0f} s ago: {_ADVICE}"
