"""A controller that replaces each failed pod at once, and the kubelets that make its pods fail."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import count

from msgspec.structs import replace

from gangsched.core.objects.pod import Failure, Pod, PodPhase
from tests.harness import Harness

WINDOW_S = 300.0
SAID = "TopologyAffinityError: Resources cannot be allocated with Topology locality"


class Fate(Enum):
    """What becomes of a bound pod: its kubelet rejects it, its containers end at once, or it runs on."""

    REJECTED = "rejected"
    ENDS = "ends"
    RUNS = "runs"


class Loop:
    """Keeps `number` pods alive, as a ReplicaSet or, with `same_names`, as a StatefulSet, which deletes failed pods.

    `make` returns the pod of that number, with any UID. `fate` decides about each bound pod; it may be replaced.
    `failed` are the times and nodes of failures.
    """

    def __init__(
        self,
        harness: Harness,
        make: Callable[[int], Pod],
        number: int,
        *,
        fate: Callable[[Pod], Fate] = lambda _: Fate.REJECTED,
        same_names: bool = False,
    ) -> None:
        self.fate = fate
        self.make = make
        self.failed: list[tuple[float, str]] = []
        self._harness = harness
        self._number = number
        self._same_names = same_names
        self._made = count()
        self._mine: dict[str, int] = {}
        self._act()

    def most(self) -> int:
        """The largest number of failures within WINDOW_S."""
        times = [at for at, _ in self.failed]
        return max((sum(since <= at < since + WINDOW_S for at in times) for since in times), default=0)

    def pods(self) -> list[Pod]:
        """Its pods that have not ended."""
        mine = (self._harness.pods[uid] for uid in self._mine if uid in self._harness.pods)
        return [pod for pod in mine if not (pod.terminal or pod.terminating)]

    def run_for(self, seconds: float) -> None:
        """Let it run for this long."""
        ends = self._harness.now + seconds
        while self._harness.now < ends:
            self._harness.wait(min(0.5, ends - self._harness.now))
            self._act()
        self._harness.settle()

    def _act(self) -> None:
        for pod in self.pods():
            if pod.node and pod.phase is PodPhase.PENDING:
                self._play(pod, self.fate(pod))
        alive = {self._mine[pod.uid] for pod in self.pods()}
        for _ in range(self._number - len(alive)):
            serial = next(self._made)
            number = min(set(range(self._number)) - alive) if self._same_names else serial
            alive.add(number)
            made = replace(self.make(number), uid=f"loop-{id(self)}-{serial}", created=self._harness.now)
            self._mine[made.uid] = number
            self._harness.add(made)

    def _play(self, pod: Pod, fate: Fate) -> None:
        harness, now = self._harness, self._harness.now
        if fate is not Fate.REJECTED:
            harness.change(f"{pod.namespace}/{pod.name}", phase=PodPhase.RUNNING)
        if fate is Fate.RUNS:
            return
        self.failed.append((now, pod.node))
        how = {
            Fate.REJECTED: Failure(SAID),
            Fate.ENDS: Failure("container main: Error, exit code 1", at=now, ran_s=1.0),
        }
        over = replace(harness.pods[pod.uid], phase=PodPhase.FAILED, rejected=fate is Fate.REJECTED, failure=how[fate])
        harness.add(over)
        if self._same_names:
            harness.delete(f"{pod.namespace}/{pod.name}")
