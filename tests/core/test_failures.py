"""Which pods have failed at once, for how long a node is closed to what makes them, and what is remembered."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.cluster import failures as module
from gangsched.core.cluster.failures import FIRST_S, LONGEST_S, TRIAL_S, WINDOW_S, Failures
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pause import OPEN
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from tests.builders import pod

KEY = GroupKey("default", "a")
SET = Owner("ReplicaSet", "web", "set-web", "apps")


@pytest.fixture
def memory() -> Failures:
    memory = Failures()
    memory.note_time(10_000.0)
    return memory


def failed(uid: str = "u", node: str = "n1", group: str = "a", **fields) -> Pod:
    made = pod(f"p-{uid}", group=group, uid=uid, node=node, owner=SET, phase=PodPhase.FAILED, **fields)
    return replace(made, rejected=True)


WAITS = pod("waits", owner=SET)


def test_a_node_is_closed_to_the_maker_for_a_time_that_doubles(memory):
    now, lasts = 10_000.0, []
    for number in range(5):
        memory.failed(failed(f"u{number}"))
        pause = memory.closed(KEY, lambda: [WAITS])
        assert pause.nodes == {"n1"}
        lasts.append(pause.until - now)
        memory.note_time(now := pause.until)
        assert not memory.closed(KEY, lambda: [WAITS])
    assert lasts[:4] == [FIRST_S, 2 * FIRST_S, 4 * FIRST_S, 8 * FIRST_S]
    assert lasts[4] >= WINDOW_S - sum(lasts[:4])


def test_a_failure_that_is_reported_again_counts_once(memory):
    for _ in range(3):
        memory.failed(failed())
    assert memory.closed(KEY, lambda: [WAITS]).until == 10_000.0 + FIRST_S


def test_failures_of_long_ago_do_not_count_and_are_forgotten(memory):
    memory.failed(failed("old"), at=10_000.0 - LONGEST_S - 1)
    assert memory.closed(KEY, lambda: [WAITS]) == OPEN
    memory.failed(failed())
    memory.note_time(10_000.0 + FIRST_S + LONGEST_S + 1)
    memory.prune()
    memory.failed(failed("new"))
    assert memory.closed(KEY, lambda: [WAITS]).until == 10_000.0 + FIRST_S + LONGEST_S + 1 + FIRST_S


@pytest.mark.parametrize(
    "other",
    [
        pod("waits", group="b", owner=SET),
        pod("waits", group="", owner=SET),
        pod("waits", cpu="2", owner=SET),
        pod("waits", owner=SET, labels={"controller-revision-hash": "2"}),
    ],
    ids=["another group", "its controller's pods without a group", "another shape", "another revision"],
)
def test_others_are_not_paused(memory, other):
    memory.failed(failed())
    assert memory.closed(KEY, lambda: [other]) == OPEN


def test_two_nodes_close_all_until_pods_run_on_a_third(memory):
    memory.failed(failed("u1", "n1"))
    assert not memory.closed(KEY, lambda: [WAITS]).everywhere
    memory.failed(failed("u2", "n2"))
    assert memory.closed(KEY, lambda: [WAITS]).everywhere
    memory.started(replace(WAITS, uid="runs", node="n3", phase=PodPhase.RUNNING))
    assert memory.take_eased({KEY}) == [KEY]
    pause = memory.closed(KEY, lambda: [WAITS])
    memory.note_time(pause.until)
    assert not memory.closed(KEY, lambda: [WAITS]).everywhere


def test_a_pod_on_trial_keeps_others_waiting_until_it_has_failed_or_run(memory):
    memory.failed(failed(group=""))
    alone = pod("waits", group="", owner=SET)
    memory.note_time(10_000.0 + FIRST_S)
    assert not memory.closed(KEY, lambda: [alone])
    memory.tried(alone, "n1")
    assert memory.closed(KEY, lambda: [alone]).until == 10_000.0 + FIRST_S + TRIAL_S


def test_what_is_remembered_is_bounded(memory, monkeypatch):
    for name, most in (("MOST_MAKERS", 5), ("MOST_NODES", 4), ("MOST_PODS", 3), ("MOST_TEMPLATES", 2)):
        monkeypatch.setattr(module, name, most)
    for number in range(10):
        memory.failed(failed(f"u{number}", node=f"n{number}", cpu=str(1 + number)))
        memory.failed(failed(f"v{number}", group=f"g{number}"))
        memory.started(replace(WAITS, node=f"m{number}"))
        waits = pod("waits", cpu=str(1 + number), owner=SET)
        memory.closed(GroupKey("default", f"k{number}"), lambda waits=waits: [waits])
    record = memory._records[KEY]  # noqa: SLF001 - the bounds are not visible elsewhere
    found = [memory._records, record.nodes, record.started, memory._counted, record.waiting, record.templates]  # noqa: SLF001
    assert [len(each) for each in found] == [5, 4, 4, 3, 3, 2]
