"""Applications that state minResources never keep each other from going on, in whatever order their members come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.pod import PodPhase
from tests.builders import node
from tests.harness import Harness
from tests.scenarios.test_starts import app, member

NAMES = ("a", "b", "c", "d")
SIZES = st.fixed_dictionaries({name: st.integers(1, 4) for name in NAMES})
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from(NAMES)),
        st.tuples(st.just("executors"), st.sampled_from(NAMES)),
        st.tuples(st.just("end"), st.sampled_from(NAMES)),
        st.just(("restart", "")),
    ),
    min_size=1,
    max_size=16,
)


@given(SIZES, st.integers(1, 8), STEPS)
def test_each_application_that_has_started_gets_all_its_executors(sizes, cpus, steps):
    """On one node, what is free in all is usable, so that the check is exact: all members request one CPU."""
    harness = Harness.of(node(cpu=cpus))
    made: dict[str, int] = {}
    for step, name in steps:
        driver = f"default/{name}-0"
        match step:
            case "submit" if name not in made:
                harness.add(app(name, cpu=str(1 + sizes[name])), member(f"{name}-0", created=harness.now))
                made[name] = 1
            case "executors" if made.get(name) == 1 and harness.bound(driver):
                harness.add(*(member(f"{name}-{at}", created=harness.now) for at in range(1, 1 + sizes[name])))
                made[name] += sizes[name]
            case "end" if name in made and harness.bound(driver):
                for at in range(made[name]):
                    if harness.bound(f"default/{name}-{at}"):
                        harness.change(f"default/{name}-{at}", phase=PodPhase.SUCCEEDED)
                made[name] = 0
            case "restart":
                harness.restart()
        harness.wait(20)
        for other, number in made.items():
            if number > 1:
                assert all(harness.bound(f"default/{other}-{at}") for at in range(number))
        started = [other for other, number in made.items() if number and harness.bound(f"default/{other}-0")]
        running = sum(1 + sizes[other] for other in started)
        assert running <= cpus
        for other, number in made.items():
            assert other in started or not number or 1 + sizes[other] > cpus - running
