"""Installations with different schedulerNames share a cluster: each group has one owner, and can move to
another one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.effects import MakeGroup
from gangsched.core.objects.faults import Rebuilt
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods, shape
from tests.harness import Harness
from tests.installations import Installation
from tests.scenarios.test_containment import EvilError, Injector

pytestmark = pytest.mark.without("leaderless", "standbys", why="each installation has a clock and a leader of its own")


def both() -> tuple[Installation, Installation]:
    """The installation with the default name, and another one."""
    first = Installation("gangsched")
    first.add(node("n1", cpu=64))
    return first, Installation("green", beside=first)


def give_away(first: Installation) -> None:
    """A pod of the other installation arrives, and the annotation names that installation."""
    first.add(pod("a-1", scheduler="green", cpu=100), replace(first.group("default/a"), scheduler="green"))


def fails_once() -> Callable[..., bool]:
    """A predicate that is true on its first call only."""
    calls = iter([True])
    return lambda *_args, **_kwargs: next(calls, False)


class TestWhoseAGroupIs:
    def test_members_decide_and_the_other_installation_does_nothing(self):
        first, green = both()
        first.add(group("a", min_member=2), *pods("a", 2, scheduler="green"))
        first.wait_all(60)
        assert first.bound("default/a") == ["default/a-0", "default/a-1"]
        assert green.status("default/a").phase == "Scheduled"
        assert green.status("default/a").scheduler == "green"
        assert first.effects == []
        assert first.machine.gangs == {}
        assert first.machine.stats().phases == {}

    def test_a_pod_whose_scheduler_nobody_runs_is_told_once_and_forgotten_when_it_is_gone(self):
        """`validate` finds anything still remembered about deleted pods."""
        first, _ = both()
        first.add(group("a", min_member=1), pod("a-0", scheduler="gangshed"))
        first.wait_all(60)
        assert len(first.events("ForeignMember")) == 1
        first.delete("default/a-0")
        first.wait_all(5)
        assert first.machine.validate() == []


class TestPodsOfBoth:
    def test_the_first_pods_installation_has_the_group_and_tells_the_others(self):
        first, green = both()
        first.add(group("a", min_member=2), pod("a-0", created=1.0), pod("a-1", scheduler="green", created=2.0))
        first.wait_all(60)
        assert first.condition("default/a").reason == "GangIncomplete"
        assert first.condition("default/a").message == (
            "1 of 2 members exist; 1 more member is needed, or a lower minimum. 1 pod does not count, because its "
            "schedulerName is green."
        )
        event = first.events("ForeignMember")[0]
        assert event.name == "a-1"
        assert "Set schedulerName to gangsched or remove the label." in event.note
        assert green.effects == []

    @pytest.mark.without("disorder", why="the pod that one sees first it may bind")
    def test_the_annotation_decides_between_them(self):
        first, green = both()
        first.add(replace(group("a", min_member=1), scheduler="green"))
        first.add(pod("a-0", created=1.0), pod("a-1", scheduler="green", created=2.0))
        first.wait_all(5)
        assert first.bound() == ["default/a-1"]
        assert {event.name for event in green.events("ForeignMember")} == {"a-0"}
        assert first.effects == []


class TestTheOwnerChanges:
    def test_members_of_the_other_begin_a_run_with_nothing_of_the_last_one_in_the_status(self):
        first, green = both()
        first.add(group("a", min_member=1), pod("a-0", scheduler="green", uid="old"))
        first.wait_all(5)
        assert green.status("default/a").scheduled_time
        first.delete("default/a-0")
        first.add(pod("a-0", uid="new", cpu=100, created=first.now))
        first.wait_all(5)
        status = first.status("default/a")
        assert (status.phase, status.scheduler, status.bound, status.scheduled_time) == ("Queued", "", 0, 0.0)
        assert not green.has("default/a")

    def test_held_places_are_released_when_the_annotation_gives_the_group_away(self):
        first, green = both()
        first.delete_node("n1")
        first.add(node("small", cpu=4))
        roles = (Role("driver", 1), Role("worker", 3, template=shape(1)))
        first.add(group("a", min_member=4, roles=roles, max_schedule_time_s=600.0))
        first.add(pod("a-0", role="driver"))
        first.wait_all(2)
        assert first.status("default/a").reservation is not None
        first.add(group("b", min_member=3), *pods("b", 3))
        first.wait_all(2)
        assert first.bound("default/b") == []
        first.add(pod("a-1", role="worker", scheduler="green", cpu=100, created=first.now))
        first.add(replace(first.group("default/a"), scheduler="green"))
        first.wait_all(2)
        assert not first.has("default/a")
        assert len(first.bound("default/b")) == 3
        status = green.status("default/a")
        assert (status.scheduler, status.reservation, status.members) == ("green", None, 1)

    @pytest.mark.without("restarts", why="another leader asks for the answer of a binding in a way of its own")
    def test_a_binding_in_flight_is_answered_before_its_place_is_given_to_another(self):
        """Steps: a binding is in flight when the group is given away; meanwhile another group wants the place."""
        first, _ = both()
        first.delete_node("n1")
        first.add(node("small", cpu=1))
        first.withhold = lambda effect: effect.name == "a-0"
        first.add(group("a", min_member=1), pod("a-0"))
        first.settle_all()
        on_its_way = first.take_withheld()
        give_away(first)
        first.add(group("b", min_member=1), pod("b-0", group="b"))
        first.settle_all()
        assert first.bound() == []
        first.withhold = lambda _: False
        for effect in on_its_way:
            first.answer(effect)
        first.wait_all(5)
        assert first.bound() == ["default/a-0"]
        assert not first.has("default/a")

    @pytest.mark.without("restarts", why="another leader asks for the answer of a binding in a way of its own")
    def test_a_binding_that_fails_after_the_group_was_given_away_is_not_sent_again(self):
        first, _ = both()
        first.withhold = lambda effect: effect.name == "a-0"
        first.add(group("a", min_member=1), pod("a-0"))
        first.settle_all()
        on_its_way = first.take_withheld()
        give_away(first)
        first.settle_all()
        first.withhold = lambda _: False
        first.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no answer")
        for effect in on_its_way:
            first.answer(effect)
        sent = len(first.effects)
        first.wait_all(30)
        assert first.effects[sent:] == []
        assert first.bound() == []


@pytest.mark.faults
@pytest.mark.without("all", why="a new leader tries a parked group at once")
@pytest.mark.parametrize("after", [False, True])
def test_a_fault_while_a_group_passes_on_leaves_it_to_the_other_installation(monkeypatch, after):
    """Steps: the group has a bound and a waiting member when the annotation gives it away; this fails once."""
    first, green = both()
    first.add(group("a", min_member=1), pod("a-0"), pod("a-2", cpu=100))
    first.wait_all(5)
    Injector(monkeypatch).into(Members, "give_up", after=after, when=fails_once())
    give_away(first)
    first.settle_all()
    [rebuilt] = first.machine.take_faults()
    assert isinstance(rebuilt, Rebuilt)
    assert isinstance(rebuilt.error, EvilError)
    first.wait_all(120)
    assert not first.has("default/a")
    assert green.status("default/a").scheduler == "green"
    assert first.bound() == ["default/a-0"]


class TestWhatIsTold:
    def test_pods_of_an_installation_that_works_get_no_event_of_another(self):
        first, green = both()
        first.add(*pods("a", 2, scheduler="green", declaration=Declaration("a", min_member=3)))
        first.add(*pods("b", 2, scheduler="green", declaration=Declaration("b", min_member=2)))
        first.wait_all(60)
        assert green.bound() == ["default/b-0", "default/b-1"]
        assert first.effects == []

    def test_a_podgroup_that_is_made_says_whose_it_is(self):
        harness = Harness(Installation("green").policy)
        roles = (Role("driver", 1), Role("worker", 2, template=shape(1)))
        harness.wait(5, node(), pod("a-0", scheduler="green", declaration=Declaration("a", role="driver", roles=roles)))
        [made] = [effect for effect in harness.effects if isinstance(effect, MakeGroup)]
        assert made.scheduler == "green"
        assert harness.group("default/a").scheduler == "green"


def test_whose_another_installations_group_is_can_be_asked_by_the_group_and_by_a_pod_of_ours():
    first, _ = both()
    first.add(group("a", min_member=2), pod("a-0", scheduler="green"), pod("a-1", created=1.0))
    first.wait_all(5)
    by_group = first.machine.elsewhere("default", "a")
    assert by_group is not None
    assert (by_group.owner, len(by_group.pods)) == ("green", 2)
    assert first.machine.elsewhere("default", "a-1") == by_group
    assert first.machine.elsewhere("default", "a-0") is None
    assert first.machine.elsewhere("default", "b") is None
