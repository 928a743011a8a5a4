"""Whatever happens to a group and its Job: only a failed group is Failed, and a restart changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gangsched.core.objects.pod import PodPhase
from tests.scenarios.test_suspended import ENDED, SIZE, Story

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), st.integers(1, SIZE)),
        st.tuples(st.just("end"), st.sampled_from([PodPhase.FAILED, PodPhase.SUCCEEDED]), st.integers(1, SIZE)),
        st.tuples(st.just("delete"), st.integers(1, SIZE)),
        st.tuples(st.just("terminate"), st.integers(1, SIZE)),
        st.sampled_from([("stop",), ("sweep",), ("drop",), ("go",), ("restart",), ("look",)]),
        st.tuples(st.just("tell"), st.sampled_from(["suspended", "none", "ended", "deleted", "wanted"])),
    ),
    min_size=1,
    max_size=20,
)
SPECS: dict[str, dict[str, Any]] = {
    "suspended": {"suspend": True},
    "none": {"parallelism": 0},
    "ended": {"status": ENDED},
    "deleted": {"deleted": True},
    "wanted": {},
}


class Life:
    """A Job's group and the Job's latest state."""

    def __init__(self) -> None:
        self.story = Story("job")
        self.said = "wanted"
        self.damaged = self.restart_due = False

    def take(self, step: tuple[Any, ...]) -> None:
        story, harness = self.story, self.story.harness
        live = [f"default/{each.name}" for each in story.alive if not each.terminating]
        bound = [name for name in live if harness.pod(name).node]
        match step:
            case "make", number:
                story.make(min(number, SIZE - len(live)))
            case "end", phase, number:
                self.damaged |= phase is PodPhase.FAILED and bool(bound)
                for name in bound[:number]:
                    harness.change(name, phase=phase)
            case "delete", number:
                harness.delete(*live[:number])
            case "terminate", number:
                for name in live[:number]:
                    harness.change(name, terminating=True)
            case ("stop",):
                for each in [each for each in story.alive if each.terminating]:
                    harness.change(f"default/{each.name}", phase=PodPhase.FAILED)
            case ("sweep",):
                harness.end_terminating()
            case ("drop",):
                ended = [each for each in harness.pods.values() if each.terminal]
                harness.delete(*(f"default/{each.name}" for each in ended))
            case ("go",) if self.said != "gone":
                harness.delete_foreign("job", "default/t")
                self.said = "gone"
            case "tell", said:
                story.tell(**SPECS[said])
                self.said = said
            case ("restart",):
                harness.restart()
            case ("look",):
                harness.wait(2)

    @property
    def bound(self) -> bool:
        return any(each.node and not each.terminating for each in self.story.alive)

    @property
    def live(self) -> bool:
        return any(not each.terminating for each in self.story.alive)


@given(STEPS)
def test_only_what_has_failed_is_failed_and_what_is_suspended_is_told_so(steps: list[tuple[Any, ...]]):
    life = Life()
    for step in steps:
        life.take(step)
        life.story.harness.wait(2)
        phase = life.story.phase
        paused = life.said in ("suspended", "none")
        if phase == "Failed":
            assert life.damaged or life.said == "ended"
        if phase == "Suspended":
            assert paused
        if life.live:
            assert phase not in ("Suspended", "Succeeded", "Failed")
        elif paused:
            assert phase in ("Suspended", "Succeeded")
        if life.said == "ended":
            life.damaged = True


@given(STEPS)
@example([("terminate", 2), ("make", 1), ("end", PodPhase.FAILED, 1)])
def test_a_new_leader_comes_to_the_same_phase(steps: list[tuple[Any, ...]]):
    """Except for a scheduled group with only unbound live members: nothing shows whether they came after the others."""
    life = Life()
    for step in steps:
        life.take(step)
        life.story.harness.wait(5)
        before = life.story.phase
        life.story.harness.restart()
        life.story.harness.wait(5)
        assert life.story.phase == before or (life.live and not life.bound)
