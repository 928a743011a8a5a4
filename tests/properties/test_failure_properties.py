"""Controllers that replace failed pods at once, on nodes that treat their pods in any way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.failures import Failures
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from tests.builders import group, node, pod
from tests.effort import examples
from tests.faults.rejections import MOST, WINDOW_S, Rejections
from tests.harness import Harness
from tests.loops import Fate, Loop

FATES = st.sampled_from(list(Fate))


def member(number: int, *, group: str, name: str) -> Pod:
    return pod(f"{name}-{number}", group=group, owner=Owner("ReplicaSet", name, f"set-{name}", "apps"))


@settings(max_examples=examples(100))
@given(
    fates=st.lists(FATES, min_size=1, max_size=4),
    sets=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=3),
    restarts=st.lists(st.integers(5, 200), max_size=2),
)
@example(fates=[Fate.REJECTED, Fate.REJECTED, Fate.RUNS], sets=[(1, 1)], restarts=[5])
@example(fates=[Fate.REJECTED, Fate.REJECTED, Fate.REJECTED, Fate.RUNS], sets=[(1, 1)], restarts=[5])
def test_no_maker_is_faster_than_five_in_five_minutes_and_all_run_where_pods_run(fates, sets, restarts):
    """Each set has so many replicas; its group's minimum is given, 0 for pods without a group.

    Where an attempt has several pods, two windows may pass until the last node is tried.
    """
    harness = Harness()
    by_node = {f"n{number}": fate for number, fate in enumerate(fates)}
    harness.add(*(node(name, cpu=15) for name in by_node))
    loops = []
    for number, (replicas, minimum) in enumerate(sets):
        name = f"s{number}"
        if minimum:
            harness.add(group(name, min_member=min(minimum, replicas)))
        make = partial(member, group=name if minimum else "", name=name)
        loops.append(Loop(harness, make, replicas, fate=lambda found: by_node[found.node]))
    moments = sorted({*restarts, 330})
    for since, until in zip([0, *moments], moments, strict=False):
        for _ in range((until - since) * 2):
            go_on(loops)
        if until in restarts:
            harness.restart()
    if Fate.RUNS in fates:
        for _ in range(round(WINDOW_S) * 2):
            if not waiting_in(loops):
                break
            go_on(loops)
    judge = Rejections()
    for number, loop in enumerate(loops):
        for at, where in loop.failed:
            judge.note(str(number), where, f"{at}", at=at, there=Everything())
    assert judge.wrong == []
    if Fate.RUNS in fates:
        assert waiting_in(loops) == []


def go_on(loops: Sequence[Loop]) -> None:
    for loop in loops:
        loop.run_for(0.5 / len(loops))


def waiting_in(loops: Sequence[Loop]) -> list[str]:
    return [found.name for loop in loops for found in loop.pods() if found.phase is not PodPhase.RUNNING]


class Everything:
    """Contains everything: no failed pod has been deleted."""

    def __contains__(self, _: object) -> bool:
        return True


@given(waits=st.lists(st.floats(0.0, 400.0), max_size=30), number=st.integers(1, MOST))
def test_attempts_of_one_size_that_heed_the_pause_stay_within_the_bound(waits, number):
    failures, now, times = Failures(), 1000.0, []
    key, waiting = GroupKey("default", "a"), pod("a-0")
    for at, wait in enumerate(waits):
        failures.note_time(now)
        now += wait
        if pause := failures.closed(key, lambda: [waiting]):
            now = max(now, pause.until)
        failures.note_time(now)
        if failures.closed(key, lambda: [waiting]):
            continue
        for which in range(number):
            failed = pod(f"a-{which}", uid=f"u{at}-{which}", node="n1", phase=PodPhase.FAILED)
            failures.failed(replace(failed, rejected=True))
        times += [now] * number
    assert all(sum(since <= at < since + WINDOW_S for at in times) <= MOST for since in times)
