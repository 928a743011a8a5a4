from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.constraints.anti_affinity import MOST_CACHED, AntiAffinityIndex
from gangsched.core.constraints.matching import Matchable, term_matches
from gangsched.core.objects.shape import PodTerm, Requirement
from tests.builders import label_pairs, pod
from tests.strategies import label_maps, pod_terms

APP_A = (Requirement("app", "In", ("a",)),)
TEAM_X = (Requirement("team", "In", ("x",)),)
NO_TEAM = (Requirement("team", "DoesNotExist"),)


def term(selector=APP_A, namespaces=("default",), namespace_selector=None, key="zone"):
    return PodTerm(topology_key=key, selector=selector, namespaces=namespaces, namespace_selector=namespace_selector)


def forbidden(index, namespace="default", labels=None, namespace_labels=None):
    newcomer = Matchable(namespace, label_pairs({"app": "a"} if labels is None else labels))
    return index.forbidden(newcomer, {namespace: namespace_labels or {}})


def test_what_is_forbidden_is_found_anew_when_terms_or_namespaces_change():
    index = AntiAffinityIndex()
    index.add(term(), {"zone": "z1"})
    assert forbidden(index) == {("zone", "z1")}
    index.add(term(), {"zone": "z2"})
    assert forbidden(index) == {("zone", "z1"), ("zone", "z2")}
    index.remove(term(), {"zone": "z1"})
    assert forbidden(index) == {("zone", "z2")}
    index.add(term(namespaces=(), namespace_selector=TEAM_X), {"zone": "z3"})
    assert forbidden(index) == {("zone", "z2")}
    index.namespaces_changed()
    assert forbidden(index, namespace_labels={"team": "x"}) == {("zone", "z2"), ("zone", "z3")}


@pytest.mark.parametrize("absent", [(term(), {"zone": "z2"}), (term(selector=()), {"zone": "z1"})])
def test_removing_what_was_never_added_is_an_error(absent):
    index = AntiAffinityIndex()
    index.add(term(), {"zone": "z1"})
    with pytest.raises(KeyError):
        index.remove(*absent)


placed = st.tuples(pod_terms, label_maps)


@given(st.lists(placed), placed)
def test_remove_undoes_add_exactly(before, more):
    index, expected = AntiAffinityIndex(), AntiAffinityIndex()
    for entry in before:
        index.add(*entry)
        expected.add(*entry)
    index.add(*more)
    index.remove(*more)
    assert index == expected
    for entry in before:
        index.remove(*entry)
    assert index == AntiAffinityIndex()


@given(st.lists(placed), st.sampled_from(("default", "other", "third")), label_maps, label_maps)
def test_the_index_answers_as_asking_every_pod_would(entries, namespace, labels, namespace_labels):
    index = AntiAffinityIndex()
    for entry in entries:
        index.add(*entry)
    assert forbidden(index, namespace, labels, namespace_labels) == {
        (asked.topology_key, node_labels[asked.topology_key])
        for asked, node_labels in entries
        if asked.topology_key in node_labels
        and term_matches(asked, pod(f"{namespace}/new", labels=labels), {namespace: namespace_labels})
    }


def test_newcomers_of_ever_new_labels_are_judged_rightly_and_do_not_fill_the_memory():
    index = AntiAffinityIndex()
    index.add(term(selector=(Requirement("app", "In", ("n-7",)),)), {"zone": "z1"})
    for number in range(2 * MOST_CACHED):
        closed = index.forbidden(Matchable("default", (("app", f"n-{number}"),)), {})
        assert closed == ({("zone", "z1")} if number == 7 else frozenset())
    assert len(index._forbidden) <= MOST_CACHED  # noqa: SLF001 - memory shows nowhere else
