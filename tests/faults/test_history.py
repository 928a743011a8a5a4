"""How long a group was partial, and what stood on a node when a pod was bound there."""

from __future__ import annotations

import pytest

from tests.faults.history import CountedClock, Episode, History
from tests.faults.manifests import CREATED, OWNED, a_group, a_pod, members
from tests.faults.objects import Key

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


def test_a_group_is_partial_from_its_first_binding_to_its_last(watched: Watched) -> None:
    watched.group()
    watched.members("", "", "")
    watched.wait(5)
    watched.members("n1", "", "")
    watched.wait(2)
    watched.members("n1", "n1", "")
    watched.wait(3)
    watched.members("n1", "n1", "n1")
    watched.wait(7)

    assert watched.partial() == [5.0]


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


def test_a_new_run_can_be_partial_again(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "n1", "n1")
    for pod in members("a", "n1", "n1", "n1"):
        watched.history.pod_gone(pod)
    watched.pod_seen(a_pod("a-9", "a", node="n1"))
    watched.wait(6)

    assert watched.partial() == [6.0]


def test_a_status_that_says_scheduled_ends_it_unless_it_is_of_an_earlier_run(watched: Watched) -> None:
    watched.group(phase="Running", scheduledTime=CREATED)
    watched.members("n1", "", "")
    watched.wait(6)
    watched.group(phase="Running", scheduledTime="2027-01-15T08:00:06Z")
    watched.wait(6)

    assert watched.partial() == [6.0]


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


def test_a_minimum_that_was_raised_just_now_does_not_make_a_group_partial(watched: Watched) -> None:
    watched.group(min_member=2)
    watched.members("n1", "", "")
    watched.group(min_member=3)
    watched.wait(1)
    watched.members("n1", "n1", "")
    watched.wait(60)

    assert watched.partial() == [1.0]


def test_a_minimum_of_long_ago_is_none(watched: Watched) -> None:
    watched.group(min_member=2)
    watched.members("", "", "")
    watched.group(min_member=3)
    watched.wait(60)
    watched.members("n1", "n1", "")
    watched.wait(3)

    assert watched.partial() == [3.0]


def test_a_lowered_minimum_ends_it(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "n1", "")
    watched.wait(3)
    watched.group(min_member=2)
    watched.wait(3)

    assert watched.partial() == [3.0]


def test_a_role_that_lacks_makes_it_partial(watched: Watched) -> None:
    watched.group(spec={"roles": [{"name": "chief", "minMember": 1}]})
    watched.members("n1", "n1", "n1")
    watched.wait(3)
    watched.pod_seen(a_pod("a-9", "a", node="n1", role="chief"))
    watched.wait(3)

    assert watched.partial() == [3.0]


def test_annotations_declare_a_minimum_and_without_any_nothing_is_partial(watched: Watched) -> None:
    watched.members("n1", "")
    watched.wait(3)
    assert watched.partial() == []

    watched.history.pods_replaced([])
    watched.members("n1", "", meta=OWNED | {"annotations": {"gangsched.io/min-member": "2"}})
    watched.wait(3)
    assert watched.partial() == [3.0]


def test_members_that_nothing_would_recreate_are_an_exception_where_no_podgroup_can_show_it(watched: Watched) -> None:
    watched.members("n1", "", meta={"annotations": {"gangsched.io/min-member": "2"}})
    watched.wait(3)

    assert watched.partial() == []


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


def test_a_deleted_podgroup_ends_it(watched: Watched) -> None:
    watched.group()
    watched.members("n1", "", "")
    watched.wait(3)
    watched.history.groups_replaced([])
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
