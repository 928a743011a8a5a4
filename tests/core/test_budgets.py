"""Which PodDisruptionBudgets select a pod, and what is known of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.budgets import Budgets
from gangsched.core.machine import Machine
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import BudgetGone, BudgetSeen, BudgetsHidden, BudgetsReplaced, Event, Synced
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.shape import Requirement
from tests.builders import pod

A_IS_B = (Requirement("a", "In", ("b",)),)


def budget(
    name: str = "x", selector: Any = A_IS_B, *, namespace: str = "default", allowed: int = 1
) -> DisruptionBudget:
    return DisruptionBudget(namespace, name, selector, allowed=allowed)


def budgets(*found: DisruptionBudget) -> Budgets:
    made = Budgets()
    for each in found:
        made.set(each.key, each)
    return made


def test_what_its_controller_says_replaces_what_it_said_before():
    known = budgets(budget(allowed=1), budget("other", allowed=3))
    known.set("default/x", budget(allowed=0))
    assert known.allowed == {"default/x": 0, "default/other": 3}
    known.set("default/x", None)
    assert known.allowed == {"default/other": 3}


def test_only_changes_count_as_changes():
    known = budgets(budget())
    before = known.changes
    known.set("default/x", budget())
    known.set("default/none", None)
    known.show()
    assert known.changes == before
    known.set("default/x", budget(allowed=0))
    assert known.changes == before + 1


def test_budgets_that_cannot_be_read_are_forgotten_and_not_known():
    known = budgets(budget(selector=()))
    before = known.changes
    known.hide("may not be read")
    assert (known.known, known.why_hidden, known.all(), known.of(pod("p"))) == (False, "may not be read", (), ())
    assert known.changes > before
    known.show()
    assert known.known
    assert known.contradictions() == []


names = st.sampled_from("xyz")
values = st.sampled_from("abc")
requirements = st.one_of(
    st.builds(
        Requirement, names, st.sampled_from(("In", "NotIn")), st.lists(values, min_size=1, max_size=2).map(tuple)
    ),
    st.builds(Requirement, names, st.sampled_from(("Exists", "DoesNotExist"))),
)
found = st.builds(
    budget,
    names,
    st.none() | st.lists(requirements, max_size=3).map(tuple),
    namespace=st.sampled_from(("default", "n")),
)


@given(st.lists(st.tuples(found, st.booleans()), max_size=12), st.dictionaries(names, values))
def test_the_budgets_of_a_pod_are_those_that_a_look_at_each_of_them_finds(changes, labels):
    known, there = Budgets(), dict[str, DisruptionBudget]()
    for each, stays in changes:
        known.set(each.key, each if stays else None)
        there.pop(each.key, None)
        if stays:
            there[each.key] = each
    chosen = [
        each
        for each in there.values()
        if each.namespace == "default" and each.selector is not None and matches(each.selector, labels)
    ]
    assert sorted(each.key for each in chosen) == [each.key for each in known.of(pod("p", labels=labels))]
    assert known.contradictions() == []


@pytest.mark.parametrize(
    ("phase", "ready", "counts_unready", "draws"),
    [
        (PodPhase.RUNNING, True, True, True),
        (PodPhase.RUNNING, True, False, True),
        (PodPhase.RUNNING, False, True, True),
        (PodPhase.RUNNING, False, False, False),
        (PodPhase.UNKNOWN, False, True, True),
        (PodPhase.PENDING, False, True, False),
    ],
)
def test_an_eviction_draws_as_the_api_server_counts(phase, ready, counts_unready, draws):
    known = budgets(replace(budget(), counts_unready=counts_unready))
    found = known.drawn_by(pod("p", labels={"a": "b"}, phase=phase, ready=ready))
    assert [each.name for each in found] == (["x"] if draws else [])


def machine(*events: Event) -> Machine:
    made = Machine(Policy())
    made.handle([*events, Synced()], 1000.0)
    assert made.validate() == []
    return made


def test_the_machine_keeps_the_budgets_that_it_sees():
    known = machine(BudgetSeen(budget("a")), BudgetSeen(budget("b")), BudgetGone("default/a")).cluster.budgets
    assert known.all() == (budget("b"),)
    assert known.known


def test_a_list_of_budgets_forgets_which_are_not_in_it_and_makes_them_known():
    known = machine(BudgetSeen(budget("a")), BudgetsReplaced((budget("b"),))).cluster.budgets
    assert known.all() == (budget("b"),)
    again = machine(BudgetsHidden("may not be read"), BudgetsReplaced(())).cluster.budgets
    assert (again.known, again.all()) == (True, ())


@pytest.mark.parametrize(
    "events", [[BudgetSeen(budget("a")), BudgetSeen(budget("b", None))], [BudgetsHidden("may not be read")], []]
)
def test_a_successor_knows_the_same_budgets(events):
    former = machine(*events)
    heir = machine(*former.facts())
    assert heir.facts() == former.facts()
    assert heir.cluster.budgets.all() == former.cluster.budgets.all()
    assert heir.cluster.budgets.why_hidden == former.cluster.budgets.why_hidden


def test_validate_names_budgets_that_are_counted_wrongly():
    broken = machine(BudgetSeen(budget("a")))
    broken.cluster.budgets.allowed["default/a"] = 7
    assert broken.validate() == ["what budgets allow differs from the budgets"]


def test_a_budget_that_cannot_be_digested_is_set_aside_alone(monkeypatch):
    real = Budgets.set

    def fails(self: Budgets, key: str, found: DisruptionBudget | None) -> None:
        if found is not None and found.name == "evil":
            raise RuntimeError
        real(self, key, found)

    monkeypatch.setattr(Budgets, "set", fails)
    made = machine(BudgetsReplaced((budget("evil"), budget("sound"))))
    assert made.set_aside() == ["PodDisruptionBudget default/evil (RuntimeError)"]
    assert made.cluster.budgets.all() == (budget("sound"),)
    made.handle([BudgetGone("default/evil")], 1001.0)
    assert made.set_aside() == []
