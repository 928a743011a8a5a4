"""What is done about pods that are ours to bind and were bound by somebody else: it is counted and told."""

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
    " schedulerName: end it, or give one of the two another name"
)


class Rivals:
    """Remembers when somebody else last bound a pod that was ours to bind."""

    def __init__(self, metrics: Metrics, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._monotonic = monotonic
        self._last = float("-inf")

    def seen(self, rivals: Sequence[tuple[str, str]]) -> None:
        """These pods ("NAMESPACE/POD" and node) were bound by somebody else."""
        if not rivals:
            return
        self._last = self._monotonic()
        self._metrics.rivals_bound(len(rivals))
        named = ", ".join(f"{pod} to {node}" for pod, node in rivals[:_NAMED])
        _log.warning(
            "somebody else binds pods of our schedulerName", extra={"count": len(rivals), "pods": named, "why": _ADVICE}
        )

    def problem(self) -> str:
        """What is wrong, for a minute after the last such binding; empty otherwise."""
        ago_s = self._monotonic() - self._last
        if ago_s >= _REMEMBERED_S:
            return ""
        return f"somebody else bound a pod of our schedulerName {ago_s:.0f} s ago: {_ADVICE}"
