"""What random walks of gangs have in common: bindings that fail, leaders that change, other pods, and calm at last."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.objects.volumes import StorageClass
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import fits
from tests.builders import pod
from tests.harness import Harness

AT_ONCE = 0.3
"""How often two things happen with no call of the machine between them, or a few that leave it something to do."""
FAST = StorageClass("fast", "csi", waits=True, provisions=True)
OWNER = Owner("ReplicaSet", "rs", "uid-rs", "apps")
FAULTS = (None, None, None, Refused.UNAVAILABLE, Refused.UNAVAILABLE, Refused.FORBIDDEN, Refused.DENIED)
Happens = tuple[int, Callable[[], None]]
"""How often something happens, beside the other numbers, and what."""


class Judged(Harness):
    """A harness that calls `judge` after each call of the machine, before anything is done about its effects."""

    judge: Callable[[], None]

    def _decide(self, events: list[Event]) -> list[Effect]:
        effects = super()._decide(events)
        self.judge()
        return effects


class Walk:
    """Some pods whose bindings fail or get lost at random. Subclasses add them, and say what else `happens`."""

    rival_leaves = 0.5
    """How often one of the pods of another scheduler leaves rather than one comes."""

    def __init__(self, seed: int, policy: Policy | None = None) -> None:
        judged = Judged(policy)
        judged.judge = self.judge
        self.random, self.made = Random(seed), 0
        self.harness: Harness = judged
        self.faults: dict[str, Refused | None] = {}
        self.harness.refuse_bind = self.refuse
        self.harness.lose_answer = lambda _: self.random.random() < 0.05
        self.harness.withhold = lambda _: self.random.random() < 0.08

    def happens(self) -> tuple[Happens, ...]:
        raise NotImplementedError

    def control(self) -> None:
        """What the pods' controller does."""
        raise NotImplementedError

    def judge(self) -> None:
        """What the machine has decided is right: it knows all that has happened, and nothing is done about it yet."""

    def refuse(self, effect: BindPod) -> BindRefused | None:
        why = self.faults.setdefault(effect.name, self.random.choice(FAULTS))
        if why is None or (why is Refused.UNAVAILABLE and self.random.random() < 0.2):
            return None
        return BindRefused(effect.uid, effect.node, why, "no")

    def rival(self) -> None:
        """A pod of another scheduler takes room that no binding of ours is about to take, or one leaves."""
        rivals = [each for each in self.harness.pods.values() if each.name.startswith("rival")]
        if rivals and self.random.random() < self.rival_leaves:
            self.harness.delete(f"default/{self.random.choice(rivals).name}")
            return
        found = self.random.choice([*self.harness.nodes.values()])
        held = {each.uid for each in self.harness.pods.values() if each.node == found.name}
        held.update(self.harness.machine.cluster.on_node.get(found.name, ()))
        if len(held) < dict(found.allocatable)["cpu"] // 1000:
            self.made += 1
            self.harness.add(pod(f"rival-{self.made}", group="", node=found.name, scheduler="other"))

    def lead_again(self) -> None:
        """The same process leads again, if it has seen where others' pods are: two schedulers may give away a room."""
        held = {each.uid for each in self.harness.pods.values() if each.node and each.scheduler == "other"}
        if held <= self.harness.machine.cluster.pods.keys():
            self.harness.lead_again()

    def end_one(self) -> None:
        """One of several terminating pods is gone before the others."""
        there = [each.name for each in self.harness.pods.values() if each.terminating]
        self.harness.delete(*(f"default/{name}" for name in self.random.sample(there, min(1, len(there)))))

    def step(self) -> None:
        usual = ((6, self.harness.send_withheld), (6, self.harness.run_pods), (10, self.control))
        happens = (*self.happens(), *usual, (5, self.harness.end_terminating), (5, self.end_one))
        weights, several = zip(*happens, strict=True)
        first, second = self.random.choices(several, weights, k=2)
        first()
        if self.random.random() < AT_ONCE:
            for _ in range(self.random.choice((0, 0, 1, 2, 3))):
                self.harness.step()
            second()
        self.harness.wait(self.random.choice((0, 0.3, 1, 3, 9, 25)))
        self.check_nobody_is_overlooked()

    def check_nobody_is_overlooked(self) -> None:
        """Who is parked for want of room would be refused again if it were tried now."""
        state = self.harness.machine._state  # noqa: SLF001 - what would be decided now has no other door
        for key, gang in state.gangs.items():
            assessment, refusal = state.assessments.get(key), gang.wait.refusal
            if assessment is None or assessment.want.quorum is None or not gang.wait.parked or gang.wait.behind:
                continue
            ask = state.asking.of(gang, assessment) if refusal is not None and not refusal.exhausted else None
            if ask is not None:
                snapshot = Snapshot(state.cluster)
                snapshot.stand_for(state.viewers.of(key, assessment, self.harness.now))
                assert not fits(snapshot, ask), f"{key} fits and is not tried"

    def heal(self) -> None:
        """Nothing fails any more."""
        self.harness.refuse_bind, self.harness.refuse_eviction = lambda _: None, lambda _: None
        self.harness.lose_answer = self.harness.withhold = lambda _: False
        self.harness.send_withheld()

    def calm(self, times: int) -> None:
        """Nothing fails any more, for so many times ten seconds."""
        self.heal()
        for _ in range(times):
            self.harness.wait(10)
            self.harness.end_terminating()
            self.control()
