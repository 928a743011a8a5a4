"""How long a group was partial, and what stood on a node when a pod was bound there.

Only that it is found: every soak shows that nothing else is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.history import CountedClock, History
from tests.faults.manifests import CREATED, OWNED, a_driver, a_group, a_job, a_pod, an_executor, made_by, members
from tests.faults.objects import Json, Key, uid_of

START = 1_800_000_000.0


class Watched:
    """A history with a controllable clock."""

    def __init__(self) -> None:
        self.now = START
        self.clock = CountedClock(lambda: self.now)
        self.clock.run(True)
        self.told: list[str] = []
        self.history = History(self.clock, wall=lambda: self.now, on_bound=lambda pod: self.told.append(uid_of(pod)))
        self.pod_seen = self.history.pod_seen

    def group(self, **fields) -> None:
        self.history.group_seen(a_group("a", **({"min_member": 3} | fields)))

    def members(self, *nodes: str, **fields) -> None:
        for pod in members("a", *nodes, **fields):
            self.history.pod_seen(pod)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def partial(self) -> list[float]:
        """The lengths of the episodes, without those of length zero."""
        return [episode.seconds for episode in self.history.partial() if episode.seconds]


@pytest.fixture
def watched() -> Watched:
    return Watched()


TEMPLATED: Json = {
    "roles": [{"name": "chief", "minMember": 1}, {"name": "worker", "template": {"requests": {"cpu": "1"}}}],
    "maxScheduleTime": "5s",
}


def places(count: int, *pods: str, role: str = "worker") -> Json:
    placement: Json = {"node": "n1", "role": role, "count": count, "requests": {"cpu": "1"}}
    return {"reservation": {"expires": CREATED, "placements": [placement | ({"pods": [*pods]} if pods else {})]}}


def chief() -> Json:
    return a_pod("a-0", "a", node="n1", role="chief")


Step = float | Callable[[Watched], None]


def bound(*nodes: str, **fields: Any) -> Step:
    """Bind the first members of the group to these nodes."""
    return lambda watched: watched.members(*nodes, **fields)


def said(**fields: Any) -> Step:
    """Show the PodGroup with this status."""
    return lambda watched: watched.group(**fields)


def came(pod: Json) -> Step:
    return lambda watched: watched.pod_seen(pod)


def went(*nodes: str) -> Step:
    """Delete the first members, which were on these nodes."""

    def step(watched: Watched) -> None:
        for pod in members("a", *nodes):
            watched.history.pod_gone(pod)

    return step


def leads(running: bool) -> Step:  # noqa: FBT001 - a switch
    """Start or stop the clock, as when leadership changes; called twice, as a poller would."""

    def step(watched: Watched) -> None:
        watched.clock.run(running)
        watched.clock.run(running)

    return step


def of_two_workers(held: Json) -> Json:
    """A PodGroup of a chief and two workers, with these reservations in its status."""
    chiefs, worker = TEMPLATED["roles"]
    return {"spec": TEMPLATED | {"roles": [chiefs, worker | {"minMember": 2}]}, **held}


FAILED = {"phase": "Failed", "reason": "GangFailed"}
FAILS = {"timeoutPolicy": "Fail"}
ONE_OF_TWO = {"annotations": {"gangsched.io/min-member": "2"}}
SCHEDULED_NOW = "2027-01-15T08:00:02Z"
LOST_ONE: list[Step] = [said(), bound("n1", "n1", ""), went("n1")]
REPLACED = came(members("a", "", "", "n1")[2])
SPARK: list[Step] = [came(a_driver("a", executors=2, node="n1")), came(an_executor("a", 1, node="n1"))]
JOB = a_job("a", completions=3)
OF_JOB = made_by(JOB)


def of_job(number: int, phase: str) -> Step:
    """One of the Job's pods."""
    return came(a_pod(f"a-{number}", "a", node="n1", phase=phase, meta=OF_JOB))


def counts(watched: Watched) -> None:
    """Show the Job."""
    watched.history.jobs_replaced([JOB])


def again(number: int, *, node: str = "") -> Step:
    """A pod of a Job that was created again under the name, which is younger than the pods of the first one."""
    found = a_pod(f"a-again-{number}", "a", node=node, meta=made_by(a_job("a", completions=3, again="-2")))
    found["metadata"]["creationTimestamp"] = SCHEDULED_NOW
    return came(found)


