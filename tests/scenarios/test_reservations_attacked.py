"""What may happen to a reservation that nobody had asked about; found by random walks of reservations and preemptions.

A call that is due at once again and again is a failure of every story ("no rest").
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from gangsched.core.contention.asking import Asking
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import EvictPod, PatchStatus
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy, Preemption, Reservations
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.results import BindRefused, EvictionRefused, Refused, Spared
from tests.builders import key, node, pod, pods
from tests.harness import Harness
from tests.preempting import SET, evicted, holder, is_whole
from tests.preempting import gang as members_of_low
from tests.reserving import cluster, finish, gang, places, runs, start, starve

NOT_READY = "node.kubernetes.io/not-ready:NoSchedule"
FULL = tuple(runs(f"p{at}", at, 600 * (at + 1)) for at in range(4))


def overstaying(**pods_with: Any) -> Harness:
    """Places are reserved from 330 s on, where a group has promised to end that restarts when it is degraded."""
    harness = cluster(nodes=3)
    fields = {"owner": SET, **pods_with}
    harness.settle(*gang("word", 3, expected_s=300.0, on_degraded=OnDegraded.RESTART, pods_with=fields))
    starve(harness, *gang("g", 3))
    return harness


def overstaying_alone(size: int) -> Harness:
    """A group of this size waits for two of one member each, which overstay; a budget allows that one leaves."""
    harness = cluster(DisruptionBudget("default", "all", (), allowed=1), nodes=1, cpu=2)
    for name in ("one", "two"):
        harness.settle(*gang(name, 1, expected_s=100.0, pods_with={"owner": SET, "ready": True}))
    starve(harness, *gang("g", size))
    return harness


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_a_holder_whose_own_evictions_are_refused_keeps_its_places():
    """Regression: it lost them with each try to evict, four times a minute, and two Events and writes told it; and a
    group behind it had places reserved and lost them each time.

    Two of three are bound when another pod takes the third node, and a budget keeps them from being evicted.
    """
    harness = cluster(DisruptionBudget("default", "all", (), allowed=0), nodes=4)
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no") if effect.name == "g-2" else None
    )
    harness.add(runs("another", 3, 3000))
    harness.wait(5, *gang("g", 3, pods_with={"owner": SET, "ready": True}))
    harness.run_pods()
    harness.wait(2, runs("other", 2, 2000), *gang("behind", 1))
    harness.wait(100)
    reserved, before = start(harness, "g"), len(harness.effects)
    harness.wait(900)
    told = [each for each in harness.effects[before:] if not isinstance(each, EvictPod)]
    assert (reserved, start(harness, "g")) == (2000.0, 2000.0)
    # The interval of the expected start becomes narrower.
    [narrower] = told
    assert isinstance(narrower, PatchStatus)
    assert narrower.key == key("behind")


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_a_new_leader_reserves_for_nobody_beside_a_holder_whose_members_are_left_in_place():
    """Regression: the holder was not in the line, so that another group reserved nodes that they have in common.

    Two of three are bound when another pod takes the third node; nothing would create them again.
    """
    harness = cluster(nodes=3)
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no") if effect.name == "g-2" else None
    )
    harness.wait(5, *gang("g", 3))
    harness.wait(2, runs("other", 2), *gang("behind", 1))
    harness.wait(100)
    assert (places(harness, "g"), places(harness, "behind")) == (["n2"], [])
    harness.restart()
    harness.wait(300)
    assert (places(harness, "g"), places(harness, "behind")) == (["n2"], [])


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_a_holder_does_not_wait_for_its_own_members_to_end():
    """Regression: once its own promise was over, its reservation expired and was made again every 90 seconds."""
    harness = cluster(DisruptionBudget("default", "all", (), allowed=0), nodes=3)
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no") if effect.name == "g-2" else None
    )
    harness.wait(5, *gang("g", 3, expected_s=300.0, pods_with={"owner": SET, "ready": True}))
    harness.run_pods()
    harness.wait(100, runs("other", 2))
    assert places(harness, "g") == ["n2"]


@pytest.mark.without("all", why="bindings without an answer are read back by a new leader")
def test_a_quorum_that_loses_a_node_while_it_is_bound_reserves_places_for_all():
    """Regression: one place was reserved for the member that had lost its node, and none for the others."""
    full = node("n0", cpu=1)
    harness = cluster(full, node("n1", cpu=5), nodes=0)
    harness.settle(*(runs(f"p{at}", 1, 90) for at in range(2)))
    harness.withhold = lambda effect: effect.name.startswith("g-")
    harness.wait(70, *gang("g", 4))
    harness.wait(15, replace(full, unschedulable=True))
    assert (start(harness, "g"), places(harness, "g")) == (90, ["n1"] * 4)


def test_a_group_starves_for_a_resource_that_no_node_has_yet():
    """Regression: the search for its start failed. A node that is not ready may have the resource."""
    ill = node("ill", taints=["node.kubernetes.io/not-ready:NoSchedule"])
    harness = cluster(ill, runs("other", 0, 900), nodes=1)
    starve(harness, *gang("g", 1, pods_with={"gpu": 1}))
    assert harness.condition("default/g").reason == "Unschedulable"
    assert start(harness, "g") is None
    harness.wait(40, node("ill", gpu=1))
    assert is_whole(harness, "g", 1)


def test_a_group_whose_places_one_before_it_has_reserved_is_told_so():
    """Regression: where the nodes that accept both are all, its places stayed reserved, with a start that was wrong."""
    harness = cluster(*FULL[:2], nodes=2, preempts=False)
    starve(harness, *gang("low", 1))
    assert start(harness, "low") == 600
    starve(harness, *gang("first", 1, priority_class="high"))
    assert (start(harness, "first"), start(harness, "low")) == (600, None)


class TestWhoCannotBeCalledIn:
    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has its own time of degradation")
    def test_one_whose_restart_a_budget_refuses_is_waited_for(self):
        harness = overstaying(ready=True)
        harness.add(DisruptionBudget("default", "all", (), allowed=0))
        harness.delete("default/word-0")
        harness.wait(800)
        assert harness.evicted == []
        harness.wait(60, DisruptionBudget("default", "all", (), allowed=9))
        harness.end_terminating()
        harness.wait(5)
        assert is_whole(harness, "g", 3)

    @pytest.mark.without(
        "restarts", "standbys", why="a new leader goes on with a group that is marked, whatever follows"
    )
    def test_one_whose_budget_allowed_only_a_part_leaves_once_it_allows_all(self):
        """Nothing else happens in the cluster."""
        harness = overstaying(ready=True)
        harness.put_budget(DisruptionBudget("default", "all", (), allowed=1))
        harness.wait(1800)
        assert harness.evicted == []
        assert len(harness.events(Reason.RESERVATION_MOVED)) == 1
        harness.put_budget(DisruptionBudget("default", "all", (), allowed=9))
        harness.wait(60)
        assert evicted(harness) == ["word-0", "word-1", "word-2"]

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader takes them at their word once more")
    def test_several_of_whom_a_budget_allows_only_some_are_waited_for(self):
        """Regression: every five minutes they were taken at their word again, and two Events said what came of it."""
        harness = overstaying_alone(2)
        harness.wait(1800)
        assert harness.evicted == []
        assert len(harness.events(Reason.RESERVATION_MOVED)) == 1
        harness.put_budget(DisruptionBudget("default", "all", (), allowed=2))
        harness.wait(60)
        assert evicted(harness) == ["one-0", "two-0"]

    def test_as_many_leave_as_a_budget_allows_if_that_is_enough(self):
        """Regression: nobody did, because more ended at the same time than had to leave, or only five minutes later."""
        harness = overstaying_alone(1)
        harness.wait(60)
        harness.end_terminating()
        harness.wait(5)
        assert len(harness.evicted) == 1
        assert is_whole(harness, "g", 1)

    def test_who_overstays_where_the_room_of_another_one_is_enough_stays(self):
        """Regression: all did that ended at the same time."""
        harness = overstaying_alone(1)
        harness.remove_budget("default/all")
        harness.wait(60)
        harness.end_terminating()
        harness.wait(60)
        assert len(harness.evicted) == 1
        assert is_whole(harness, "g", 1)

    @pytest.mark.parametrize("cpu", [3, 4])
    def test_only_those_are_called_in_who_use_what_is_missing(self, cpu: int):
        """Regression: where the room of the first was not enough, all were. With 4 CPUs only the port is missing."""
        harness = cluster(nodes=1, cpu=cpu)
        for name, ports in (("one", []), ("three", []), ("two", [80])):
            harness.settle(*gang(name, 1, expected_s=100.0, pods_with={"owner": SET, "host_ports": ports}))
        starve(harness, *gang("g", 1, pods_with={"host_ports": [80]}))
        harness.wait(60)
        assert evicted(harness) == ["two-0"]
        harness.end_terminating()
        harness.wait(5)
        assert is_whole(harness, "g", 1)

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has its own time of degradation")
    def test_nobody_who_could_stay_is_called_in_while_another_one_is_waited_for(self):
        """Regression: as it would not have sufficed that all the others leave, all did.

        A group of two that needs two nodes waits for one of two on the first node, and for a group on the second one
        that is to restart and may not be evicted yet.
        """
        harness = cluster(node("apart", cpu=2, taints=["x:NoSchedule"]), nodes=2, cpu=2)
        for name in ("one", "two"):
            harness.settle(*gang(name, 1, expected_s=100.0, pods_with={"owner": SET}))
        fields = {"owner": SET, "cpu": 2, "tolerations": [""]}
        harness.settle(*gang("word", 2, expected_s=100.0, on_degraded=OnDegraded.RESTART, pods_with=fields))
        harness.refuse_eviction = lambda effect: (
            EvictionRefused(effect.uid, Spared.BUDGET, "no") if effect.name.startswith("word") else None
        )
        starve(harness, *gang("g", 2, pods_with={"host_ports": [80]}))
        assert places(harness, "g") == ["n0", "n1"]
        harness.wait(30)
        harness.delete(next(f"default/{pod.name}" for pod in harness.pods.values() if pod.node == "apart"))
        harness.wait(60)
        assert evicted(harness) == ["one-0"]

    def test_what_is_asked_about_those_who_overstay_does_not_grow_with_their_number(self):
        """Regression: two questions for each, about as many nodes: a call took seconds."""
        harness = cluster(nodes=20)
        for at in range(20):
            harness.settle(*gang(f"word-{at}", 1, expected_s=100.0, pods_with={"owner": SET}))
        starve(harness, *gang("g", 20))
        with mock.patch.object(Asking, "suffices", autospec=True, side_effect=Asking.suffices) as suffices:
            harness.wait(60)
        assert len(harness.evicted) == 20
        assert suffices.call_count == 1

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader knows of no refusal")
    def test_one_whose_evictions_were_refused_is_asked_again_after_some_minutes(self):
        """Nothing else happens in the cluster."""
        harness = overstaying()
        harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.FORBIDDEN, "no")
        harness.wait(300)
        assert harness.evicted == []
        harness.refuse_eviction = lambda _: None
        harness.wait(400)
        assert evicted(harness) == ["word-0", "word-1", "word-2"]

    def test_members_of_the_group_itself_are_waited_for(self):
        harness = cluster(nodes=3)
        harness.settle(*gang("word", 2, expected_s=200.0, pods_with={"owner": SET}), runs("p", 2))
        harness.change_spec("default/word", min_member=3)
        harness.wait(670, *pods("word", 1, first=2, owner=SET))
        assert harness.evicted == []

    @pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has its own time of degradation")
    def test_one_whose_evictions_are_accepted_and_not_shown_yet_is_waited_for(self):
        harness = overstaying()
        harness.wait(235)
        harness.eviction_is_shown_after_s = lambda _: 20.0
        harness.delete("default/word-0")
        harness.wait(60)
        assert sorted(harness.evicted) == ["default/word-1", "default/word-2"]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader begins without a token")
def test_a_reservation_that_preemption_may_replace_waits_until_others_may_be_evicted_again():
    """The next token comes 10 s after the budgets are known, and something else changes before."""
    slow, eager = Preemption(victims_per_minute=6), Reservations(starvation_age_s=20.0)
    harness = Harness(Policy(preemption=slow, reservations=eager))
    harness.put_class("high", 100)
    harness.hide_budgets("403")
    harness.add(node("n1", cpu=2), node("n2", cpu=1, taints=["x:NoSchedule"]))
    harness.wait(5, *members_of_low("low", 2, pods_with={"node": "n1"}))
    harness.wait(25, *holder(2))
    harness.show_budgets()
    harness.wait(60, pod("other", group="", node="n2", scheduler="x", tolerations=[""]))
    harness.end_terminating()
    harness.wait(5)
    assert is_whole(harness, "high", 2)


class TestALimitThatIsGivenToAWaitingPod:
    """As the condition NotBeforeReservation advises."""

    @pytest.mark.parametrize("limit", [{"deadline_s": 60}, {"expected_s": 60.0}])
    def test_lets_it_use_reserved_nodes(self, limit):
        harness = cluster(*FULL)
        starve(harness, *gang("g", 4))
        finish(harness, "default/p0")
        harness.wait(5, *gang("late", 1))
        assert harness.condition("default/late").reason == "NotBeforeReservation"
        waiting = harness.pod("default/late-0")
        harness.wait(5, replace(waiting, lifetime=replace(waiting.lifetime, **limit)))
        assert harness.bound("default/late") == ["default/late-0"]

    def test_does_not_contradict_what_is_reserved_for_it(self):
        harness = cluster(*FULL)
        harness.wait(5, *gang("g", 3))
        waiting = harness.pod("default/g-0")
        harness.wait(70, replace(waiting, lifetime=replace(waiting.lifetime, expected_s=60.0)))
        assert start(harness, "g") == 1800


def test_one_that_ends_before_the_start_is_bound_though_the_holder_goes_at_the_same_time():
    harness = cluster(runs("p", 0, 600), nodes=1, cpu=2)
    starve(harness, *gang("g", 1, pods_with={"cpu": 2}))
    assert start(harness, "g") == 600
    harness.delete("default/g-0")
    harness.add(pod("short", group="", deadline_s=60))
    harness.settle()
    assert harness.pod("default/short").node == "n0"
    assert not harness.machine.cluster.ledger.reserved
    assert harness.machine.take_faults() == []


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize(
    ("change", "reserved"),
    [({"min_member": 3}, ["n0", "n1", "n2"]), ({"topology": Topology("zone", required=True)}, ["n0", "n2"])],
    ids=["minimum", "topology"],
)
def test_what_is_reserved_follows_a_changed_spec(change: dict[str, Any], reserved: list[str], *, leads: bool):
    """Regression: if nobody led meanwhile, too few places stayed reserved, or in two zones, with a wrong start."""
    harness = cluster(nodes=0)
    harness.add(*(node(f"n{at}", cpu=1, labels={"zone": "xyx"[at]}) for at in range(3)), *FULL[:3])
    harness.settle()
    starve(harness, *gang("g", 2))
    assert start(harness, "g") == 1200
    harness.add(pod("g-2", group="g"))
    harness.settle()
    harness.change_spec("default/g", **change)
    if not leads:
        harness.restart()
    harness.wait(15)
    assert (start(harness, "g"), places(harness, "g")) == (1800, reserved)


def test_too_few_places_of_a_former_leader_do_not_wait_for_a_node_that_is_not_ready():
    """Regression: they stayed reserved for 30 s, as all places do that a node takes with it which may be back soon."""
    harness = cluster(*FULL)
    starve(harness, *gang("g", 2))
    assert places(harness, "g") == ["n0", "n1"]
    harness.change_spec("default/g", min_member=3)
    harness.add(pod("g-2", group="g"), node("n0", cpu=1, taints=[NOT_READY]))
    harness.restart()
    harness.wait(5)
    assert places(harness, "g") == ["n1", "n2", "n3"]


@pytest.mark.parametrize("leads", [True, False])
def test_nothing_stays_reserved_for_a_group_that_can_never_fit_any_more(*, leads: bool):
    """Regression: if its minimum was raised while nobody led, the places of the former one stayed reserved."""
    harness = cluster(*FULL[:2], nodes=2)
    starve(harness, *gang("g", 2, pods_with={"host_ports": [80]}))
    assert places(harness, "g") == ["n0", "n1"]
    harness.change_spec("default/g", min_member=3)
    harness.add(pod("g-2", group="g", host_ports=[80]))
    if not leads:
        harness.restart()
    harness.wait(15)
    assert (harness.condition("default/g").reason, places(harness, "g")) == ("NeverFits", [])


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know a promise that is deleted")
def test_who_deletes_a_promise_is_called_in_all_the_same():
    """Regression: a group that used reserved nodes stayed there for ever once its PodGroup was deleted."""
    harness = cluster(runs("p0", 0, 600), runs("p1", 1, 900), nodes=2)
    starve(harness, *gang("g", 2))
    finish(harness, "default/p0")
    harness.wait(3, *gang("word", 1, expected_s=300.0, pods_with={"owner": SET}))
    harness.delete_group("default/word")
    harness.wait(850)
    assert evicted(harness) == []
    finish(harness, "default/p1")
    assert evicted(harness) == ["word-0"]
    harness.end_terminating()
    harness.wait(5)
    assert is_whole(harness, "g", 2)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know how places were lost")
def test_room_that_another_scheduler_takes_is_not_said_to_be_a_groups():
    """Regression: a group before it in the order was said to have taken the places, which a foreign pod had."""
    harness = cluster(runs("p0", 0, 600), runs("p1", 1, 900), nodes=2)
    starve(harness, *gang("g", 2))
    finish(harness, "default/p0")
    harness.wait(60, pod("other", group="", scheduler="default-scheduler", node="n0", deadline_s=3000))
    assert "another scheduler" in harness.events("ReservationMoved")[-1].note


def test_the_rest_of_a_quorum_whose_other_bindings_are_under_way_is_not_all_that_is_reserved():
    """Regression: once these were withdrawn the group waited as a whole, and a place for one of two stayed reserved.

    A binding is not answered when the node of another one, which is refused so far, is cordoned.
    """
    harness = cluster(*(runs(f"p{at}", at, 600) for at in range(3)), nodes=3)
    starve(harness, *gang("g", 2))
    harness.withhold = lambda effect: effect.name == "g-0"
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no")
    finish(harness, "default/p0", "default/p1")
    # It is looked at again.
    harness.wait(15)
    harness.add(node(harness.machine.cluster.node_of("uid-default/g-1"), cpu=1, unschedulable=True))
    harness.wait(15)
    assert (start(harness, "g"), len(places(harness, "g"))) == (600, 2)
