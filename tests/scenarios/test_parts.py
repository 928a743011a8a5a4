"""Parts of a tree above its minimum, and what a raised minimum adds: each is bound whole or not at all, whatever fails.

The quorum has the same promise in test_rollback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import NATIVE, Role
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import DeviceUse, Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup, OnDegraded
from gangsched.core.objects.record import Minima, Phase
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import group, node, pod, pods
from tests.gadgets import GPUS, device_claim, gpus
from tests.harness import Harness
from tests.scenarios.test_conditions import condition, read
from tests.scenarios.test_trees import ROOT, bound, told
from tests.trees import inner, leaf, members_of, under

OWNER = Owner("ReplicaSet", "rs", "uid-rs", "apps")


def refusing(*names: str, why: Refused = Refused.DENIED) -> Callable[[BindPod], BindRefused | None]:
    """Refuse the bindings of pods whose names begin so."""
    return lambda effect: (
        BindRefused(effect.uid, effect.node, why, "policy says no") if effect.name.startswith(names) else None
    )


def running(*, cpu: int = 9, owner: Owner | None = OWNER) -> Harness:
    """A tree of three groups of three that needs two of them, with the first two bound."""
    harness = Harness.of(node(cpu=cpu), inner("root"), *(leaf(f"pg{number}", "root") for number in (1, 2, 3)))
    harness.wait(3, *(each for number in (1, 2) for each in members_of(f"pg{number}", 3, owner=owner)))
    assert bound(harness) == {"pg1": 3, "pg2": 3}
    return harness


def settled(harness: Harness) -> dict[str, int]:
    """What is bound once evicted pods are gone."""
    harness.end_terminating()
    harness.settle()
    return bound(harness)


class TestABindingIsRefused:
    def test_what_is_bound_of_the_part_is_evicted_and_the_rest_of_the_tree_goes_on(self):
        harness = running()
        harness.refuse_bind = refusing("pg3-1")
        harness.wait(40, *members_of("pg3", 3, owner=OWNER))
        assert sorted(harness.evicted) == ["default/pg3-0", "default/pg3-2"]
        assert settled(harness) == {"pg1": 3, "pg2": 3}
        assert harness.machine.gangs[ROOT].record.phase is Phase.SCHEDULED

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know the back-off")
    def test_the_part_is_tried_again_after_a_back_off_that_grows(self):
        harness = running()
        harness.refuse_bind = refusing("pg3-1")
        harness.wait(21, *members_of("pg3", 3, owner=OWNER))
        assert settled(harness) == {"pg1": 3, "pg2": 3}
        harness.wait(5, *members_of("pg3", 2, first=7, owner=OWNER))
        assert bound(harness) == {"pg1": 3, "pg2": 3}
        reason, message = told(harness, "pg3-7")
        assert reason == "BindingUndone"
        assert "2 members were bound, and 1 more could not be bound within 20s (policy says no)" in message
        harness.wait(6)
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 2}
        harness.wait(21)
        assert settled(harness) == {"pg1": 3, "pg2": 3}
        harness.add(*members_of("pg3", 2, first=9, owner=OWNER))
        harness.refuse_bind = refusing("nothing")
        harness.wait(12)
        assert bound(harness) == {"pg1": 3, "pg2": 3}
        harness.wait(12)
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 3}

    def test_a_part_all_of_whose_bindings_are_refused_holds_no_room(self):
        harness = running()
        harness.refuse_bind = refusing("pg3")
        harness.settle(*members_of("pg3", 3, owner=OWNER))
        harness.wait(2, pod("other", group="", cpu=3))
        assert bound(harness) == {"other": 1, "pg1": 3, "pg2": 3}

    def test_members_that_nothing_would_recreate_stay_and_the_rest_is_tried_again(self):
        harness = running(owner=None)
        harness.refuse_bind = refusing("pg3-1")
        harness.wait(25, *members_of("pg3", 3))
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 2}
        assert harness.evicted == []
        harness.refuse_bind = refusing("nothing")
        harness.wait(20)
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 3}

    def test_a_member_above_the_minimum_of_a_whole_part_waits_alone(self):
        harness = running()
        harness.refuse_bind = refusing("pg1-3")
        harness.wait(60, *members_of("pg1", 1, first=3, owner=OWNER))
        assert bound(harness) == {"pg1": 3, "pg2": 3}
        assert harness.evicted == []
        assert told(harness, "pg1-3")[0] == "BindingRefused"

    def test_a_quorum_that_fails_is_rolled_back_alone_if_other_parts_are_whole_and_enough(self):
        harness = Harness()
        harness.add(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9, least=2), leaf("b", "root", least=2))
        harness.refuse_bind = refusing("a-1")
        harness.wait(40, *members_of("a", 2, owner=OWNER), *members_of("b", 2, owner=OWNER))
        assert harness.evicted == ["default/a-0"]
        assert settled(harness) == {"b": 2}
        assert harness.machine.gangs[ROOT].record.phase is Phase.SCHEDULED

    def test_what_a_raised_minimum_adds_is_bound_together_or_not_at_all(self):
        harness = Harness()
        harness.add(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9, least=2), leaf("b", "root", least=2))
        harness.wait(5, *members_of("a", 2, owner=OWNER))
        harness.refuse_bind = refusing("b-1")
        harness.wait(40, inner("root", least=2), *members_of("b", 2, created=harness.now, owner=OWNER))
        assert harness.evicted == ["default/b-0"]
        assert settled(harness) == {"a": 2}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_part_whose_room_another_pod_takes_is_completed_elsewhere_or_rolled_back(elsewhere):
    harness = running()
    harness.refuse_bind = refusing("pg3-1", "pg3-2", why=Refused.UNAVAILABLE)
    harness.settle(*members_of("pg3", 3, owner=OWNER))
    assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 1}
    harness.settle(pod("rival", group="", cpu=1, node="n1", scheduler="other"))
    harness.refuse_bind = refusing("nothing")
    if elsewhere:
        harness.add(node("n2", cpu=1))
    harness.wait(60)
    assert settled(harness) == {"pg1": 3, "pg2": 3, "rival": 1} | ({"pg3": 3} if elsewhere else {})
    assert (harness.evicted == []) is elsewhere


class TestALeaderFindsAPartHalfBound:
    def half_bound(self) -> Harness:
        harness = running()
        harness.withhold = lambda effect: effect.name in ("pg3-1", "pg3-2")
        harness.wait(1, *members_of("pg3", 3, owner=OWNER))
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 1}
        harness.withhold = lambda _: False
        return harness

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_it_is_rolled_back_if_there_is_no_room_for_the_rest(self):
        harness = self.half_bound()
        harness.add(pod("rival", group="", cpu=1, node="n1", scheduler="other"))
        harness.restart()
        harness.wait(30)
        assert harness.evicted == ["default/pg3-0"]
        assert settled(harness) == {"pg1": 3, "pg2": 3, "rival": 1}

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_a_part_that_was_whole_and_has_lost_a_member_is_not_rolled_back(self):
        harness = running()
        harness.wait(5, *members_of("pg3", 3, owner=OWNER))
        harness.run_pods()
        harness.delete("default/pg3-0")
        harness.wait(5, pod("rival", group="", cpu=1, node="n1", scheduler="other"))
        harness.add(*members_of("pg3", 1, first=7, created=harness.now, owner=OWNER))
        harness.restart()
        harness.wait(60)
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 2, "rival": 1}
        assert harness.evicted == []

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_what_the_quorum_has_bound_is_rolled_back_beside_a_whole_part_that_is_enough(self):
        harness = Harness.of(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9), leaf("b", "root"))
        harness.withhold = lambda effect: effect.name in ("a-1", "a-2")
        harness.wait(1, *members_of("a", 3, owner=OWNER), *members_of("b", 3, owner=OWNER))
        assert bound(harness) == {"a": 1, "b": 3}
        harness.withhold = lambda _: False
        harness.add(pod("rival", group="", cpu=5, node="n1", scheduler="other"))
        harness.restart()
        harness.wait(60)
        assert harness.evicted == ["default/a-0"]

    @pytest.mark.without("all", why="the story has its own change of leader")
    @pytest.mark.parametrize("least", [(1, 1, 1), (2, 1, 3)], ids=str)
    def test_the_quorum_is_completed_with_a_part_whose_members_exist(self, least: tuple[int, int, int]):
        """Of the part before it in the order of names, which may need fewer, there is no member."""
        leaves = [leaf(name, "root", least=number) for name, number in zip("abc", least, strict=True)]
        harness = Harness.of(node("n1", cpu=9), inner("root", least=2), *leaves)
        harness.withhold = lambda effect: effect.name.startswith("c-")
        harness.add(*members_of("b", least[1], owner=OWNER), *members_of("c", least[2], owner=OWNER))
        harness.wait(2)
        harness.withhold = lambda _: False
        harness.restart()
        harness.wait(40)
        assert bound(harness) == {"b": least[1], "c": least[2]}
        assert harness.evicted == []

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_nothing_is_bound_for_a_tree_that_has_not_all_the_parts_that_it_needs(self):
        """Regression: what a new leader finds bound was continued as a quorum of the parts that there are."""
        harness = Harness.of(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9, least=1))
        harness.add(inner("b", "root", least=2), leaf("c", "b", least=1))
        harness.add(*members_of("a", 1, owner=OWNER), *members_of("a", 1, first=1, cpu=20, owner=OWNER))
        harness.wait(5, *members_of("c", 1, owner=OWNER))
        harness.add(inner("root", least=2))
        harness.restart()
        harness.wait(60)
        assert "c" not in bound(harness)


def with_claim(name: str, count: int, *, of: int) -> list[Pod]:
    """Members of the group, of which the last `of` use its claim."""
    said = DEFAULT.declaration({}, {}, scheduling_group=name)
    uses = (DeviceUse("shared", "c", "", name),)
    return [
        pod(f"{name}-{at}", group="", declaration=said, device_claims=uses if at >= count - of else (), owner=OWNER)
        for at in range(count)
    ]


def test_nothing_of_a_part_is_bound_before_the_claims_of_all_its_members_are_ready():
    harness = Harness.of(node("n", cpu=8), inner("root", least=1), leaf("a", "root", age=9, least=1))
    claims = [{"name": "shared", "resourceClaimName": "c"}]
    harness.wait(5, leaf("b", "root", least=2, resourceClaims=claims), *members_of("a", 1))
    harness.add(GPUS, gpus("n", 1), device_claim("c"))
    harness.lose_prebinding = lambda _: True
    harness.wait(900, *with_claim("b", 2, of=1))
    assert bound(harness) == {"a": 1}
    harness.lose_prebinding = lambda _: False
    harness.wait(400)
    assert bound(harness) == {"a": 1, "b": 2}


class TestAPartIsShort:
    def test_members_above_the_minimum_of_another_part_do_not_wait_for_it(self):
        harness = Harness.of(node(cpu=9), inner("root"), leaf("a", "root", age=9, least=2), leaf("b", "root", least=2))
        harness.wait(5, *members_of("a", 2), *members_of("b", 2))
        harness.run_pods()
        harness.delete("default/b-0")
        harness.wait(5)
        harness.wait(5, *members_of("a", 1, first=2, created=harness.now))
        assert bound(harness) == {"a": 3, "b": 1}

    @pytest.mark.parametrize("level", [True, False])
    def test_a_part_that_was_lost_whole_does_not_wait_for_it(self, level):
        harness = Harness.of(*(node(name, cpu=4, labels={"rack": name}) for name in ("r1", "r2")), inner("root"))
        spec = under("rack") if level else {}
        harness.add(leaf("a", "root", least=2, **spec), leaf("b", "root", least=2, **spec))
        harness.wait(5, *members_of("a", 2), *members_of("b", 2))
        harness.run_pods()
        harness.delete("default/a-0", "default/a-1", "default/b-0")
        harness.wait(5)
        harness.wait(5, *members_of("a", 2, first=7, created=harness.now))
        assert bound(harness) == {"a": 2, "b": 1}
        if level:
            assert len({harness.pod(f"default/a-{number}").node for number in (7, 8)}) == 1

    def test_a_part_that_was_lost_whole_is_bound_whole_again_or_not_at_all(self):
        harness = Harness()
        harness.add(node("n1", cpu=3), node("n2", cpu=3), inner("root"), leaf("a", "root", age=9), leaf("b", "root"))
        harness.wait(5, *members_of("a", 3), *members_of("b", 3))
        harness.run_pods()
        harness.delete("default/a-0", "default/a-1", "default/a-2")
        harness.wait(5, pod("rival", group="", cpu=2, node="n1", scheduler="other"))
        harness.wait(60, *members_of("a", 3, first=5, created=harness.now))
        assert bound(harness) == {"b": 3, "rival": 1}
        assert told(harness, "a-5")[0] == "Unschedulable"
        harness.wait(5, node("n3", cpu=2))
        assert bound(harness) == {"a": 3, "b": 3, "rival": 1}


class TestOtherPartsReplaceALostOne:
    """Found by random walks: while what it had was short, nothing else of a tree was tried that asked for more."""

    def placed(self, *names: str) -> Harness:
        """A tree that needs two of these parts of two members each, and has `a` and `b`."""
        leaves = [leaf(name, "root", least=2, age=9 - at) for at, name in enumerate(names)]
        harness = Harness.of(node(cpu=9), inner("root", least=2), *leaves, *members_of("a", 2), *members_of("b", 2))
        harness.wait(5)
        assert bound(harness) == {"a": 2, "b": 2}
        harness.run_pods()
        return harness

    def test_of_a_part_that_the_tree_has_no_longer(self):
        harness = self.placed("a", "b", "c", "d")
        harness.delete_foreign(NATIVE, "default/b")
        harness.delete("default/b-0", "default/b-1")
        harness.wait(5)
        harness.add(*members_of("c", 1, created=harness.now))
        harness.wait(5)
        assert bound(harness) == {"a": 2}
        harness.add(*members_of("c", 1, first=1, created=harness.now))
        harness.wait(5)
        assert bound(harness) == {"a": 2, "c": 2}
        assert harness.gang("default/root").record.phase is Phase.SCHEDULED

    def test_of_a_part_whose_members_do_not_come_back_in_a_tree_that_asks_for_more(self):
        harness = self.placed("a", "b", "c", "d")
        harness.delete("default/b-0", "default/b-1")
        harness.add(inner("root", least=3))
        harness.wait(5)
        harness.add(*members_of("c", 2, created=harness.now), *members_of("d", 1, created=harness.now))
        harness.wait(5)
        assert bound(harness) == {"a": 2}
        harness.add(*members_of("d", 1, first=1, created=harness.now))
        harness.wait(5)
        assert bound(harness) == {"a": 2, "c": 2, "d": 2}
        harness.add(*members_of("b", 2, first=2, created=harness.now))
        harness.wait(5)
        assert bound(harness) == {"a": 2, "b": 2, "c": 2, "d": 2}


def test_members_beyond_a_lost_part_are_bound_after_it():
    """One more waits than the part needs, and the binding of the first waits for its device."""
    leaves = [leaf(name, "root", least=1) for name in "abc"]
    harness = Harness.of(node("n1", cpu=9), inner("root", least=2), *leaves)
    harness.add(GPUS, gpus("n1", 1), device_claim("d"))
    harness.add(*members_of("b", 1), *members_of("c", 1))
    harness.wait(5)
    harness.delete("default/c-0")
    later = {"created": harness.now, "owner": OWNER}
    harness.add(*members_of("c", 1, first=1, device_claims=["d"], **later), *members_of("c", 1, first=2, **later))
    harness.wait(5)
    assert harness.bound() == ["default/b-0", "default/c-1", "default/c-2"]


class TestAPodGroupOfTheQuorumIsDeleted:
    def begun(self, *, refused: tuple[str, ...]) -> Harness:
        harness = Harness.of(node(cpu=20), inner("root", least=1), leaf("a", "root", age=9), leaf("b", "root"))
        harness.refuse_bind = refusing(*refused, why=Refused.UNAVAILABLE)
        harness.settle(*members_of("a", 3, owner=OWNER), *members_of("b", 2, owner=OWNER))
        harness.delete_foreign(NATIVE, "default/a")
        harness.settle()
        return harness

    def test_the_tree_is_not_scheduled_with_nothing(self):
        """Regression: of the quorum nothing was needed any more, so that the tree was scheduled with no member."""
        harness = self.begun(refused=("a",))
        harness.wait(30)
        assert not harness.gang("default/root").record.scheduled_at
        assert [event.note for event in harness.emitted if event.reason == "Scheduled"] == []
        harness.wait(5, *members_of("b", 1, first=2, owner=OWNER))
        assert bound(harness)["b"] == 3

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader finds no object that needs members")
    def test_what_is_bound_in_part_is_finished_as_that_of_a_plain_group_is(self):
        """Regression: it stayed bound in part (rule 10)."""
        harness = self.begun(refused=("a-1", "a-2"))
        assert bound(harness) == {"a": 1}
        harness.refuse_bind = refusing("nothing")
        harness.wait(60)
        assert bound(harness) == {"a": 3}
        assert harness.evicted == []


class TestALongTimeWithoutALeader:
    """The condition of a native group shows that it was never scheduled, however long ago a member was bound."""

    def half_bound(self, group: ForeignGroup) -> Harness:
        harness = Harness.of(node(cpu=9), group)
        harness.withhold = lambda effect: effect.name != "g-0"
        harness.wait(1, *members_of("g", 3, owner=OWNER))
        assert bound(harness) == {"g": 1}
        harness.withhold = lambda _: False
        harness.now += 400
        return harness

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_a_quorum_found_half_bound_is_rolled_back(self):
        """Regression: after 330 s it counted as scheduled, so that two of three stayed bound."""
        harness = self.half_bound(read({"schedulingPolicy": {"gang": {"minCount": 3}}}))
        harness.add(pod("rival", group="", cpu=7, node="n1", scheduler="other"))
        harness.restart()
        harness.wait(30)
        assert settled(harness) == {"rival": 1}
        seen = condition(harness)
        assert seen is None or not seen.scheduled

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_a_quorum_found_half_bound_is_completed(self):
        harness = self.half_bound(read({"schedulingPolicy": {"gang": {"minCount": 3}}}))
        harness.restart()
        harness.wait(10)
        assert bound(harness) == {"g": 3}
        assert harness.evicted == []

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_a_group_that_was_scheduled_and_lost_a_member_is_not_rolled_back(self):
        """A member that has waited from the beginning takes the place of the lost one."""
        harness = Harness.of(node(cpu=3), read({"schedulingPolicy": {"gang": {"minCount": 3}}}))
        harness.wait(5, *members_of("g", 4, owner=OWNER))
        harness.run_pods()
        harness.delete("default/g-0")
        harness.add(pod("rival", group="", cpu=1, node="n1", scheduler="other"))
        harness.restart()
        harness.wait(60)
        assert bound(harness) == {"g": 2, "rival": 1}
        assert harness.evicted == []


class TestReservationsOfAPartAreDurable:
    """A quorum of two and a part of three are placed at once and refused for now, so that the status holds them all."""

    def held(self, *refused: str) -> Harness:
        harness = Harness.of(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9, least=2), leaf("b", "root"))
        harness.refuse_bind = refusing(*refused, why=Refused.UNAVAILABLE)
        harness.wait(2, *members_of("a", 2, owner=OWNER), *members_of("b", 3, owner=OWNER))
        return harness

    @pytest.mark.without("all", why="the story has its own change of leader")
    @pytest.mark.parametrize("change", [Harness.restart, Harness.lead_again])
    @pytest.mark.parametrize("refused", [("a-1", "b-1", "b-2"), ("a-1", "b")])
    def test_a_new_leader_rolls_back_what_stays_bound_in_part(self, change, refused):
        """Regression: the part that was found had only the members that were bound."""
        harness = self.held(*refused)
        change(harness)
        harness.refuse_bind = refusing("b-1", why=Refused.UNAVAILABLE)
        harness.wait(40)
        assert sorted(harness.evicted) == ["default/b-0", "default/b-2"]
        assert settled(harness) == {"a": 2}


class TestAPodGroupOfAPartIsDeleted:
    @pytest.mark.parametrize("seconds", [0, 1, 10])
    def test_and_made_again_what_is_bound_of_it_in_part_is_rolled_back(self, seconds):
        """Regression: without its role nothing of the part was missing, so that it was forgotten."""
        harness = running()
        harness.refuse_bind = refusing("pg3-1")
        harness.wait(5, *members_of("pg3", 3, owner=OWNER))
        harness.delete_foreign(NATIVE, "default/pg3")
        harness.wait(seconds)
        harness.wait(40, leaf("pg3", "root", uid="uid-new"))
        assert settled(harness) == {"pg1": 3, "pg2": 3}


class TestAMinimumIsRaisedAndLowered:
    @pytest.mark.parametrize("lacks", ["room", "members"])
    def test_the_machine_rests_when_a_little_room_appears(self, lacks):
        """Regression: why the raised minimum did not fit was kept, and asked again in every call, for ever."""
        harness = Harness.of(node(cpu=1), inner("root", least=1), leaf("a", "root", age=9, least=1))
        harness.add(leaf("b", "root"), leaf("c", "root"), *members_of("a", 1))
        harness.wait(3, node("n2", cpu=1), pod("rival", group="", cpu=1, node="n2", scheduler="other"))
        harness.wait(3, *members_of("b", 3), *members_of("c", 3))
        harness.wait(3, inner("root", least=2))
        if lacks == "room":
            harness.add(inner("root", least=1))
        else:
            harness.delete("default/b-0", "default/c-0")
        harness.wait(3)
        harness.delete("default/rival")
        harness.wait(30)
        assert bound(harness) == {"a": 1}

    def raised(self, **fields: Any) -> Harness:
        """A gang of three of ours, whose minimum was raised to six; one of the new members is refused."""
        harness = Harness()
        role = "w" if fields else ""
        harness.wait(5, group("a", min_member=3, **fields), node(cpu=9), *pods("a", 3, owner=OWNER, role=role))
        harness.run_pods()
        harness.refuse_bind = refusing("a-4")
        roles = {"roles": (Role("w", min_member=6),)} if fields else {}
        harness.change_spec("default/a", min_member=6, **roles)
        harness.wait(8, *(pod(f"a-{at}", owner=OWNER, created=harness.now, role=role) for at in (3, 4, 5)))
        assert len(harness.bound()) == 5
        return harness

    def all_refused(self) -> Harness:
        """A running gang of three of ours, whose minimum was raised to six; the new members are refused."""
        harness = Harness.waited(5, group("a", min_member=3), node(cpu=9), *pods("a", 3, owner=OWNER))
        harness.run_pods()
        harness.refuse_bind = refusing("a-3", "a-4", "a-5")
        harness.change_spec("default/a", min_member=6)
        harness.add(*(pod(f"a-{at}", owner=OWNER, created=harness.now) for at in (3, 4, 5)))
        return harness

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has its own story below")
    @pytest.mark.parametrize("fields", [{}, {"roles": (Role("w", min_member=3),)}])
    def test_what_it_adds_to_a_group_of_ours_is_rolled_back_alone(self, fields):
        harness = self.raised(**fields)
        harness.wait(40)
        assert sorted(harness.evicted) == ["default/a-3", "default/a-5"]
        harness.end_terminating()
        harness.settle()
        assert sorted(harness.bound()) == ["default/a-0", "default/a-1", "default/a-2"]

    @pytest.mark.without("all", why="the story has its own change of leader")
    @pytest.mark.parametrize("change", [Harness.restart, Harness.lead_again])
    def test_a_new_leader_completes_what_it_adds_and_evicts_nobody(self, change):
        """Nothing tells what a raised minimum adds from members above the former one, so it stays bound."""
        harness = self.raised()
        change(harness)
        harness.wait(40)
        assert harness.evicted == []
        harness.refuse_bind = refusing("nothing")
        harness.wait(300)
        assert len(harness.bound()) == 6

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know the back-off")
    @pytest.mark.parametrize("gone", [[], ["a-5"]])
    def test_lowered_while_it_is_held_back_what_is_still_needed_is_bound(self, gone):
        harness = self.all_refused()
        harness.wait(2)
        harness.refuse_bind = refusing("nothing")
        harness.change_spec("default/a", min_member=5)
        harness.delete(*(f"default/{name}" for name in gone))
        harness.wait(60)
        assert len(harness.bound()) == 6 - len(gone)

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know the back-off")
    def test_a_lost_member_is_replaced_by_others_than_those_that_were_refused(self):
        """Regression: a refused one took its place, and its binding was sent again at once, for ever."""
        harness = self.all_refused()
        harness.wait(2)
        harness.delete("default/a-0")
        harness.wait(30, pod("a-9", owner=OWNER, created=harness.now))
        assert sorted(harness.bound()) == ["default/a-1", "default/a-2", "default/a-9"]

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know the back-off")
    def test_another_run_does_not_wait_for_the_back_off_of_the_last(self):
        """Regression: what the last run could not bind held the quorum of the next one up."""
        harness = self.all_refused()
        harness.wait(200)
        harness.refuse_bind = refusing("nothing")
        harness.delete(*(f"default/a-{at}" for at in range(6)))
        harness.settle()
        harness.wait(5, *(pod(f"a-{at}", owner=OWNER, created=harness.now) for at in range(10, 16)))
        assert len(harness.bound()) == 6

    @pytest.mark.without("all", why="the story has its own change of leader")
    def test_members_above_the_former_minimum_are_not_taken_for_members_that_it_adds(self):
        harness = Harness.waited(5, group("a", min_member=3), node(cpu=4), *pods("a", 4, owner=OWNER))
        harness.run_pods()
        harness.add(*(pod(f"a-{at}", owner=OWNER, created=harness.now) for at in (4, 5)))
        harness.change_spec("default/a", min_member=6)
        harness.wait(5)
        harness.restart()
        harness.wait(60)
        assert len(harness.bound()) == 4
        assert harness.evicted == []


class TestWhatPeopleAreTold:
    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader infers what it can be told of")
    def test_why_members_are_left_in_place_where_there_is_no_condition_degraded(self):
        harness = Harness.of(node(cpu=9), inner("root", least=1), leaf("a", "root"))
        harness.refuse_bind = refusing("a-1")
        harness.wait(35, *members_of("a", 3))
        reason, message = told(harness, "a-1")
        assert reason == "BindingUndone"
        assert "2 members are left in place (a-0: no controller would recreate it)" in message
        assert "Degraded" not in message

    def test_what_a_raised_minimum_lacks_is_named(self):
        harness = Harness()
        harness.add(node(cpu=20), inner("root", least=1), leaf("a", "root", age=9, least=2), leaf("b", "root", least=2))
        harness.wait(5, *members_of("a", 2))
        harness.wait(40, inner("root", least=2), *members_of("b", 1, created=harness.now))
        message = "The minimum was raised from 2 to 4; 2 are bound; missing: 1 member of the group b."
        assert told(harness, "b-0") == ("GangIncomplete", f"CompositePodGroup root: {message}")

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know what was begun together")
    def test_how_many_more_could_not_be_bound_follows_a_minimum_that_is_lowered_meanwhile(self):
        harness = Harness.waited(5, group("a", min_member=3), node(cpu=9), *pods("a", 3, owner=OWNER))
        harness.refuse_bind = refusing("a-4", "a-5", "a-6", why=Refused.UNAVAILABLE)
        harness.change_spec("default/a", min_member=6)
        harness.wait(5, *pods("a", 3, first=3, owner=OWNER))
        harness.delete("default/a-4", "default/a-5")
        harness.change_spec("default/a", min_member=5)
        harness.wait(25, pod("a-6", owner=OWNER))
        assert harness.evicted == ["default/a-3"]
        assert "1 member was bound, and 1 more could not be bound" in told(harness, "a-6")[1]

    def test_how_many_are_left_of_a_part_is_of_what_that_part_had(self):
        """Regression: the number needed was that of another part, of which nothing was bound."""
        harness = Harness.of(node(cpu=9), inner("root", least=1), leaf("b", "root", age=5, least=1), leaf("a", "root"))
        harness.wait(5, *members_of("a", 3))
        harness.run_pods()
        harness.delete("default/a-0")
        harness.wait(5)
        assert harness.gang("default/root").record.satisfied == Minima(3, (("a", 3),))


class TestAMinimumWasRaised:
    """What a group had before is written nowhere, but its condition shows that the spec has changed since."""

    def raised(self, *, parent: str = "") -> Harness:
        harness = Harness()
        above = {"parentCompositePodGroupName": parent} if parent else {}
        spec = lambda least: {"schedulingPolicy": {"gang": {"minCount": least}}} | above  # noqa: E731
        harness.add(node(cpu=4), *([inner(parent, least=1)] if parent else []), read(spec(3), name="g", uid="g"))
        harness.wait(400, *members_of("g", 3, owner=OWNER))
        harness.run_pods()
        seen = next(each.phase for each in harness.foreign.values() if each.key.name == "g")
        assert seen is not None
        changed = read(spec(5), name="g", uid="g", generation=2)
        harness.add(replace(changed, phase=replace(seen, generation=2)))
        harness.wait(60, *members_of("g", 2, first=3, created=harness.now, owner=OWNER))
        assert bound(harness) == {"g": 3}
        return harness

    @pytest.mark.without("all", why="the story has its own restart")
    @pytest.mark.parametrize("parent", ["", "root"])
    @pytest.mark.parametrize("restarted", [False, True])
    def test_the_difference_is_bound_together_or_not_at_all_after_a_restart_too(self, parent, restarted):
        """Regression: after a restart it was taken for members that were lost, and bound one by one."""
        harness = self.raised(parent=parent)
        if restarted:
            harness.restart()
        harness.wait(120)
        assert bound(harness) == {"g": 3}
        harness.wait(30, node("n2", cpu=1))
        assert bound(harness) == {"g": 5}
        assert harness.evicted == []


@pytest.mark.parametrize("on_degraded", [OnDegraded.IGNORE, OnDegraded.RESTART])
def test_a_member_that_a_lowered_minimum_no_longer_asks_for_waits_for_its_back_off(on_degraded):
    """Regression: it was refused again and again without a pause where lost members are not replaced."""
    harness = Harness.waited(5, node(cpu=9), group("a", min_member=2, on_degraded=on_degraded), *pods("a", 2))
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no")
    harness.change_spec("default/a", min_member=3)
    harness.wait(5, *pods("a", 1, first=2))
    harness.change_spec("default/a", min_member=2)
    harness.delete("default/a-0")
    harness.wait(5)
    assert harness.bound() == ["default/a-1"]
