"""Runs of a native group whose leaders die amid bindings: none stays half bound, and the time of True goes forward."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.effects import Effect, EvictPod
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import SeenCondition
from gangsched.core.objects.results import Result
from tests.builders import node
from tests.harness import Harness
from tests.scenarios.test_conditions import SET, puts, read
from tests.scenarios.test_foreign import members

KEY = GroupKey("default", "g")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("lose"), st.integers(1, 3)),
        st.tuples(st.just("room"), st.integers(0, 5)),
        st.sampled_from([("more",), ("restart",), ("control",), ("wait",)]),
    ),
    min_size=2,
    max_size=10,
)


class Cluster(Harness):
    """Notes whether the minimum was bound since the group last had no live member, and who may not be evicted.

    With `lags`, the watch shows a bound pod only after the answer to its binding.
    """

    def __init__(self, least: int, *, lags: bool) -> None:
        super().__init__()
        self.least, self.lags = least, lags
        self.whole = False

    def live(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if not pod.terminating]

    def half_bound(self) -> bool:
        return not self.whole and 0 < sum(bool(pod.node) for pod in self.live()) < self.least

    def report(self, event: Event) -> None:
        super().report(event)
        live = self.live()
        self.whole = bool(live) and (self.whole or sum(bool(pod.node) for pod in live) >= self.least)

    def _arrived(self) -> list[Event]:
        self.inbox.sort(key=lambda event: self.lags and not isinstance(event, Result))
        answers: list[Event] = [event for event in self.inbox if isinstance(event, Result)]
        return answers if self.lags and answers else [*self.inbox]

    def _hand_over(self, events: list[Event]) -> list[Effect]:
        there = self.foreign[NATIVE, KEY].phase
        assert isinstance(there, SeenCondition)
        shown = [pod for pod in self.live() if pod.node and there.scheduled and not there.is_older(pod)]
        effects = super()._hand_over(events)
        assert not (shown and any(isinstance(effect, EvictPod) for effect in effects)), "a scheduled group is evicted"
        return effects


class Life:
    """A native group whose members have a controller, which makes `size` of them."""

    def __init__(self, least: int, surplus: int, *, lags: bool) -> None:
        self.harness = Cluster(least, lags=lags)
        self.size = least + surplus
        self.made = 0
        self.harness.add(read({"schedulingPolicy": {"gang": {"minCount": least}}}), node(cpu=least))
        self.control()
        self.harness.wait(3)

    def control(self) -> None:
        self.harness.end_terminating()
        for _ in range(self.size - len(self.harness.pods)):
            self.made += 1
            self.harness.add(*members(1, "native", first=self.made, owner=SET, created=self.harness.server_time))

    def delete(self, count: int) -> None:
        """Delete so many members, first those that are bound."""
        there = sorted(self.harness.pods.values(), key=lambda pod: (not pod.node, pod.name))
        self.harness.delete(*(f"default/{pod.name}" for pod in there[:count]))

    def take(self, step: tuple[Any, ...]) -> None:
        harness = self.harness
        match step:
            case "run", bound, full:
                # The leader dies when it has bound so many members of the next run; its heir may find no more room.
                self.delete(len(harness.pods))
                harness.wait(2)
                harness.withhold = lambda _: sum(bool(pod.node) for pod in harness.pods.values()) >= bound
                self.control()
                harness.wait(0.5)
                harness.withhold = lambda _: False
                if full:
                    harness.add(node(cpu=len(harness.bound())))
                harness.restart()
            case "lose", count:
                self.delete(count)
                harness.wait(1)
                self.control()
            case "room", cpus:
                harness.add(node(cpu=max(cpus, len(harness.bound()))))
            case ("more",):
                self.size += 1
                self.control()
            case ("restart",):
                harness.restart()
            case ("control",):
                self.control()
        harness.wait(40 if step == ("wait",) else 2)

    def times(self) -> list[float]:
        """The times of the writes of True, which is never taken back."""
        true = [effect.condition.scheduled for effect in puts(self.harness)]
        assert true == sorted(true)
        return [effect.since for effect in puts(self.harness) if effect.condition.scheduled]


@given(st.integers(2, 3), st.integers(0, 2), st.booleans(), STEPS)
def test_no_later_run_stays_half_bound_and_the_time_of_true_only_goes_forward(least, surplus, lags, steps):
    life = Life(least, surplus, lags=lags)
    for step in steps:
        life.take(step)
    for _ in range(4):
        life.harness.wait(15)
        life.control()
    assert not life.harness.half_bound()
    times = life.times()
    assert all(earlier < later for earlier, later in pairwise(times))
    life.harness.wait(3600)
    assert life.times() == times
