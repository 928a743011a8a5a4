"""A fault in one gang parks that gang and no other (design rule 7): exceptions are injected at each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from gangsched.core import placing, upkeep
from gangsched.core.autoscaling import scaling
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.ledger import Ledger
from gangsched.core.gang import bindings, clock, making, recovery
from gangsched.core.membership import rechecking
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.faults import Fault, FaultyStep, Rebuilt
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.queueing import admission, queue
from gangsched.core.status.writer import StatusWriter
from tests.builders import group, node, pod, pods
from tests.harness import Harness

pytestmark = pytest.mark.faults

SET = Owner(kind="StatefulSet", api_group="apps", name="s", uid="uid-s")


class EvilError(Exception):
    """The exception that the injected faults raise."""


@dataclass
class Injector:
    """Makes calls that concern group `a` fail, from the next call until it is disarmed."""

    monkeypatch: pytest.MonkeyPatch
    armed: bool = True
    times: int = 0
    after: bool = False
    names: tuple[str, ...] = field(default=("default/a",))

    def at(self, place: Place) -> None:
        self.into(place.owner, place.name, after=place.after, when=place.when)

    def into(self, owner: Any, name: str, *, after: bool = False, when: Callable[..., bool] | None = None) -> None:
        """Make the function raise, before or after its work, in calls that concern the group."""
        real = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            hit = self.armed and (when(*args, **kwargs) if when is not None else self._concerns(args))
            if hit and not after:
                self.fail()
            result = real(*args, **kwargs)
            if hit:
                self.fail()
            return result

        self.monkeypatch.setattr(owner, name, call)

    def fail(self) -> None:
        self.times += 1
        raise EvilError("no\nsuch thing")

    def _concerns(self, args: tuple[Any, ...]) -> bool:
        for arg in args:
            found = getattr(arg, "key", arg)
            if str(found) in self.names:
                return True
            if any(str(getattr(each, "name", "")).startswith("a-") for each in getattr(arg, "members", ())):
                return True
        return False


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> Injector:
    return Injector(monkeypatch)


@dataclass(frozen=True)
class Place:
    """Where a call fails, and in which step of the machine that is."""

    owner: Any
    name: str
    step: FaultyStep
    after: bool = False
    when: Callable[..., bool] | None = None


STEPS = {
    "in reconcile": Place(upkeep, "reconcile", FaultyStep.UPKEEP),
    "after the effects are decided": Place(upkeep, "reconcile", FaultyStep.UPKEEP, after=True),
    "while its deadlines are looked up": Place(making, "due", FaultyStep.UPKEEP),
    "in the queue": Place(placing.Placing, "_quorum", FaultyStep.CYCLE),
    "in place": Place(placing, "place", FaultyStep.CYCLE),
    "after it has places on the snapshot": Place(placing, "place", FaultyStep.CYCLE, after=True),
    "before its bindings": Place(bindings, "begin", FaultyStep.CYCLE),
    "after its places are assumed on the cluster": Place(bindings, "begin", FaultyStep.CYCLE, after=True),
    # Two places are assumed, and one of the two belongs to no binding.
    "amid its bindings": Place(
        Cluster, "assume", FaultyStep.CYCLE, after=True, when=lambda _cluster, uid, *_: uid == "uid-default/a-1"
    ),
}
LATER = {
    "before its status is scheduled": Place(StatusWriter, "schedule", FaultyStep.STATUS),
    "before its status is written": Place(StatusWriter, "write", FaultyStep.STATUS),
}
"""Steps that follow the one that decides bindings; those bindings are sent despite the fault."""


def in_reconcile(injector: Injector) -> None:
    injector.at(STEPS["in reconcile"])


def assumed(harness: Harness, prefix: str) -> list[str]:
    """Members without a node whose place on one is assumed."""
    cluster = harness.machine.cluster
    return [
        found.name
        for uid, found in cluster.pods.items()
        if not found.node and cluster.node_of(uid) and found.name.startswith(prefix)
    ]


def steps(harness: Harness) -> list[FaultyStep]:
    """The steps that have failed since the last call."""
    return [found.step for found in harness.machine.take_faults() if isinstance(found, Fault)]


def two_groups() -> Harness:
    """Two groups with room for both; `a` comes first in the order."""
    both = group("a", min_member=3), group("b", min_member=3, created=1.0)
    return Harness.of(node("n1", cpu=8), *both, *pods("a", 3), *pods("b", 3))


@pytest.mark.parametrize("place", STEPS.values(), ids=STEPS)
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_fault_parks_the_group_says_so_and_the_others_go_on(injector, place):
    injector.at(place)
    harness = two_groups()
    harness.wait(2)
    assert harness.bound("default/a") == []
    assert harness.bound("default/b") == ["default/b-0", "default/b-1", "default/b-2"]
    condition = harness.condition("default/a")
    assert (condition.status, condition.reason) == (False, "InternalError")
    assert "gangsched failed with EvilError while" in condition.message
    assert "log and report it." in condition.message
    assert "no\nsuch" not in condition.message
    assert harness.status("default/a").phase == "Pending"
    assert {harness.pod(f"default/a-{n}").condition_reason for n in range(3)} == {"InternalError"}
    assert [each.name for each in harness.emitted if each.reason == "InternalError"] == ["a"]
    assert assumed(harness, "a") == []
    (found,) = harness.machine.take_faults()
    assert isinstance(found, Fault)
    assert (found.gang, found.step, type(found.error), found.parked_s) == ("default/a", place.step, EvilError, 60.0)
    assert injector.times == 1
    harness.wait(30)
    assert injector.times == 1
    assert harness.condition("default/b").reason == "Scheduled"


@pytest.mark.parametrize("place", LATER.values(), ids=LATER)
@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_what_is_with_the_api_server_when_a_step_fails_is_awaited_and_makes_the_group_whole(injector, place):
    injector.at(place)
    harness = two_groups()
    harness.wait(2)
    assert len(harness.bound("default/a")) == len(harness.bound("default/b")) == 3
    assert steps(harness) == [place.step]
    assert injector.times == 1
    assert harness.evicted == []
    scheduled, degraded = harness.condition("default/a"), harness.condition("default/a", "Degraded")
    assert (scheduled.status, scheduled.reason) == (True, "Scheduled")
    assert (degraded.status, degraded.reason) == (True, "InternalError")
    assert harness.status("default/a").scheduled_time
    injector.armed = False
    harness.wait(70)
    assert harness.condition("default/a", "Degraded").reason == "Healthy"
    assert harness.evicted == []


@pytest.mark.parametrize("place", STEPS.values(), ids=STEPS)
@pytest.mark.without("restarts", why="a new leader tries a parked group at once")
def test_a_parked_group_is_tried_again_once_its_spec_changes(injector, place):
    injector.at(place)
    harness = two_groups()
    harness.wait(2)
    injector.armed = False
    harness.wait(10)
    assert harness.bound("default/a") == []
    harness.change_spec("default/a", max_schedule_time_s=50.0)
    harness.wait(1)
    assert len(harness.bound("default/a")) == 3
    assert harness.condition("default/a").reason == "Scheduled"
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_parked_group_is_tried_again_once_its_members_change_ever_less_soon(injector):
    injector.into(placing, "place")
    harness = two_groups()
    harness.wait(2, node("n2", cpu=100))
    moments = []
    for number in range(3, 60):
        harness.add(pod(f"a-{number}"))
        before = injector.times
        harness.wait(2)
        if injector.times > before:
            moments.append(number)
    assert len(moments) <= 6
    assert injector.times == 1 + len(moments)
    injector.armed = False
    harness.wait(61, pod("a-60"))
    assert len(harness.bound("default/a")) >= 3


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_the_time_for_which_it_is_parked_doubles_and_ends(injector):
    injector.into(placing, "place")
    harness = two_groups()
    harness.wait(59)
    assert injector.times == 1
    harness.wait(2)
    assert injector.times == 2
    assert "for 2m" in harness.condition("default/a").message
    harness.wait(118)
    assert injector.times == 2
    injector.armed = False
    harness.wait(3)
    assert len(harness.bound("default/a")) == 3


@pytest.mark.without("all", why="counts the calls of one machine")
def test_gangs_that_fail_while_they_are_placed_do_not_end_the_cycle_of_those_behind_them(injector):
    injector.names = tuple(f"default/a-{number}" for number in range(30))
    injector.into(placing, "place")
    harness = Harness.of(node("n1", cpu=100))
    for number in range(30):
        harness.add(group(f"a-{number}", min_member=2), *pods(f"a-{number}", 2))
    harness.add(group("b", min_member=2, created=9.0), *pods("b", 2))
    effects = harness.step()
    assert injector.times == 30
    assert [effect.uid for effect in effects if isinstance(effect, BindPod)] == ["uid-default/b-0", "uid-default/b-1"]


# Partly bound


def partly_bound(*, owner: Owner | None = SET) -> Harness:
    """Two members of group a are bound and the third is refused for now; b arrives later."""
    harness = Harness()
    owned = pods("a", 3, owner=owner)
    harness.add(node("n1", cpu=8), group("a", min_member=3), *owned)
    refused = Refused.UNAVAILABLE
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, refused, "not now") if effect.name == "a-2" else None
    )
    harness.settle()
    assert len(harness.bound("default/a")) == 2
    return harness


@pytest.mark.parametrize(
    "place",
    [STEPS["in reconcile"], STEPS["after the effects are decided"], LATER["before its status is scheduled"]],
    ids=["in reconcile", "after reconcile", "in the status"],
)
@pytest.mark.without("restarts", "standbys", why="a new leader tries a parked group at once")
def test_a_group_that_fails_while_a_part_of_it_is_bound_is_rolled_back_without_a_plan(injector, place):
    harness = partly_bound()
    injector.at(place)
    harness.wait(5, group("b", min_member=6, created=5.0), *pods("b", 6))
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]
    assert assumed(harness, "a") == []
    status = harness.status("default/a")
    assert status.reservation is None
    assert "its bound members are evicted" in harness.condition("default/a").message
    harness.end_terminating()
    harness.wait(2, *pods("a", 2, owner=SET, uid=""))
    assert harness.bound() == [f"default/b-{n}" for n in range(6)]
    assert harness.status("default/a").phase == "Pending"
    assert injector.times == 1


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_member_that_is_left_in_place_and_goes_while_its_group_is_parked_is_forgotten(injector):
    harness = partly_bound(owner=None)
    in_reconcile(injector)
    harness.change("default/a-0", labels=(("x", "y"),))
    harness.wait(2)
    harness.delete("default/a-0")
    harness.wait(2)
    assert (harness.bound(), harness.evicted) == (["default/a-1"], [])
    assert harness.machine.validate() == []


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_group_that_fails_before_anything_says_its_minimum_does_not_count_as_scheduled(injector):
    harness = Harness.waited(2, node("n1", cpu=8), pod("a-0", node="n1"), *pods("a", 2, first=1))
    in_reconcile(injector)
    harness.change("default/a-0", labels=(("x", "y"),))
    harness.wait(2)
    injector.armed = False
    harness.wait(2, group("a", min_member=4))
    assert harness.condition("default/a").reason == "GangIncomplete"
    assert harness.bound() == ["default/a-0"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_group_that_fails_is_rolled_back_in_time_though_one_of_its_bindings_is_never_answered(injector):
    harness = Harness()
    harness.withhold = lambda effect: effect.name == "a-2"
    harness.settle(node("n1", cpu=8), group("a", min_member=3), *pods("a", 3, owner=SET))
    assert len(harness.bound("default/a")) == 2
    in_reconcile(injector)
    harness.change("default/a-0", labels=(("x", "y"),))
    harness.wait(2)
    assert harness.evicted == []
    harness.wait(Policy().repair_deadline_s)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", why="a new leader tries a parked group at once")
def test_a_scheduled_group_that_fails_keeps_its_members_and_is_repaired_once_it_is_tried_again(injector):
    harness = two_groups()
    harness.wait(2)
    in_reconcile(injector)
    harness.delete("default/a-0")
    harness.wait(10, pod("a-9"))
    assert harness.bound("default/a") == ["default/a-1", "default/a-2"]
    assert harness.evicted == []
    assert harness.condition("default/a").status
    assert harness.condition("default/a", "Degraded").reason == "InternalError"
    injector.armed = False
    harness.wait(60)
    assert harness.bound("default/a") == ["default/a-1", "default/a-2", "default/a-9"]
    assert harness.condition("default/a", "Degraded").reason == "Healthy"


def test_an_answer_that_fails_is_not_lost_and_its_group_is_rolled_back_or_whole(injector):
    injector.into(bindings, "note_bound")
    harness = two_groups()
    harness.wait(5)
    assert len(harness.bound("default/b")) == 3
    assert len(harness.bound("default/a")) == 3
    assert assumed(harness, "") == []
    injector.armed = False
    harness.wait(200)
    assert harness.condition("default/a").reason == "Scheduled"
    assert harness.condition("default/a", "Degraded").reason == "Healthy"


# Events and results


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_change_of_a_spec_or_a_pod_that_fails_is_known_all_the_same(injector, listed):
    harness = Harness()
    harness.wait(2, node("n1", cpu=1), group("a", min_member=2), *pods("a", 2), group("b", min_member=1, created=5.0))
    injector.into(clock, "reset_back_off")
    harness.change_spec("default/a", min_member=1)
    harness.add(*pods("b", 1))
    if listed:
        harness.inbox = harness.lists()
    harness.wait(2)
    assert harness.bound() == ["default/b-0"]
    known = harness.gang("default/a").observed.group
    assert known is not None
    assert known.spec == harness.group("default/a").spec
    assert harness.condition("default/a").reason == "InternalError"
    harness.add(node("n2", cpu=1))
    injector.armed = False
    harness.wait(61)
    assert len(harness.bound("default/a")) == 1


@pytest.mark.without("restarts", why="a new leader tries a parked group at once")
def test_a_group_whose_status_cannot_be_taken_over_does_not_keep_a_new_leader_from_leading(injector):
    harness = two_groups()
    harness.wait(2)
    injector.into(recovery, "resume")
    harness.restart()
    harness.wait(2, group("c", min_member=2, created=9.0), *pods("c", 2))
    assert len(harness.bound("default/c")) == 2
    assert harness.condition("default/a", "Degraded").reason == "InternalError"
    assert harness.condition("default/a").status
    assert steps(harness) == [FaultyStep.RECOVERY]
    injector.armed = False
    harness.wait(61)
    assert harness.condition("default/a", "Degraded").reason == "Healthy"
    assert harness.evicted == []


# The ledger


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_accounts_that_a_fault_leaves_wrong_are_made_anew_from_what_was_observed(injector):
    """The fault comes in the middle of counting. What b holds and has in flight, and which pods are bound, is kept."""
    harness = Harness()
    harness.withhold = lambda effect: effect.name.startswith("c")
    harness.wait(2, node("n1", cpu=9), group("c", min_member=3), *pods("c", 3), group("b", min_member=3), *pods("b", 3))
    injector.into(Ledger, "_take", when=lambda _ledger, claim: claim.pod.uid == "uid-default/a-1")
    harness.add(group("a", min_member=2), *pods("a", 2), group("d", min_member=1, created=-1.0), *pods("d", 1))
    harness.step()
    assert not any(isinstance(effect, BindPod) for effect in harness.history[-1][2])
    harness.wait(2)
    assert harness.bound("default/d") == ["default/d-0"]
    sent = [effect.name for effect in harness.effects if isinstance(effect, BindPod)]
    assert sorted(name for name in sent if name.startswith("c")) == ["c-0", "c-1", "c-2"]
    rebuilt = [found for found in harness.machine.take_faults() if isinstance(found, Rebuilt)]
    assert len(rebuilt) == 1
    assert harness.machine.validate() == []
    assert harness.condition("default/a").reason == "InternalError"
    assert sorted(assumed(harness, "")) == ["c-0", "c-1", "c-2"]
    harness.send_withheld()
    harness.wait(2)
    assert harness.bound("default/c") == [f"default/c-{n}" for n in range(3)]
    assert harness.condition("default/c").reason == "Scheduled"
    injector.armed = False
    harness.wait(61)
    assert len(harness.bound("default/a")) == 2


def test_accounts_that_stay_wrong_end_the_process(injector, monkeypatch):
    injector.into(placing, "place")
    harness = two_groups()
    monkeypatch.setattr(Cluster, "validate", lambda _: ["two and two are five"])
    with pytest.raises(EvilError):
        harness.machine.handle(harness.inbox, harness.now)
    assert [type(found) for found in harness.machine.take_faults()] == [Fault, Rebuilt]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_a_fault_while_a_place_on_a_worse_node_is_looked_at_parks_that_group_alone(injector):
    harness = two_groups()
    harness.withhold = lambda _: True
    harness.wait(1)
    injector.into(rechecking, "classify", when=lambda _snapshot, members, *_: members[0].name.startswith("a-"))
    harness.wait(1, pod("x", group="", scheduler="other", node="n1"))
    assert steps(harness) == [FaultyStep.UPKEEP]
    assert harness.condition("default/a").reason == "InternalError"
    assert len(assumed(harness, "a")) == 3
    harness.send_withheld()
    harness.wait(1)
    assert len(harness.bound("default/a")) == len(harness.bound("default/b")) == 3


@pytest.mark.without("restarts", why="a new leader tries a parked group at once")
def test_a_fault_while_it_is_found_out_what_nodes_a_group_lacks_parks_that_group_alone(injector):
    harness = Harness()
    harness.serve_demands()
    harness.add(node("n1", cpu=1), group("a", min_member=2), *pods("a", 2))
    injector.into(scaling, "pool_demands", when=lambda *_, members, **__: members[0].name.startswith("a-"))
    harness.wait(2)
    assert steps(harness) == [FaultyStep.DEMAND]
    assert harness.condition("default/a").reason == "InternalError"
    harness.wait(2, group("b", min_member=1), *pods("b", 1))
    assert harness.bound() == ["default/b-0"]


@pytest.mark.parametrize("owner", [admission.Admission, queue.Queue], ids=["upkeep", "cycle"])
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries a parked group at once")
def test_what_a_step_had_decided_before_it_failed_is_not_sent(injector, owner):
    """One binding is due for a retry and one was just decided; each is in the list of effects when the step fails."""
    if owner is queue.Queue:
        injector.into(queue.Queue, "tried", after=True, when=lambda _queue, found, _gang: str(found.key) == "default/a")
        harness = two_groups()
    else:
        harness = Harness()
        harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "not now")
        harness.settle(node("n1", cpu=8), group("a", min_member=3), *pods("a", 3))
        harness.refuse_bind = lambda _: None
        injector.into(owner, "admits", when=lambda _admission, gang, *_: str(gang.key) == "default/a")
    harness.wait(5)
    assert injector.times == 1
    assert harness.bound("default/a") == []
    assert assumed(harness, "a") == []
