"""Judges how fast pods are bound to a node whose kubelet rejects them: the pause that `core.cluster.failures` promises.

Of the pods of one maker, at most MOST may be rejected on a node within WINDOW_S, unless one attempt has more. Only
rejected pods that still exist count, because a new leader learns from those alone. A change of the PodGroup's spec
permits another attempt, so what was rejected before it does not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass, field

MOST = 5
WINDOW_S = 300.0
ATTEMPT_S = 3.0
"""Rejections within this time, in seconds, may be of one attempt."""


@dataclass(slots=True)
class Rejections:
    """The rejected pods by maker and node; `wrong` has a sentence for each maker that was too fast."""

    wrong: list[str] = field(default_factory=list)
    _known: defaultdict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))

    def note(self, maker: str, node: str, uid: str, *, at: float, there: Container[str], changed: float = 0.0) -> None:
        """A pod was rejected at this time in seconds; `there` are the pods that exist, by UID.

        `changed` is when the maker's spec was last changed.
        """
        since = max(at - WINDOW_S, changed)
        known = [(when, pod) for when, pod in self._known[maker, node] if when > since and pod in there]
        known.append((at, uid))
        self._known[maker, node] = known
        largest = max(sum(when <= other < when + ATTEMPT_S for other, _ in known) for when, _ in known)
        if len(known) > MOST + largest - 1:
            self.wrong.append(
                f"{len(known)} pods of {maker} were bound to node {node} and rejected within {WINDOW_S:g} s, at most "
                f"{largest} of them in one attempt"
            )
