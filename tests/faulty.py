"""A faulty API server: the living harness with lost, late and refused writes, and watches with lags and gaps.

Faults are set in advance, as a list of moods for each kind of write; with an empty list every write succeeds. A failing
example of hypothesis therefore shrinks to the few moods that matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, LookUpOwner, PatchPodCondition, PatchStatus
from gangsched.core.objects.events import (
    Event,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
)
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    OwnerSeen,
    PodBound,
    Refused,
    Spared,
    StatusRefused,
    StatusWritten,
)
from tests.living import Living

BIND_MOODS = (
    "",
    "unavailable",
    "unavailable after a while",
    "forbidden",
    "lost",
    "late",
    "slow",
    "slower",
    "queued",
    "queued for long",
    "answered late",
)
EVICT_MOODS = ("", "budget", "forbidden", "unavailable", "lost", "slow", "answered late")
STATUS_MOODS = ("", "stale", "failed", "lost", "slow")
WATCHES: dict[str, tuple[type, ...]] = {
    "pods": (PodSeen, PodGone, PodsReplaced),
    "nodes": (NodeSeen, NodeGone, NodesReplaced),
    "groups": (GroupSeen, GroupGone, GroupsReplaced),
}
LISTS = (PodsReplaced, NodesReplaced, GroupsReplaced)
LATEST_S = 3.5
SLOW_S = 2.0
LONG_S = 40.0
DEAD = -1
"""The life of no process: the result is dropped."""


class Faulty(Living):
    """`moods` decides the results of the next writes of each kind; `stalled` watches deliver nothing for now."""

    def __init__(self, policy: Policy | None = None, *, seed: int | None = None) -> None:
        super().__init__(policy, seed=seed)
        self.moods: dict[str, deque[str]] = {"bind": deque(), "evict": deque(), "status": deque(), "owner": deque()}
        self.stalled: dict[str, int] = {}
        self._writing: dict[GroupKey, PatchStatus | None] = {}
        self._stalls = 0

    def calm(self) -> None:
        """Let every write succeed from now on."""
        for moods in self.moods.values():
            moods.clear()

    # Watches

    def stall(self, watch: str, seconds: float, *, gap: bool) -> None:
        """Silence a watch for a while; after a gap it lists, and the events in between are never delivered."""
        self._stalls += 1
        mine = self.stalled[watch] = self._stalls

        def end() -> None:
            if self.stalled.get(watch) != mine:
                return
            del self.stalled[watch]
            if gap:
                self.inbox = [event for event in self.inbox if not isinstance(event, WATCHES[watch])]
                self.inbox += [found for found in self.lists() if isinstance(found, WATCHES[watch])]
            self.rule_one.excuse()

        self.after(seconds, end)

    def _arrived(self) -> list[Event]:
        """The events to deliver now: a list is delivered alone, after all earlier events of its watch."""
        silent = tuple(kind for watch in self.stalled for kind in WATCHES[watch])
        arrived = [event for event in self.inbox if not isinstance(event, silent)]
        first = next((number for number, event in enumerate(arrived) if isinstance(event, LISTS)), None)
        if first is not None:
            arrived = arrived[: max(first, 1)]
        told = {id(event) for event in arrived}
        self.inbox = [*arrived, *(event for event in self.inbox if id(event) not in told)]
        return arrived

    def restart(self) -> None:
        self._forget_streams()
        super().restart()

    def lead_again(self) -> None:
        self.stalled.pop("groups", None)
        self._writing.clear()
        super().lead_again()

    def fail_over(self, *, lag: int = 0) -> None:
        self._forget_streams()
        super().fail_over(lag=lag)

    def _forget_streams(self) -> None:
        self.stalled.clear()
        self._writing.clear()

    # Writes

    def _mood(self, kind: str) -> str:
        return self.moods[kind].popleft() if self.moods[kind] else ""

    def _reply(self, event: Event, seconds: float = 0.0) -> None:
        """Deliver the result to the process that made the request, if it is still alive by then."""
        if not seconds:
            self.inbox.append(event)
            return
        life = self.lives
        self.after(seconds, lambda: self.inbox.append(event) if self.lives == life else None)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, LookUpOwner) and self._mood("owner"):
            answer = self.jobs.get(effect.uid, OwnerSeen(effect.uid))
            if answer is not None:
                self._reply(answer, SLOW_S)
        elif isinstance(effect, PatchPodCondition) and self.moods["status"] and self.moods["status"][0]:
            return
        else:
            super()._carry_out(effect)

    def _bind(self, effect: BindPod) -> None:
        refused = BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no answer")
        match self._mood("bind"):
            case "unavailable":
                self._reply(refused)
            case "forbidden":
                self._reply(BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "not allowed"))
            case "unavailable after a while":
                self._reply(refused, SLOW_S)
            case "lost":
                answer = self._answer_bind(effect)
                self._reply(refused if isinstance(answer, PodBound) else answer)
            case "late":
                self._reply(refused)
                self._act_later(LATEST_S, lambda: self._answer_bind(effect), DEAD)
            case "slow" | "slower" as mood:
                self._act_later(SLOW_S if mood == "slow" else LATEST_S, lambda: self._answer_bind(effect), self.lives)
            case "queued" | "queued for long" as mood:
                self._withheld[effect.uid] = effect
                self.after(SLOW_S if mood == "queued" else LONG_S, lambda: self._send(effect))
            case "answered late":
                self._reply(self._answer_bind(effect), SLOW_S)
            case _:
                self._reply(self._answer_bind(effect))

    def _act_later(self, seconds: float, act: Callable[[], Event], life: int) -> None:
        """Let a write take effect after some seconds; only the process of that life receives the result."""

        def late() -> None:
            answer = act()
            if self.lives == life:
                self.inbox.append(answer)

        self.after(seconds, late)

    def _send(self, effect: BindPod) -> None:
        if self._withheld.get(effect.uid) is effect:
            del self._withheld[effect.uid]
            self._reply(self._answer_bind(effect))

    def _evict(self, effect: EvictPod) -> None:
        unheard = EvictionRefused(effect.uid, Spared.UNAVAILABLE, "no answer")
        match self._mood("evict"):
            case "budget":
                self._reply(EvictionRefused(effect.uid, Spared.BUDGET, "the budget forbids it"))
            case "forbidden":
                self._reply(EvictionRefused(effect.uid, Spared.FORBIDDEN, "not allowed"))
            case "unavailable":
                self._reply(unheard)
            case "lost":
                self._answer_eviction(effect)
                self._reply(unheard)
            case "slow":
                self._act_later(SLOW_S, lambda: self._answer_eviction(effect), self.lives)
            case "answered late":
                self._reply(self._answer_eviction(effect), SLOW_S)
            case _:
                self._reply(self._answer_eviction(effect))

    def _patch_status(self, effect: PatchStatus) -> None:
        """At most one write in flight for each group; the newest pending one follows it."""
        if effect.key in self._writing:
            self._writing[effect.key] = effect
            return
        mood = self._mood("status")
        if mood == "slow":
            self._writing[effect.key] = None
            life = self.lives
            self.after(SLOW_S, lambda: self._finish_status(effect, life))
        elif mood in ("stale", "failed"):
            self._reply(StatusRefused(effect.key, stale=mood == "stale"))
        else:
            answer = self._answer_status(effect)
            lost = mood == "lost" and isinstance(answer, StatusWritten)
            self._reply(StatusRefused(effect.key, stale=False) if lost else answer)

    def _finish_status(self, effect: PatchStatus, life: int) -> None:
        if self.lives != life:
            return
        self.inbox.append(self._answer_status(effect))
        newer = self._writing.pop(effect.key)
        if newer is not None:
            self._patch_status(newer)

    def foresee(self, kind: str, moods: Iterable[str]) -> None:
        """Set the moods of the next writes of a kind."""
        self.moods[kind] = deque(moods)
