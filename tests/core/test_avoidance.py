"""Which node or pod a refusal counts against, for how long, and how many refusals are remembered."""

from __future__ import annotations

import pytest

from gangsched.core.cluster.avoidance import (
    EVENTS_A_MINUTE,
    LONGEST_S,
    MOST_BLAMED,
    MOST_GANGS,
    MOST_NODES_OF_A_GANG,
    MOST_PODS,
    MOST_PODS_ON_A_NODE,
    Avoidance,
)
from gangsched.core.objects.declaration import GroupKey

GANG = GroupKey("team", "a")


@pytest.fixture
def memory() -> Avoidance:
    memory = Avoidance()
    memory.note_time(1000.0)
    return memory


def refused(memory: Avoidance, uid: str, *nodes: str, key: GroupKey = GANG, by_kubelet: bool = False) -> None:
    for name in nodes:
        memory.refused(key, uid, name, "no", by_kubelet=by_kubelet)


@pytest.mark.parametrize("number", [1, MOST_BLAMED, MOST_BLAMED + 1])
def test_nodes_that_refused_a_pod_are_to_blame_once_another_takes_it_unless_they_are_many(memory, number):
    nodes = [f"n{at}" for at in range(number)]
    refused(memory, "u", *nodes)
    memory.accepted("u", "good")
    assert memory.by_all() == (set(nodes) if number <= MOST_BLAMED else set())
    assert memory.counted == len(memory.by_all())


def test_a_pod_that_is_accepted_long_after_it_was_refused_blames_nobody(memory):
    refused(memory, "u", "n1")
    memory.note_time(1061.0)
    memory.accepted("u", "good")
    assert memory.by_all() == set()


def test_a_node_that_has_bound_another_pod_meanwhile_is_not_to_blame(memory):
    refused(memory, "u", "n1")
    memory.accepted("other", "n1")
    memory.accepted("u", "good")
    assert memory.by_all() == set()


def test_a_binding_says_nothing_of_a_kubelet_that_rejects_what_is_bound(memory):
    for namespace in ("x", "y"):
        refused(memory, f"u-{namespace}", "n1", key=GroupKey(namespace, "a"), by_kubelet=True)
        memory.accepted("other", "n1")
    assert memory.by_all() == {"n1"}
    memory.ran("n1")
    assert memory.by_all() == set()


def test_a_kubelets_rejection_is_no_answer_of_the_api_server_that_another_node_could_disprove(memory):
    refused(memory, "u", "n1", by_kubelet=True)
    memory.accepted("u", "n2")
    assert memory.by_all() == set()


def test_the_time_doubles_up_to_a_limit_and_the_doubling_is_forgotten_in_the_end(memory):
    now, lasted = 1000.0, []
    for wait_s in [0.0] * 7 + [LONGEST_S + 61]:
        now += wait_s
        memory.note_time(now)
        refused(memory, "u", "n1")
        memory.accepted("u", "n2")
        lasted.append(memory.next_end() - now)
        now = memory.next_end()
    assert lasted == [60, 120, 240, 480, 960, 1920, 1920, 60]


def test_events_on_nodes_are_few_however_many_nodes_refuse_and_go_on_after_a_minute(memory):
    for at in range(3 * EVENTS_A_MINUTE):
        refused(memory, "u", f"n{at}")
        memory.accepted("u", "good")
    assert len(memory.take_events()) == EVENTS_A_MINUTE
    memory.note_time(1060.0)
    refused(memory, "u", "m")
    memory.accepted("u", "good")
    assert [event.name for event in memory.take_events()] == ["m"]


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first(memory):
    refused(memory, "first", *(f"n{at}" for at in range(MOST_NODES_OF_A_GANG + 5)))
    assert len(memory.by_gang(GANG)) == MOST_NODES_OF_A_GANG
    assert "n0" not in memory.by_gang(GANG)
    for at in range(MOST_PODS):
        memory.refused(GroupKey("team", f"g{at % MOST_GANGS}"), f"u{at}", f"m{at % 100}", "no")
    assert memory.by_gang(GANG) == set()
    assert memory.refused(GANG, "first", "n7", "no") == (1, 1)
    for at in range(MOST_PODS_ON_A_NODE):
        refused(memory, f"v{at}", "n7")
    assert memory.refused(GANG, "first", "n7", "no") == (1, 1)
    assert memory.refused(GANG, f"v{MOST_PODS_ON_A_NODE - 1}", "n7", "no") == (2, 1)


def test_in_the_end_everything_is_forgotten(memory):
    refused(memory, "u", "n1")
    refused(memory, "u", "n1", by_kubelet=True)
    memory.accepted("u", "n2")
    refused(memory, "v", "n3")
    memory.note_time(1000.0 + 2 * LONGEST_S + 120)
    memory.note_time(1000.0 + 2 * LONGEST_S + 240)
    memory.take_events()
    assert not any(getattr(memory, name) for name in ("_by_all", "_by_gang", "_cases", "_on", "_kubelets"))
