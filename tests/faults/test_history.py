"""How long a group was partial, and what stood on a node when a pod was bound there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.history import CountedClock, Episode, History
from tests.faults.manifests import CREATED, OWNED, a_driver, a_group, a_pod, an_executor, members
from tests.faults.objects import Json, Key

START = 1_800_000_000.0


class Watched:
    """A history with a clock in hand."""

    def __init__(self) -> None:
        self.now = START
        self.clock = CountedClock(lambda: self.now)
        self.clock.run(True)
        self.history = History(self.clock, wall=lambda: self.now)
        self.pod_seen = self.history.pod_seen

    def group(self, **fields) -> None:
        self.history.group_seen(a_group("a", **({"min_member": 3} | fields)))

    def members(self, *nodes: str, **fields) -> None:
        for pod in members("a", *nodes, **fields):
            self.history.pod_seen(pod)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def partial(self) -> list[float]:
        """How long, without stretches that took no time."""
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
    """The first members of the group have these nodes."""
    return lambda watched: watched.members(*nodes, **fields)


def said(**fields: Any) -> Step:
    """The PodGroup, and what its status says."""
    return lambda watched: watched.group(**fields)


def came(pod: Json) -> Step:
    return lambda watched: watched.pod_seen(pod)


def went(*nodes: str) -> Step:
    """The first members have gone."""

    def step(watched: Watched) -> None:
        for pod in members("a", *nodes):
            watched.history.pod_gone(pod)

    return step


def undeclared(watched: Watched) -> None:
    """The PodGroup is deleted."""
    watched.history.groups_replaced([])


LATE: Json = {"phase": "Degraded", "degraded": "MembersMissing"}
ONE_OF_TWO = {"annotations": {"gangsched.io/min-member": "2"}}
SCRIPTS: dict[str, tuple[list[Step], list[float]]] = {
    "from its first binding to its last": (
        [said(), bound("", "", ""), 5, bound("n1", "", ""), 2, bound("n1", "n1", ""), 3, bound("n1", "n1", "n1"), 7],
        [5.0],
    ),
    "again in a new run": (
        [said(), bound("n1", "n1", "n1"), went("n1", "n1", "n1"), came(a_pod("a-9", "a", node="n1")), 6],
        [6.0],
    ),
    "whatever its status says": (
        [bound("n1", "", ""), said(phase="Running", scheduledTime="2027-01-15T08:00:02Z"), 6],
        [6.0],
    ),
    "not after a minimum that was raised just now": (
        [said(min_member=2), bound("n1", "", ""), said(), 1, bound("n1", "n1", ""), 60],
        [1.0],
    ),
    "under no minimum of long ago": (
        [said(min_member=2), bound("", "", ""), said(), 60, bound("n1", "n1", ""), 3],
        [3.0],
    ),
    "until its minimum is lowered": ([said(), bound("n1", "n1", ""), 3, said(min_member=2), 3], [3.0]),
    "until each role has its minimum": (
        [
            said(spec={"roles": [{"name": "chief", "minMember": 1}]}),
            *(bound("n1", "n1", "n1"), 3, came(a_pod("a-9", "a", node="n1", role="chief")), 3),
        ],
        [3.0],
    ),
    "not without a PodGroup, of members that nothing would recreate": ([bound("n1", "", meta=ONE_OF_TWO), 3], []),
    "until its PodGroup is deleted": ([said(), bound("n1", "", ""), 3, undeclared, 3], [3.0]),
    "though places are held, without a template": ([said(**places(2, role="")), bound("n1", ""), 3], [3.0]),
    "with a template and no status yet": ([said(spec=TEMPLATED), came(chief()), 3], [3.0]),
    "with a template, where members lack for another reason": (
        [said(spec=TEMPLATED, **LATE, reason="BindingUndone"), came(chief()), 3],
        [3.0],
    ),
}


@pytest.mark.parametrize(("steps", "partial"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_group_is_partial(watched: Watched, steps: list[Step], partial: list[float]) -> None:
    for step in steps:
        if callable(step):
            step(watched)
        else:
            watched.wait(step)

    assert watched.partial() == partial


def test_it_ends_as_well_when_nobody_is_bound_any_more(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "", "")
    watched.wait(4)
    watched.history.pod_gone(members("a", "n1")[0])
    watched.wait(4)

    (episode,) = watched.history.partial()
    assert (episode.seconds, episode.open, episode.most) == (4.0, False, 1)


def test_one_that_lasts_is_counted_up_to_now(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "n1", "")
    watched.wait(31)

    (episode,) = watched.history.partial()
    assert (episode.seconds, episode.open, episode.most, episode.minimum) == (31.0, True, 2, 3)
    assert "still is" in str(episode)


def test_what_is_lost_after_a_group_was_whole_is_not_counted(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "n1", "n1")
    watched.history.pod_gone(members("a", "n1")[0])
    watched.wait(60)

    assert watched.partial() == []
    assert watched.history.was_whole(Key("default", "a"))


@pytest.mark.parametrize(
    ("scheduled", "lost_for", "counted"),
    [
        ("2027-01-15T08:00:02Z", 2, [2.0]),
        ("2027-01-15T08:00:02Z", 80, [86.0]),
        (CREATED, 2, [8.0]),
        ("", 2, [8.0]),
    ],
    ids=["of a member lost just now", "of one lost long ago", "in an earlier run", "not at all"],
)
def test_a_status_that_says_scheduled_is_believed_only_where_all_were_seen_bound(
    watched: Watched, scheduled: str, lost_for: int, counted: list[float]
) -> None:
    """One of two that are bound is lost; the third is bound, and the status says that the group was scheduled."""
    watched.group()
    watched.members("n1", "n1", "")
    watched.history.pod_gone(members("a", "n1")[0])
    watched.wait(lost_for)
    watched.pod_seen(members("a", "", "", "n1")[2])
    watched.group(**({"phase": "Running", "scheduledTime": scheduled} if scheduled else {}))
    watched.wait(6)

    assert watched.partial() == counted


@pytest.mark.parametrize(("reason", "counted"), [("PartlyBound", 4.0), ("EvictionRefused", 4.0), ("Restarting", 9.0)])
def test_only_the_exceptions_of_rule_1_end_it_while_they_are_shown(
    watched: Watched, reason: str, counted: float
) -> None:
    watched.group()
    watched.members("n1", "", "")
    watched.wait(4)
    watched.group(phase="Degraded", degraded=reason)
    watched.wait(5)

    assert watched.partial() == [counted]


def test_annotations_declare_a_minimum_and_without_any_nothing_is_partial(watched: Watched) -> None:
    watched.members("n1", "")
    watched.wait(3)
    assert watched.partial() == []

    watched.history.pods_replaced([])
    watched.members("n1", "", meta=OWNED | {"annotations": {"gangsched.io/min-member": "2"}})
    watched.wait(3)
    assert watched.partial() == [3.0]


def test_members_that_ran_before_their_podgroup_existed_are_no_part_of_a_quorum(watched: Watched) -> None:
    watched.group()
    pods = members("a", "n1", "", "")
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1999-01-01T00:00:00Z"}
    pods[0]["status"]["conditions"] = [bound]
    watched.history.pods_replaced(pods)
    watched.wait(3)
    assert watched.partial() == []

    bound["lastTransitionTime"] = "2999-01-01T00:00:00Z"
    watched.history.pods_replaced(pods)
    watched.wait(3)
    assert watched.partial() == [3.0]


def test_seconds_in_which_nobody_leads_are_not_counted(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "", "")
    watched.wait(2)
    watched.clock.run(False)
    watched.clock.run(False)
    watched.wait(100)
    watched.clock.run(True)
    watched.clock.run(True)
    watched.wait(3)

    assert watched.partial() == [5.0]


def test_a_clock_stands_until_it_runs() -> None:
    assert CountedClock(lambda: 5.0).now() == 0.0


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


def test_what_a_later_list_tells_is_marked(watched: Watched) -> None:
    watched.history.pods_replaced([a_pod("first", node="n1")])
    watched.history.pods_replaced([a_pod("second", node="n1")])

    assert [(bound.uid, bound.gap) for bound in watched.history.bindings] == [
        ("uid-first", False),
        ("uid-second", True),
    ]
    assert "uid-first" not in watched.history.pods


def test_an_episode_says_what_it_was() -> None:
    episode = Episode(key=Key("default", "a"), began=0.0, minimum=5, most=3, seconds=12.34)

    assert str(episode) == "default/a had at most 3 of 5 bound for 12.3 s and still is"


def test_places_that_the_status_holds_count_beside_the_bound_members_of_a_group_with_a_template(
    watched: Watched,
) -> None:
    watched.group(spec=TEMPLATED, **places(2))
    watched.pod_seen(chief())
    watched.wait(60)
    assert watched.partial() == []
    assert not watched.history.was_whole(Key("default", "a"))

    watched.group(spec=TEMPLATED, phase="Queued")
    watched.wait(4)
    assert watched.partial() == [4.0]
    watched.group(spec=TEMPLATED, **places(2))
    watched.wait(60)
    assert watched.partial() == [4.0]


@pytest.mark.parametrize(
    "held",
    [
        places(1),
        places(2, role="chief"),
        # One of the two is the bound chief's own.
        places(2, "a-0"),
    ],
)
def test_too_few_places_or_those_of_another_role_are_not_enough(watched: Watched, held: Json) -> None:
    roles = [{"name": "chief", "minMember": 1}, TEMPLATED["roles"][1] | {"minMember": 2}]
    watched.group(spec=TEMPLATED | {"roles": roles}, **held)
    watched.pod_seen(chief())
    watched.wait(3)

    assert watched.partial() == [3.0]


@pytest.mark.parametrize(
    ("spec", "fields", "counted"),
    [
        (TEMPLATED, {"phase": "Degraded", "degraded": "MembersMissing", "reason": "MembersMissing"}, []),
        (TEMPLATED | {"timeoutPolicy": "Fail"}, {"phase": "Failed", "reason": "GangFailed"}, []),
        # Not under Retry, not without a template, and not for a group that says to have been scheduled.
        (TEMPLATED, {"phase": "Failed", "reason": "GangFailed"}, [3.0]),
        ({"timeoutPolicy": "Fail"}, {"phase": "Failed", "reason": "GangFailed"}, [3.0]),
        ({}, {"phase": "Degraded", "degraded": "MembersMissing", "reason": "MembersMissing"}, [3.0]),
        (
            TEMPLATED,
            {
                "phase": "Degraded",
                "degraded": "MembersMissing",
                "reason": "MembersMissing",
                "scheduledTime": CREATED,
            },
            [3.0],
        ),
    ],
)
def test_members_that_did_not_come_in_time_are_an_exception_with_a_template_alone(
    watched: Watched, spec: Json, fields: Json, counted: list[float]
) -> None:
    watched.group(spec=spec, **fields)
    watched.pod_seen(chief())
    watched.wait(3)

    assert watched.partial() == counted


def test_members_whose_podgroup_was_deleted_stay_and_are_no_part_of_a_quorum(watched: Watched) -> None:
    meta = OWNED | {"annotations": {"gangsched.io/min-member": "3"}}
    watched.group()
    watched.members("n1", "", meta=meta)
    watched.history.groups_replaced([])
    watched.wait(3)
    assert watched.partial() == []

    watched.members("n1", "n1", meta=meta)
    watched.wait(4)
    assert watched.partial() == [4.0]


def spark_group(**fields: Any) -> Json:
    """The PodGroup that is made for `a_driver`."""
    template = {"requests": {"cpu": "1", "memory": "1Gi"}}
    roles = [{"name": "driver", "minMember": 1}, {"name": "executor", "minMember": 2, "template": template}]
    found = a_group("a", min_member=3, spec={"roles": roles}, **fields)
    found["metadata"]["labels"] = {"gangsched.io/created-by": "gangsched"}
    return found


def test_a_spark_driver_says_its_groups_minimum_whatever_the_group_made_for_it_says(watched: Watched) -> None:
    watched.pod_seen(a_driver("a", executors=2, node="n1"))
    watched.pod_seen(an_executor("a", 1, node="n1"))
    watched.wait(3)
    assert watched.partial() == [3.0]

    watched.history.pods_replaced([])
    made = spark_group(**places(1, role="executor"))
    made["spec"]["minMember"] = 6
    watched.history.group_seen(made)
    watched.pod_seen(a_driver("a", executors=2, node="n1"))
    watched.pod_seen(an_executor("a", 1, node="n1"))
    watched.wait(60)
    assert watched.partial() == [3.0]


def test_a_spark_application_goes_on_as_it_was_when_a_group_is_made_for_it(watched: Watched) -> None:
    watched.pod_seen(a_driver("a", executors=1, node="n1"))
    watched.pod_seen(an_executor("a", 1, node="n1"))
    watched.history.pod_gone(an_executor("a", 1, node="n1"))
    watched.pod_seen(an_executor("a", 2))
    watched.history.group_seen(spark_group(**places(1, role="executor")))

    assert watched.history.was_whole(Key("default", "a"))


def test_without_its_driver_the_group_made_for_it_says_the_minimum_and_nobody_says_it_without_that(
    watched: Watched,
) -> None:
    watched.history.group_seen(spark_group())
    watched.pod_seen(an_executor("a", 1, node="n1"))
    watched.wait(3)
    assert watched.partial() == [3.0]

    watched.history.groups_replaced([])
    watched.wait(3)
    assert watched.partial() == [3.0]


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


@pytest.mark.parametrize("end", ["released", "PodGroup deleted", "a member came", "named"])
def test_they_are_not_once_released_or_gone_or_somebody_lives(watched: Watched, end: str) -> None:
    watched.group(spec=TEMPLATED, **places(2))
    watched.wait(2)
    if end == "released":
        watched.group(spec=TEMPLATED, phase="Pending")
    elif end == "PodGroup deleted":
        watched.history.groups_replaced([])
    elif end == "a member came":
        watched.pod_seen(a_pod("a-0", "a", role="chief"))
    else:
        watched.group(spec=TEMPLATED, **places(2, "a-1", "a-2"))
    watched.wait(5)

    (desertion,) = watched.history.deserted()
    assert (desertion.seconds, desertion.open) == (2.0, False)


def test_a_podgroup_of_the_applications_own_counts_whatever_its_driver_says(watched: Watched) -> None:
    watched.group(min_member=1)
    watched.pod_seen(a_driver("a", executors=5, node="n1"))

    assert watched.history.was_whole(Key("default", "a"))
