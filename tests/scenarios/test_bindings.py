"""Quorums in flight: failed bindings are retried, given up only as a whole, and survive a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.objects.effects import BindPod, PatchStatus
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.results import BindRefused, Refused, StatusRefused, StatusWritten
from tests.builders import group, node, pod, pods
from tests.harness import Harness


def refusing(
    why: Refused, *names: str, times: int = 1, retry_after_s: float = 0.0
) -> Callable[[BindPod], BindRefused | None]:
    """Refuse the bindings of these pods, or of all pods if no name is given, `times` times each."""
    left: dict[str, int] = {}

    def refuse(effect: BindPod) -> BindRefused | None:
        seen = left[effect.name] = left.get(effect.name, 0) + 1
        if (names and effect.name not in names) or seen > times:
            return None
        return BindRefused(effect.uid, effect.node, why, "the server says no", retry_after_s)

    return refuse


def three(refuse: Callable[[BindPod], BindRefused | None] | None = None, **spec) -> Harness:
    """A group of three on a node with room for it."""
    harness = Harness()
    if refuse is not None:
        harness.refuse_bind = refuse
    harness.add(node("n1", cpu=3), group("a", min_member=3, **spec), *pods("a", 3))
    return harness


def sent(harness: Harness, name: str) -> int:
    """How many times a binding of the pod was sent."""
    return sum(isinstance(effect, BindPod) and effect.name == name for effect in harness.effects)


@pytest.mark.without("restarts", "leaderless", why="a new leader tries again at once")
def test_an_unavailable_binding_is_tried_again_on_the_same_node():
    harness = three(refusing(Refused.UNAVAILABLE, "a-1"))
    harness.settle()
    assert harness.bound() == ["default/a-0", "default/a-2"]
    assert harness.gang("default/a").record.phase == "Reserved"
    harness.wait(0.25)
    assert len(harness.bound()) == 3
    assert {effect.node for effect in harness.effects if isinstance(effect, BindPod)} == {"n1"}


@pytest.mark.without("restarts", "standbys", why="a new leader tries again at once")
def test_retry_after_is_honoured():
    harness = three(refusing(Refused.UNAVAILABLE, "a-1", retry_after_s=7.0))
    harness.wait(6.99)
    assert sent(harness, "a-1") == 1
    harness.wait(0.01)
    assert sent(harness, "a-1") == 2
    assert len(harness.bound()) == 3


@pytest.mark.without("leaderless", why="a new leader tries again at once")
def test_retries_come_ever_more_slowly():
    harness = three(refusing(Refused.UNAVAILABLE, "a-1", times=9))
    times = []
    for _ in range(6):
        harness.settle()
        tries = sent(harness, "a-1")
        start = harness.now
        while sent(harness, "a-1") == tries:
            harness.wait(0.25)
        times.append(harness.now - start)
    assert times == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries again at once")
def test_places_are_in_the_status_before_a_binding_is_sent_again():
    harness = three(refusing(Refused.UNAVAILABLE, "a-1"))
    refused = []

    def refuse(effect: PatchStatus) -> StatusRefused:
        refused.append(effect)
        return StatusRefused(effect.key, stale=False)

    harness.refuse_status = refuse
    harness.wait(4)
    assert sent(harness, "a-1") == 1
    assert {effect.status.reservation is not None for effect in refused} == {True}
    harness.refuse_status = lambda _: None
    harness.wait(6)
    assert len(harness.bound()) == 3
    patches = [effect for effect in harness.effects if isinstance(effect, PatchStatus)]
    held = [patch.status.reservation for patch in patches if patch.status.reservation is not None]
    (place,) = held[-1].placements
    assert (place.node, place.pods, place.count, place.requests) == ("n1", ("a-1",), 1, (("cpu", 1000),))
    harness.wait(2)
    assert harness.status("default/a").reservation is None


@pytest.mark.without("restarts", "standbys", "leaderless", why="counts what one leader does")
def test_a_reservation_that_lost_a_race_is_written_again_with_the_newer_version():
    harness = three()
    refuse = refusing(Refused.UNAVAILABLE, "a-1")

    def refuse_while_somebody_writes_the_podgroup(effect: BindPod) -> BindRefused | None:
        answer = refuse(effect)
        if answer is not None:
            key = harness.group("default/a").key
            harness.groups[key] = replace(harness.groups[key], resource_version="77")
        return answer

    harness.refuse_bind = refuse_while_somebody_writes_the_podgroup
    harness.settle()
    assert reservations(harness) == ["1"]
    harness.wait(0.25)
    assert reservations(harness) == ["1", "1"]
    assert sent(harness, "a-1") == 1
    harness.add(harness.group("default/a"))
    newer = harness.group("default/a").resource_version
    harness.wait(0.25)
    assert reservations(harness) == ["1", "1", newer]
    assert len(harness.bound()) == 3


def test_an_answer_that_comes_behind_newer_news_of_the_podgroup_does_not_hold_up_its_reservation():
    """Steps: a status is written. Another client then changes the PodGroup, and the watch shows the change before the
    response to our write arrives. Places assigned later must still be reserved.
    """
    harness = Harness()
    harness.refuse_bind = refusing(Refused.UNAVAILABLE, "a-1")

    def answer_late(effect: PatchStatus) -> StatusWritten:
        harness.refuse_status = lambda _: None
        group = harness.group("default/a")
        harness.add(replace(group, status=effect.status))
        written = StatusWritten(effect.key, harness.group("default/a").resource_version, reserved=False)
        harness.add(harness.group("default/a"))
        return written

    harness.refuse_status = answer_late
    harness.wait(2, node("n1", cpu=3), group("a", min_member=3), *pods("a", 2))
    harness.wait(2, pod("a-2"))
    assert len(harness.bound()) == 3


def reservations(harness: Harness) -> list[str]:
    """The resourceVersions that the writes of a reservation were conditional on."""
    patches = [effect for effect in harness.effects if isinstance(effect, PatchStatus)]
    return [patch.resource_version for patch in patches if patch.status.reservation is not None]


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_member_that_is_gone_meanwhile_is_replaced_by_the_next():
    harness = three(refusing(Refused.GONE, "a-1", times=99))
    harness.step()
    harness.delete("default/a-1")
    harness.settle()
    assert harness.bound() == ["default/a-0", "default/a-2"]
    harness.settle(pod("a-3"))
    assert len(harness.bound()) == 3
    assert harness.gang("default/a").record.phase == "Scheduled"


def test_a_member_bound_by_somebody_else_meanwhile_counts_where_it_is():
    harness = three()
    harness.add(node("n2", cpu=1))

    def steal(effect: BindPod) -> BindRefused | None:
        if effect.name == "a-1" and not harness.pod("default/a-1").node:
            harness.add(replace(harness.pod("default/a-1"), node="elsewhere"))
            return BindRefused(effect.uid, effect.node, Refused.CONFLICT, "bound to elsewhere")
        return None

    harness.refuse_bind = steal
    harness.wait(1)
    assert harness.pod("default/a-1").node == "elsewhere"
    assert harness.status("default/a").phase == "Scheduled"
    assert sent(harness, "a-1") == 1


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries again at once")
def test_a_conflict_that_arrives_before_the_watch_frees_the_place_and_keeps_the_member():
    harness = three()
    harness.refuse_bind = refusing(Refused.CONFLICT, "a-1")
    harness.settle()
    assert sent(harness, "a-1") == 1
    harness.change("default/a-1", node="elsewhere")
    harness.settle()
    assert harness.gang("default/a").record.phase == "Scheduled"


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries again at once")
def test_bindings_refused_for_good_release_the_whole_group_which_backs_off():
    harness = three(refusing(Refused.FORBIDDEN, times=1))
    harness.settle()
    assert harness.bound() == []
    gang = harness.gang("default/a")
    assert gang.operations.bindings == {}
    assert gang.record.phase == "TimedOut"
    assert harness.condition("default/a").reason == "BindingRefused"
    assert "the server says no" in harness.condition("default/a").message
    assert len(harness.events("BindingRefused")) == 1
    harness.wait(2)
    assert harness.pod("default/a-0").condition_reason == "BindingRefused"
    harness.wait(5, node("n2"))
    assert harness.bound() == []
    harness.wait(5)
    assert len(harness.bound()) == 3
    assert harness.condition("default/a").reason == "Scheduled"


@pytest.mark.without("restarts", why="a new leader tries again at once")
def test_a_node_that_vanishes_under_a_part_of_the_held_places_never_leaves_a_part_bound():
    harness = Harness()
    harness.refuse_bind = refusing(Refused.UNAVAILABLE)
    harness.settle(node("n1", cpu=2), node("n2", cpu=1), group("a", min_member=3), *pods("a", 3))
    harness.delete_node("n2")
    harness.wait(10)
    assert harness.bound() == []
    assert harness.condition("default/a").reason == "NeverFits"
    harness.settle(node("n3", cpu=1))
    assert len(harness.bound()) == 3


@pytest.mark.without("restarts", "standbys", why="a new leader tries again at once")
def test_a_member_that_vanishes_while_places_are_held_never_leaves_a_part_bound():
    harness = three(refusing(Refused.UNAVAILABLE))
    harness.settle()
    harness.delete("default/a-1")
    harness.wait(10)
    assert harness.bound() == []
    assert harness.gang("default/a").operations.bindings == {}
    assert harness.status("default/a").phase == "Pending"


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_a_node_that_vanishes_under_the_last_place_lets_that_member_be_placed_elsewhere_first_of_all():
    harness = Harness()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no") if effect.node == "n2" else None
    )
    harness.settle(node("n1", cpu=2), node("n2", cpu=1), group("a", min_member=3, priority=0), *pods("a", 3))
    assert len(harness.bound()) == 2
    harness.delete_node("n2")
    harness.wait(15)
    assert len(harness.bound()) == 2
    assert harness.condition("default/a").reason == "Unschedulable"
    harness.settle(node("n3", cpu=1), group("b", min_member=1, priority=9), *pods("b", 1))
    assert len(harness.bound("default/a-")) == 3
    assert harness.bound("default/b-") == []


@pytest.mark.parametrize("reserved", [True, False])
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries again at once")
def test_a_restart_while_a_binding_is_owed_binds_the_member_and_nobody_twice(reserved):
    harness = three(refusing(Refused.UNAVAILABLE, "a-1", times=1))
    if reserved:
        harness.settle()
        assert harness.status("default/a").reservation is not None
    else:
        harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False)
        harness.settle()
        assert harness.status("default/a").reservation is None
    assert len(harness.bound()) == 2
    harness.refuse_status = lambda _: None
    harness.add(pod("thief", group="", created=-1.0, priority=10, preempts=False))
    harness.restart()
    harness.settle()
    assert len(harness.bound("default/a-")) == 3
    assert harness.bound("default/thief") == []
    harness.wait(2)
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.status("default/a").reservation is None


@pytest.mark.parametrize(("passed", "where"), [(29, "n1"), (31, "n2")])
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries again at once")
def test_places_are_taken_up_after_a_restart_only_until_their_time_has_passed(passed, where):
    harness = three(refusing(Refused.UNAVAILABLE, "a-1", retry_after_s=100.0), strategy="Spread")
    harness.settle()
    harness.add(node("n2"))
    harness.now += passed
    harness.restart()
    harness.settle()
    assert harness.pod("default/a-1").node == where


def test_a_binding_that_was_made_without_an_answer_is_not_made_elsewhere():
    harness = three()
    harness.lose_answer = lambda effect: effect.name == "a-1"
    harness.wait(1)
    assert [name for name, _ in harness.bound_log].count("default/a-1") == 1
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("restarts", "standbys", "leaderless", why="counts what one leader does")
def test_nothing_is_told_while_the_writing_of_a_reservation_is_not_answered():
    harness = three(refusing(Refused.UNAVAILABLE, "a-1"))
    while not any(isinstance(effect, PatchStatus) for effect in harness.effects):
        harness.step()
    answers, harness.inbox = harness.inbox, []
    harness.wait(15, pod("a-7"))
    assert sum(isinstance(effect, PatchStatus) for effect in harness.effects) == 1
    assert sent(harness, "a-1") == 1
    harness.inbox += answers
    harness.wait(2)
    assert len(harness.bound()) == 3
    assert harness.status("default/a").phase == "Scheduled"


class LateStatus(Harness):
    """Records each attempt to bind a-2 and each status that names the node `new`; the first
    unconditional one is late.
    """

    def __init__(self) -> None:
        super().__init__()
        self.story: list[str] = []
        self.refuse_bind = self._refuse

    def _refuse(self, effect: BindPod) -> BindRefused | None:
        if effect.name != "a-2":
            return None
        self.story.append(f"bind to {effect.node}")
        if effect.node == "new" and self.story.count("bind to new") > 1:
            return None
        return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no", 0.0)

    def _patch_status(self, effect: PatchStatus) -> None:
        reservation = effect.status.reservation
        if reservation is not None and any(place.node == "new" for place in reservation.placements):
            self.story.append("write new")
        if effect.resource_version or "late" in self.story:
            super()._patch_status(effect)
        else:
            self.story.append("late")
            self.after(10, lambda: self._patch_status(effect))


@pytest.mark.without("all", why="asserts what one order of results leads to")
def test_a_member_that_moves_while_its_place_is_written_is_not_tried_again_before_its_new_place_is():
    """Steps: the binding of a-2 is refused while a status that names its node is in flight. The node goes, and the
    binding to another node is refused too. Only then is the first status accepted. Regression: it counted for the new
    node.
    """
    harness = LateStatus()
    harness.settle(*(node(f"n{number}", cpu=1) for number in range(3)), group("a", min_member=3), *pods("a", 3))
    harness.run_pods()
    harness.wait(1.2)
    old = harness.story[0].removeprefix("bind to ")
    harness.add(node("new", cpu=1))
    harness.delete_node(old)
    harness.wait(25)
    since = harness.story[harness.story.index("late") :]
    assert [each for each in since if each.endswith("new")] == ["bind to new", "write new", "bind to new"]


def beside_one_that_is_refused(**node_has) -> Harness:
    """A group of one runs, and the binding of a second member is refused for good."""
    harness = Harness()
    harness.refuse_bind = refusing(Refused.FORBIDDEN, "a-1", times=99)
    harness.wait(3, node("n1", **node_has), group("a", min_member=1), *pods("a", 2))
    return harness


@pytest.mark.parametrize("later_s", [0, 300])
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know of the refusal")
def test_a_member_whose_binding_was_refused_says_that_its_podgroup_is_gone(later_s):
    """Regression: it said for ever that the binding is retried later, which it is not."""
    harness = beside_one_that_is_refused()
    harness.wait(later_s)
    assert harness.pod("default/a-1").condition_reason == Reason.BINDING_REFUSED
    harness.delete_group("default/a")
    harness.wait(3)
    assert harness.pod("default/a-1").condition_reason == Reason.POD_GROUP_NOT_FOUND


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know of the refusal")
def test_a_member_whose_binding_was_refused_waits_for_room_like_others_under_another_podgroup():
    """Regression: it said for ever that its binding was refused, on which no autoscaler acts."""
    harness = beside_one_that_is_refused(cpu=2)
    harness.delete_group("default/a")
    full = pod("other", group="", node="n1", scheduler="other")
    harness.wait(300, full, group("a", uid="another", min_member=2))
    assert harness.pod("default/a-1").condition_reason == Reason.UNSCHEDULABLE
