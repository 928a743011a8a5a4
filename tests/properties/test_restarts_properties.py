"""Whatever happens to a gang's members and workload, its reservations never exceed what it was scheduled with."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.membership.restarts import HOUR_S, MOST_S
from gangsched.core.objects.shape import PODS
from tests.scenarios.test_restarts import ENDS, SIZE, Race

STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("lose"), st.integers(1, SIZE), st.sampled_from(["gone", "Failed", "Succeeded", "terminating"])
        ),
        st.tuples(st.just("make"), st.integers(1, SIZE)),
        st.tuples(st.just("wait"), st.sampled_from([0.5, 5.0, 29.0, 31.0, 200.0])),
        st.tuples(st.just("tell"), st.sampled_from([*ENDS, "as before"])),
        st.just(("go",)),
        st.just(("end terminating",)),
    ),
    max_size=25,
)


def held(race: Race) -> int:
    return race.harness.machine.cluster.holdings.of("default").get(PODS, 0)


@given(STEPS)
def test_places_are_held_for_lost_members_alone_and_not_for_long(steps):
    race = Race()
    began, total, wanted, there = race.harness.now, 0.0, True, True
    for step in steps:
        before, at = held(race), race.harness.now
        match step:
            case "lose", number, how:
                race.lose(number, how=how)
            case "make", number:
                race.make(min(number, SIZE - len([pod for pod in race.alive if not pod.terminating])))
            case "wait", seconds:
                end = race.harness.now + seconds
                while race.harness.now < end:
                    now, some = race.harness.now, held(race)
                    race.harness.wait(min(end, race.harness.next_moment()) - now or end - now)
                    total += (race.harness.now - now) * bool(some)
            case "tell", what:
                race.tell(**ENDS.get(what, {}))
                wanted, there = what == "as before", True
            case ("go",) if there:
                race.harness.delete_foreign("job", "default/t")
                wanted = there = False
            case ("end terminating",):
                race.harness.end_terminating()
        race.harness.settle()
        total += (race.harness.now - at) * bool(before) * (step[0] != "wait")
        lingering = sum(pod.terminating for pod in race.alive)
        bound = sum(bool(pod.node) and not pod.terminating for pod in race.alive)
        assert held(race) == 0 or wanted
        assert held(race) + bound + lingering <= max(SIZE, bound + lingering)
    assert total <= MOST_S * (1 + (race.harness.now - began) // HOUR_S)
