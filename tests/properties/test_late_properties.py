"""Sets whose pods are created one by one are never partly bound: either the rest has reservations or none is bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.policy import Policy
from tests.builders import node, pod
from tests.harness import Harness
from tests.scenarios.test_late_members import labelled, replica, stateful_set

SIZES = {"one": 3, "two": 4}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.integers(1, 4)),
        st.tuples(st.just("next"), st.sampled_from(tuple(SIZES))),
        st.tuples(st.just("plain"), st.integers(1, 2)),
        st.tuples(st.just("wait"), st.integers(1, 90)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    min_size=1,
    max_size=25,
)


@given(STEPS)
def test_a_set_is_bound_with_places_for_all_that_is_to_come_or_not_at_all(steps: list[tuple[str, int | str]]) -> None:
    harness = labelled(Harness(Policy(max_hold_s=10_000.0)))
    harness.add(*(stateful_set(name, replicas=size) for name, size in SIZES.items()))
    created = dict.fromkeys(SIZES, 0)
    for number, (what, how) in enumerate(steps):
        if what == "node":
            harness.add(node(f"n{number}", cpu=how))
        elif what == "plain":
            harness.add(pod(f"plain-{number}", group="", cpu=how, created=harness.now))
        elif what == "wait":
            harness.wait(float(how))
        elif what == "restart":
            harness.restart()
        elif created[str(how)] < SIZES[str(how)] and _may_follow(harness, str(how), created[str(how)]):
            harness.add(replica(created[str(how)], str(how), created=harness.now))
            created[str(how)] += 1
        harness.settle()
        assert harness.machine.validate() == []
        for name, size in SIZES.items():
            _whole_or_nothing(harness, name, size)


def _may_follow(harness: Harness, name: str, number: int) -> bool:
    """Whether the controller may create the next pod: all earlier ones are bound."""
    return all(harness.pod(f"default/{name}-{each}").node for each in range(number))


def _whole_or_nothing(harness: Harness, name: str, size: int) -> None:
    bound = sum(bool(each.node) for each in harness.pods.values() if each.name.startswith(f"{name}-"))
    gang = next((each for key, each in harness.machine.gangs.items() if key.name == f"statefulset.{name}"), None)
    held = (
        len(gang.operations.bindings) - sum(each.pod.node != "" for each in gang.operations.bindings.values())
        if gang is not None
        else 0
    )
    assert bound == 0 or bound + held >= size, (name, bound, held)