RUN_OF_JOB: list[Step] = [said(), counts, bound("n1", "n1", "n1", meta=OF_JOB)]
SCRIPTS: dict[str, tuple[list[Step], list[float]]] = {
    "from its first binding to its last": (
        [said(), bound("", "", ""), 5, bound("n1", "", ""), 2, bound("n1", "n1", ""), 3, bound("n1", "n1", "n1"), 7],
        [5.0],
    ),
    "again in a new run": (
        [said(), bound("n1", "n1", "n1"), went("n1", "n1", "n1"), came(a_pod("a-9", "a", node="n1")), 6],
        [6.0],
    ),
    "for a Job that was created again, beside the whole run of the first one's pods": (
        [*RUN_OF_JOB, 5, again(0, node="n1"), 4, again(1, node="n1"), again(2, node="n1")],
        [4.0],
    ),
    "with less than its Job still owes": (
        [*RUN_OF_JOB, of_job(0, "Succeeded"), of_job(1, "Failed"), of_job(2, "Failed"), of_job(9, "Running"), 6],
        [6.0],
    ),
    "whatever its status says": ([bound("n1", "", ""), said(phase="Running", scheduledTime=SCHEDULED_NOW), 6], [6.0]),
    "under the new minimum once its rollback has left nothing bound": (
        [
            *(said(min_member=2), bound("n1", "", ""), said(), 4, bound("", "", ""), 60),
            *(bound("n1", "n1", ""), 3),
        ],
        [4.0, 3.0],
    ),
    "until each role has its minimum": (
        [
            said(spec={"roles": [{"name": "chief", "minMember": 1}]}),
            *(bound("n1", "n1", "n1"), 3, came(a_pod("a-9", "a", node="n1", role="chief")), 3),
        ],
        [3.0],
    ),
    "by what annotations say": ([bound("n1", "", meta=OWNED | ONE_OF_TWO), 3], [3.0]),
    "in seconds in which somebody leads": ([said(), bound("n1", "", ""), 2, leads(False), 100, leads(True), 3], [5.0]),
    "after a loss of long ago though its status says Scheduled": (
        [*LOST_ONE, 80, REPLACED, said(phase="Running", scheduledTime=SCHEDULED_NOW), 6],
        [86.0],
    ),
    "also while it is shown as Degraded for Restarting": (
        [said(), bound("n1", "", ""), 4, said(phase="Degraded", degraded="Restarting"), 5],
        [9.0],
    ),
    "though places are held, without a template": ([said(**places(2, role="")), bound("n1", ""), 3], [3.0]),
    "with a template, while no places are held": (
        [
            *(said(spec=TEMPLATED, **places(2)), came(chief()), 60),
            *(said(spec=TEMPLATED, phase="Queued"), 4, said(spec=TEMPLATED, **places(2)), 60),
        ],
        [4.0],
    ),
    "with too few places": ([said(**of_two_workers(places(1))), came(chief()), 3], [3.0]),
    "by what is bound after the spec of a failed one has changed": (
        [
            *(came(chief()), said(spec=TEMPLATED | FAILS, **FAILED), 3),
            *(said(spec=TEMPLATED), came(a_pod("a-1", "a", node="n1", role="worker")), 4),
        ],
        [4.0],
    ),
    "by what a Spark driver says": ([*SPARK, 3], [3.0]),
}


@pytest.mark.parametrize(("steps", "partial"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_group_is_partial(watched: Watched, steps: list[Step], partial: list[float]) -> None:
    for step in steps:
        if callable(step):
            step(watched)
        else:
            watched.wait(step)

    assert watched.partial() == partial


@pytest.mark.parametrize(("ends", "seconds"), [(True, 4.0), (False, 8.0)])
def test_it_ends_when_nobody_is_bound_any_more_and_one_that_lasts_is_counted_up_to_now(
    watched: Watched, *, ends: bool, seconds: float
) -> None:
    watched.group()
    watched.members("n1", "", "")
    watched.wait(4)
    if ends:
        watched.history.pod_gone(members("a", "n1")[0])
    watched.wait(4)

    (episode,) = watched.history.partial()
    assert (episode.seconds, episode.open, episode.most, episode.minimum) == (seconds, not ends, 1, 3)
    assert ("still is" in str(episode)) is not ends


def test_a_binding_is_noted_once_with_what_stood_on_the_node_then(watched: Watched) -> None:
    watched.pod_seen(a_pod("ended", node="n1", phase="Succeeded"))
    watched.pod_seen(a_pod("elsewhere", node="n2"))
    watched.pod_seen(a_pod("there", node="n1"))
    watched.pod_seen(a_pod("gone", node="n1"))
    watched.history.pod_gone(a_pod("gone", node="n1"))
    watched.pod_seen(a_pod("new"))
    watched.pod_seen(a_pod("new", node="n1", phase="Pending"))
    watched.pod_seen(a_pod("new", node="n1", phase="Running"))

    (bound,) = [each for each in watched.history.bindings if each.uid == "uid-new"]
    assert (bound.beside, bound.node, bound.at, bound.gap) == (("uid-there",), "n1", START, False)
    assert bound.requests == {"cpu": 1000, "pods": 1}
    assert watched.told.count("uid-new") == 1


def test_what_a_later_list_tells_is_marked(watched: Watched) -> None:
    watched.history.pods_replaced([a_pod("first", node="n1")])
    watched.history.pods_replaced([a_pod("second", node="n1")])

    assert [(bound.uid, bound.gap) for bound in watched.history.bindings] == [
        ("uid-first", False),
        ("uid-second", True),
    ]
    assert "uid-first" not in watched.history.pods


def test_places_for_members_to_come_are_held_for_nobody_once_no_member_lives(watched: Watched) -> None:
    watched.pod_seen(chief())
    watched.group(spec=TEMPLATED, **places(2))
    watched.wait(3)
    watched.history.pod_gone(chief())
    watched.wait(2)
    watched.clock.run(False)
    watched.wait(100)
    watched.clock.run(True)
    watched.wait(2)

    (desertion,) = watched.history.deserted()
    assert (desertion.key, desertion.places, desertion.seconds, desertion.open) == (Key("default", "a"), 2, 4.0, True)
    assert str(desertion) == "default/a had 2 places held for 4.0 s though none of its members lived"
