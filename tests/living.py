"""The harness with its surroundings: controllers, kubelets, a warm standby, and crashes of the leading process.

The invariants of `tests.promises` are checked at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import Event, PodGone, PodSeen
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    OwnerSeen,
    PodBound,
    PodEvicted,
    StatusRefused,
    StatusWritten,
)
from tests.harness import Harness, Standby
from tests.ledger import Ledger
from tests.promises import RuleOne

ANSWERS = (PodBound, BindRefused, PodEvicted, EvictionRefused, OwnerSeen, StatusWritten, StatusRefused)
GRACE_S = 1.0
"""Time, in seconds, until a terminating pod is deleted."""
REMADE_S = 0.5
"""Time, in seconds, until a controller recreates a deleted pod."""


class Death(Enum):
    """When a process dies: before an effect, after it, or after the rest of its batch with this effect left out."""

    BEFORE = auto()
    AFTER = auto()
    AMID = auto()


class Living(Harness):
    """A cluster in memory whose controllers recreate deleted pods, except those of `retired` controllers (by UID).

    `crash_in` is the number of effects after which the leading process dies, `death` when exactly; `succeed` is then
    called with the effect at which it died. `carried` holds the effects of the leading process so far, `batches` the
    sizes of the batches in which they were decided. `landed` lists the UIDs of pods in the order of their bindings.
    """

    def __init__(self, policy: Policy | None = None, *, seed: int | None = None) -> None:
        super().__init__(policy, seed=seed)
        self.ledger = Ledger()
        self.rule_one = RuleOne(self, self.ledger)
        self.standby = Standby(Machine(self.policy))
        self.retired: set[str] = set()
        self.crash_in: int | None = None
        self.carried: list[Effect] = []
        self.batches: list[int] = []
        self.lives = 0
        self.death = Death.BEFORE
        self.succeed: Callable[[Effect], None] = lambda _: self.restart()
        self.landed: list[str] = []
        self._last: dict[str, Pod] = {}
        self._made = 0

    # What happens in the cluster

    def report(self, event: Event) -> None:
        super().report(event)
        if isinstance(event, PodSeen):
            self._seen(event.pod)
        elif isinstance(event, PodGone):
            lost = self._last.pop(event.uid)
            self.after(REMADE_S, lambda: self._make_again(lost))
        self.rule_one.look()

    def _seen(self, pod: Pod) -> None:
        before = self._last.get(pod.uid)
        self._last[pod.uid] = pod
        if pod.terminating and not (before is not None and before.terminating):
            self.after(GRACE_S, lambda: self._remove(pod.uid))
        elif pod.phase is PodPhase.FAILED and pod.owner is not None:
            self.after(REMADE_S, lambda: self._remove(pod.uid))
        if pod.node and not (before is not None and before.node):
            self.landed.append(pod.uid)
            self.rule_one.landed(pod)
            self._admit(pod.node)

    def _remove(self, uid: str) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            self.delete(f"{pod.namespace}/{pod.name}")

    def _make_again(self, lost: Pod) -> None:
        taken = any((pod.namespace, pod.name) == (lost.namespace, lost.name) for pod in self.pods.values())
        if lost.owner is None or lost.owner.uid in self.retired or taken or lost.phase is PodPhase.SUCCEEDED:
            return
        self._made += 1
        self.add(
            replace(
                lost,
                uid=f"{lost.namespace}/{lost.name}/{self._made}",
                created=self.server_time,
                node="",
                bound_at=0.0,
                phase=PodPhase.PENDING,
                rejected=False,
                terminating=False,
                condition_reason="",
                condition_message="",
            )
        )

    def _admit(self, name: str) -> None:
        """Let the kubelet reject the latest pods for which the node has no room."""
        node = self.nodes.get(name)
        if node is None:
            return
        free = dict(node.allocatable)
        order = {uid: number for number, uid in enumerate(self.landed)}
        there = [pod for pod in self.pods.values() if pod.node == name and not pod.terminal]
        for pod in sorted(there, key=lambda pod: order[pod.uid]):
            asked = {"pods": 1, **dict(pod.shape.requests)}
            if any(amount > free.get(resource, 0) for resource, amount in asked.items()):
                self.add(replace(pod, phase=PodPhase.FAILED, rejected=True))
            else:
                free.update({resource: free[resource] - amount for resource, amount in asked.items()})

    # The leading process and its successor

    def _decide(self, events: list[Event]) -> list[Effect]:
        self.rule_one.look()
        self.ledger.hear(events)
        self.rule_one.hear(events)
        effects = super()._decide(events)
        self.ledger.check(effects)
        self.rule_one.decided(effects)
        return effects

    def _hand_over(self, events: list[Event]) -> list[Effect]:
        effects = self._decide(events)
        dying: Effect | None = None
        for effect in effects:
            if self.crash_in == 0 and dying is None:
                dying = effect
                if self.death is Death.AFTER:
                    self._carry_out(effect)
                if self.death is not Death.AMID:
                    break
                continue
            if self.crash_in:
                self.crash_in -= 1
            self.carried.append(effect)
            self._carry_out(effect)
        if dying is not None:
            self.crash_in = None
            self.succeed(dying)
            return effects
        self.batches.append(len(effects))
        self.rule_one.look()
        return effects

    def restart(self) -> None:
        """The leading process dies; a new one lists everything and leads."""
        self._die()
        super().restart()

    def lead_again(self) -> None:
        self._die()
        super().lead_again()

    def fail_over(self, *, lag: int = 0) -> None:
        self._die()
        assert self.standby is not None
        self.standby.see(self.now, late=lag)
        for events, *_ in self.standby.history:
            self.ledger.hear(events)
        super().fail_over(lag=lag)

    def _die(self) -> None:
        self.lives += 1
        self.ledger = Ledger()
        self.rule_one.forget(self.ledger)

    def carry_out_late(self, effect: Effect, seconds: float) -> None:
        """Let an effect of a dead process take place after some seconds; its result is lost."""

        def act() -> None:
            known = {id(event) for event in self.inbox}
            self._carry_out(effect)
            self.inbox = [event for event in self.inbox if id(event) in known or not isinstance(event, ANSWERS)]

        self.after(seconds, act)

    def check_once(self, effect: BindPod) -> None:
        """The ledger checks this, by the machine's input."""

    def check_capacity(self) -> None:
        """The ledger checks this, by the machine's input; kubelets reject pods beyond the capacity."""
