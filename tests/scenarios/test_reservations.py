"""Places that are reserved for a group that has waited for long, and who may use them until then."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.contention import departing
from gangsched.core.objects.declaration import GroupKey, Topology
from gangsched.core.objects.devices import AllocatedDevice, Allocation
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import EvictPod
from gangsched.core.objects.pod import Lifetime, Owner
from gangsched.core.objects.podgroup import ForeignGroup, TimeoutPolicy
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.shape import HostPort, Requirement
from gangsched.core.objects.workload import SERIES_OF, WorkloadFacts
from gangsched.core.planning import budget as units
from tests.builders import group, node, pod, pods
from tests.gadgets import DRIVER, GPUS, device_claim, gpus
from tests.harness import START, Course, Harness
from tests.preempting import SET, holder, is_whole, record
from tests.reserving import AGE_S, GRACE_S, cluster, finish, gang, places, runs, start, starve

FULL = tuple(runs(f"p{at}", at, 100 * (at + 1)) for at in range(4))


def test_a_group_that_has_waited_for_long_gets_the_earliest_places_that_others_leave():
    harness = cluster(*FULL)
    harness.wait(40, *gang("g", 3))
    assert start(harness, "g") is None
    harness.wait(21)
    assert start(harness, "g") == 300
    assert places(harness, "g") == ["n0", "n1", "n2"]
    assert harness.condition("default/g").reason == "ReservedLater"
    kept = harness.status("default/g").reservation
    assert kept is not None
    assert kept.kind == "Time"


def test_without_a_reservation_small_pods_starve_a_group_and_with_one_they_do_not():
    for age_s, bound in ((0.0, False), (60.0, True)):
        harness = cluster(*FULL, starvation_age_s=age_s)
        starve(harness, *gang("g", 3))
        for at in range(4):
            harness.add(pod(f"q{at}", group="", deadline_s=900))
        for at in range(4):
            finish(harness, f"default/p{at}")
            harness.wait(5)
        assert is_whole(harness, "g", 3) is bound


def test_who_will_have_ended_by_then_uses_reserved_places():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    finish(harness, "default/p0")
    harness.wait(5, pod("late", group="", deadline_s=400))
    assert harness.bound("default/late") == []
    harness.wait(5, pod("short", group="", deadline_s=60))
    assert harness.bound("default/short") == ["default/short"]
    assert start(harness, "g") == 300
    finish(harness, "default/p1", "default/p2")
    harness.wait(5)
    assert not is_whole(harness, "g", 3)
    finish(harness, "default/short")
    harness.wait(5)
    assert is_whole(harness, "g", 3)


@pytest.mark.parametrize(("limit_s", "waits_first"), [(None, True), (150, False)])
def test_who_ends_in_time_is_not_held_up_by_one_like_it_ahead_of_it_that_does_not(limit_s, waits_first):
    """The one ahead was refused like the other: before anything was reserved, or when it would have ended in time."""
    harness = cluster(*FULL, preempts=False)
    alike = (*gang("long", 1, pods_with={"deadline_s": limit_s}), *gang("short", 1, pods_with={"deadline_s": 60}))
    starve(harness, *gang("g", 3), *(alike if waits_first else ()))
    harness.wait(100, *(() if waits_first else alike))
    finish(harness, "default/p0")
    harness.wait(5)
    assert start(harness, "g") == 300
    assert not is_whole(harness, "long", 1)
    assert is_whole(harness, "short", 1)


def test_who_ends_in_time_once_a_start_has_moved_is_not_held_up_by_one_like_it_that_does_not():
    harness = cluster(
        *(runs(f"p{at}", at, ends_in) for at, ends_in in enumerate((100, 200, 300, 5000))), preempts=False
    )
    starve(harness, *gang("g", 3))
    harness.wait(5, *gang("long", 1), *gang("short", 1, pods_with={"deadline_s": 600}))
    harness.delete("default/p1")
    harness.delete_node("n1")
    harness.wait(20)
    assert start(harness, "g") == 5000
    finish(harness, "default/p0")
    harness.wait(5)
    assert not is_whole(harness, "long", 1)
    assert is_whole(harness, "short", 1)


def test_room_that_more_leave_for_a_holder_is_used_at_once():
    harness = cluster(runs("ends", 0, 300), runs("stays", 0), nodes=1, cpu=3, preempts=False)
    starve(harness, *gang("g", 2))
    harness.wait(5, *gang("late", 1))
    assert harness.condition("default/late").reason == "NotBeforeReservation"
    harness.change("default/stays", terminating=True, gone_by=START + 300)
    # A reservation is looked at again after ten seconds at the latest.
    harness.wait(11)
    assert start(harness, "g") is not None
    assert is_whole(harness, "late", 1)


def test_who_is_kept_off_is_told_by_when_it_must_end():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    finish(harness, "default/p0")
    harness.wait(5, *gang("late", 1))
    said = harness.condition("default/late")
    assert said.reason == "NotBeforeReservation"
    harness.change_spec("default/late", expected_s=60.0)
    harness.wait(5)
    assert is_whole(harness, "late", 1)


def test_a_group_starts_where_there_is_room_earlier():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 1))
    assert places(harness, "g") == ["n0"]
    finish(harness, "default/p3")
    harness.wait(5)
    assert is_whole(harness, "g", 1)
    assert not harness.machine.plans


@pytest.mark.without("restarts", why="a new leader looks at it again, but only after some seconds")
def test_a_start_moves_only_to_an_earlier_time():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    harness.wait(30, node("n4", cpu=1), runs("p4", 4, 50))
    assert start(harness, "g") == 200
    harness.wait(30, runs("p0", 0, 9999))
    assert start(harness, "g") == 200


@pytest.mark.without("restarts", why="a new leader looks at it again, but only after some seconds")
def test_a_start_does_not_move_while_others_stay_longer_than_their_limits():
    harness = cluster(*FULL, runs("p4", 4), nodes=5)
    starve(harness, *gang("g", 3))
    finish(harness, "default/p0", "default/p1")
    harness.wait(260)
    harness.wait(15, runs("p5", 4, cpu=0))
    assert start(harness, "g") == 300
    finish(harness, "default/p2")
    harness.wait(5)
    assert is_whole(harness, "g", 3)


def test_a_promise_that_is_overdue_is_called_in_whole_once_nothing_else_is_waited_for():
    harness = cluster(nodes=4)
    harness.settle(*gang("word", 2, expected_s=300.0, priority=50))
    harness.add(runs("p2", 2, 100), runs("p3", 3, 200))
    starve(harness, *gang("g", 3))
    assert start(harness, "g") == 330
    finish(harness, "default/p2")
    harness.wait(200)
    assert harness.evicted == []
    finish(harness, "default/p3")
    harness.wait(10)
    assert harness.evicted == []
    harness.wait(60)
    assert sorted(harness.evicted) == ["default/word-0", "default/word-1"]
    harness.end_terminating()
    harness.wait(5)
    assert is_whole(harness, "g", 3)


def test_places_are_reserved_where_nobody_knows_when_others_end():
    harness = cluster(*(runs(f"p{at}", at) for at in range(4)))
    starve(harness, *gang("g", 3))
    assert start(harness, "g") == float("inf")
    kept = places(harness, "g")
    for at, on in enumerate(kept):
        finish(harness, f"default/p{on[1:]}")
        harness.wait(5, pod(f"q{at}", group="", deadline_s=60))
        assert harness.bound(f"default/q{at}") == []
    assert is_whole(harness, "g", 3)


def test_who_is_before_the_holder_in_the_order_is_not_kept_off():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    finish(harness, "default/p0")
    harness.wait(15, *gang("first", 1, priority=10))
    assert is_whole(harness, "first", 1)
    assert start(harness, "g") == 400
    assert places(harness, "g") == ["n1", "n2", "n3"]


def test_two_groups_reserve_only_in_pools_that_have_no_node_in_common():
    harness = cluster(nodes=0)
    harness.add(*(node(f"{pool}{at}", cpu=1, labels={"pool": pool}) for pool in "ab" for at in range(2)))
    harness.add(*(runs(f"p{pool}{at}", 0, 100 * (at + 1), node=f"{pool}{at}") for pool in "ab" for at in range(2)))
    asks = {"a": {"node_selector": {"pool": "a"}}, "b": {"node_selector": {"pool": "b"}}, "any": {}}
    for name, said in asks.items():
        harness.add(*gang(name, 2, pods_with=said))
    harness.wait(100)
    assert [start(harness, name) for name in asks] == [200, 200, None]


@pytest.mark.parametrize("how", ["gone", "cordoned"])
def test_a_reservation_moves_when_a_node_of_it_is_lost(how):
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    if how == "gone":
        harness.delete("default/p1")
        harness.delete_node("n1")
    else:
        harness.add(node("n1", cpu=1, unschedulable=True))
    harness.wait(15)
    assert start(harness, "g") == 400
    assert places(harness, "g") == ["n0", "n2", "n3"]
    assert harness.events("ReservationMoved")


ILL = {
    "the node": node("n1", cpu=1, taints=["node.kubernetes.io/not-ready:NoSchedule"]),
    "a device plug-in": replace(node("n1", cpu=0), awaited=("cpu",)),
}


@pytest.mark.parametrize("ill", ILL.values(), ids=ILL)
def test_a_reservation_outlasts_what_is_not_ready_for_some_seconds(ill, monkeypatch):
    """Regression: the start was lost, and the node was free for others once it was back."""
    monkeypatch.setattr(Harness, "check_capacity", lambda _: None)
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    harness.settle(ill)
    harness.wait(15)
    assert start(harness, "g") == 300
    harness.settle(node("n1", cpu=1))
    harness.wait(15)
    assert start(harness, "g") == 300
    assert not harness.events("ReservationMoved")


def test_a_reservation_moves_when_a_node_accepts_only_the_other_members_of_its_places():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 2)[:2], pod("g-1", group="g", tolerations=["maintenance"]))
    assert places(harness, "g") == ["n0", "n1"]
    for name in ("n0", "n1"):
        harness.settle(node(name, cpu=1, taints=["maintenance:NoSchedule"]))
    harness.wait(15)
    assert places(harness, "g") == ["n0", "n2"]


@pytest.mark.parametrize("where", ["the start cannot come true", "it can"])
def test_a_pod_that_is_resized_beyond_its_node_ends_a_reservation_only_if_it_stays(where, monkeypatch):
    """Regression: while the node was overcommitted, nothing seemed to lack; that was seen when the next pod ended."""
    # The API server accepts more than the node has: the kubelet waits with it.
    monkeypatch.setattr(Harness, "check_capacity", lambda _: None)
    harness = cluster(
        runs("first", 0, 600),
        runs("last", 0, 900, cpu=2),
        runs("stays", 0, 9000),
        runs("far", 1, 5000, cpu=4),
        nodes=2,
        cpu=4,
    )
    starve(harness, *gang("g", 1, pods_with={"cpu": 3}))
    assert start(harness, "g") == 900
    name = "stays" if where == "the start cannot come true" else "first"
    harness.add(replace(harness.pod(f"default/{name}"), shape=pod(cpu=2).shape))
    harness.wait(15)
    assert start(harness, "g") == (5000 if name == "stays" else 900)


def test_a_promise_that_is_kept_evicts_nobody():
    harness = cluster(nodes=2)
    harness.settle(*gang("word", 2, expected_s=200.0))
    starve(harness, *gang("g", 2))
    assert start(harness, "g") in (230, 245)
    harness.wait(100)
    finish(harness, "default/word-0", "default/word-1")
    harness.wait(5)
    assert is_whole(harness, "g", 2)
    assert harness.evicted == []


def test_who_is_overdue_under_a_disruption_budget_stays_and_another_start_is_found():
    harness = cluster(nodes=2)
    labelled = {"labels": {"app": "a"}, "ready": True}
    harness.settle(*gang("word", 1, expected_s=100.0, pods_with=labelled), runs("p1", 1, 500))
    harness.add(DisruptionBudget("default", "b", (Requirement("app", "Exists", ()),), 0))
    starve(harness, *gang("g", 1))
    assert start(harness, "g") in (130, 145)
    harness.wait(200)
    assert harness.evicted == []
    assert start(harness, "g") == 500
    finish(harness, "default/p1")
    harness.wait(5)
    assert is_whole(harness, "g", 1)


def test_a_service_is_waited_for_last():
    service = Owner("ReplicaSet", "web", "uid-web", "apps")
    harness = cluster(runs("p0", 0, owner=service), runs("p1", 1), runs("p2", 2, 300), nodes=3)
    starve(harness, *gang("one", 1))
    assert places(harness, "one") == ["n2"]
    harness.wait(70, *gang("first", 2, priority=5))
    assert start(harness, "first") == float("inf")
    assert places(harness, "first") == ["n1", "n2"]


def test_all_members_get_one_rack_if_they_must_be_in_one():
    harness = cluster(nodes=0)
    harness.add(*(node(f"n{at}", cpu=1, labels={"rack": "ab"[at % 2]}) for at in range(4)), *FULL)
    starve(harness, *gang("g", 2, topology=Topology("rack", required=True)))
    assert start(harness, "g") == 300
    assert places(harness, "g") == ["n0", "n2"]


def test_who_uses_a_host_port_is_waited_for():
    port = HostPort(80)
    harness = cluster(runs("p0", 0, 300, host_ports=[port]), runs("p1", 1, 500, host_ports=[port]), nodes=2, cpu=4)
    starve(harness, *gang("g", 1, pods_with={"host_ports": [port]}))
    assert (start(harness, "g"), places(harness, "g")) == (300, ["n0"])
    harness.add(pod("q", group="", deadline_s=900, host_ports=[port]))
    finish(harness, "default/p0")
    harness.wait(5)
    assert is_whole(harness, "g", 1)


def test_it_is_turned_off_with_an_age_of_zero():
    harness = cluster(*FULL, starvation_age_s=0.0)
    starve(harness, *gang("g", 3))
    harness.wait(3600)
    assert not harness.machine.plans


def test_only_limits_count_where_the_settings_say_so():
    harness = cluster(nodes=2, by_promises=False)
    harness.settle(*gang("word", 1, expected_s=100.0), runs("p1", 1, 300))
    starve(harness, *gang("g", 1))
    assert (start(harness, "g"), places(harness, "g")) == (300, ["n1"])


def test_preemption_comes_first():
    harness = cluster(*(pod(f"p{at}", group="", node=f"n{at}", deadline_s=600, owner=SET) for at in range(4)))
    starve(harness, *gang("g", 3, priority_class="high"))
    assert len(harness.evicted) == 3
    assert start(harness, "g") is None


def test_a_group_that_no_end_would_help_reserves_nothing_and_keeps_nobody_off():
    harness = cluster(*FULL)
    starve(harness, *gang("large", 5, priority=5), *gang("g", 3))
    assert [start(harness, name) for name in ("large", "g")] == [None, 300]


def test_what_is_kept_free_and_who_uses_it_meanwhile_is_counted():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3))
    finish(harness, "default/p0")
    harness.wait(1)
    stats = harness.machine.stats()
    assert (stats.plans, stats.reservations, stats.reserved_idle["cpu"]) == (0, 1, 1000)
    harness.settle(pod("short", group="", deadline_s=60))
    stats = harness.machine.stats()
    assert stats.reserved_idle["cpu"] == 0
    assert stats.backfilled == 1 or harness.course is not Course.PLAIN


@pytest.mark.without("restarts", "standbys", why="an Event is lost with the process that was to send it")
def test_the_cause_of_an_eviction_tells_that_a_promise_was_broken():
    harness = cluster(nodes=1)
    harness.settle(*gang("word", 1, expected_s=100.0))
    starve(harness, *gang("g", 1))
    harness.wait(100)
    assert [effect.cause for effect in harness.effects if isinstance(effect, EvictPod)][:1] == ["Overdue"]
    assert "declared" in harness.events("Preempted")[0].note


@pytest.mark.without("all", why="an Event is lost with the process that was to send it")
def test_who_was_evicted_for_a_broken_promise_is_told_another_cause_the_next_time():
    """Regression: it was told again that its declared run time was over."""
    harness = cluster(nodes=1)
    harness.add(*gang("word", 1, expected_s=100.0, pods_with={"owner": SET}))
    harness.settle()
    starve(harness, *gang("g", 1))
    harness.wait(100)
    harness.end_terminating()
    harness.wait(5)
    harness.delete("default/g-0")
    harness.add(pod("word-1", group="word", owner=SET, created=harness.now))
    harness.wait(5)
    assert harness.bound() == ["default/word-1"]
    harness.add(*holder(1))
    harness.wait(5)
    told = [event.note for event in harness.events("Preempted")]
    assert ["declared" in note for note in told] == [True, False]


def test_what_is_used_by_who_is_let_in_is_not_kept_twice():
    """Of three CPUs the group needs two. One is used until then by who is let in, and the third is anybody's."""
    harness = cluster(*(runs(f"p{at}", 0, 100 * (at + 1)) for at in range(3)), nodes=1, cpu=3)
    starve(harness, *gang("g", 1, pods_with={"cpu": 2}))
    assert start(harness, "g") == 200
    harness.wait(15)
    finish(harness, "default/p0")
    harness.settle(pod("short", group="", deadline_s=60))
    finish(harness, "default/p2")
    harness.settle(pod("other", group=""))
    assert harness.bound() == ["default/other", "default/p1", "default/short"]


def test_a_run_time_that_a_pod_declares_counts_from_when_it_was_bound():
    harness = cluster(pod("p", group="", node="n0", bound_at=START - 100, expected_s=400), nodes=1)
    starve(harness, *gang("g", 1))
    assert start(harness, "g") == 300 + GRACE_S


def test_who_should_have_ended_long_ago_is_not_counted_on():
    """Its kubelet may be gone: nobody can tell when it ends."""
    harness = cluster(runs("lost", 0, -100), runs("p1", 1, 200), nodes=2)
    starve(harness, *gang("g", 1))
    assert (start(harness, "g"), places(harness, "g")) == (200, ["n1"])


def test_while_places_are_reserved_the_time_of_an_attempt_stands_still():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3, max_schedule_time_s=90.0))
    harness.wait(160)
    assert start(harness, "g") == 300
    assert record(harness, "g").timeouts == 0
    finish(harness, "default/p0", "default/p1", "default/p2")
    harness.wait(5)
    assert is_whole(harness, "g", 3)


def test_a_group_starves_over_all_its_attempts():
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3, max_schedule_time_s=40.0, pods_with={"created": START}))
    assert start(harness, "g") == 300
    harness.wait(160)
    assert start(harness, "g") == 300
    assert record(harness, "g").timeouts == 1


def test_a_group_with_the_policy_fail_fails_after_its_time_though_places_are_reserved():
    """Its clock runs on, also under a new leader, to which it stood still."""
    harness = cluster(*FULL)
    starve(harness, *gang("g", 3, max_schedule_time_s=90.0, timeout_policy=TimeoutPolicy.FAIL))
    assert start(harness, "g") == 300
    harness.wait(40)
    assert start(harness, "g") is None
    assert harness.status("default/g").reservation is None
    assert record(harness, "g").outcome is Outcome.OUT_OF_TIME


def test_who_is_overtaken_when_its_nodes_are_left_keeps_the_rest_of_them_from_others():
    """The older pod takes one node, and with it the start; nobody who came later takes the other one meanwhile."""
    harness = cluster(runs("a", 0, 200), runs("b", 1, 200), nodes=2)
    harness.add(pod("older", group="", created=START - 10, deadline_s=300))
    starve(harness, *gang("g", 2, created=START))
    assert start(harness, "g") == 200
    harness.add(pod("late", group="", created=harness.now))
    # The group was looked at a moment ago.
    harness.wait(1, node("other", cpu=1, unschedulable=True))
    finish(harness, "default/a", "default/b")
    harness.wait(1)
    assert harness.bound("default/older") == ["default/older"]
    assert start(harness, "g") is not None
    harness.wait(5)
    assert harness.bound("default/late") == []
    assert places(harness, "g") == ["n0", "n1"]
    finish(harness, "default/older")
    harness.wait(1)
    assert len(harness.bound("default/g-")) == 2


def looked_at():
    """A starved group of two, which was looked at again since its places were reserved."""
    harness = cluster(runs("a", 0, 200), runs("b", 1, 200), nodes=2)
    starve(harness, *gang("g", 2))
    harness.wait(15)
    harness.wait(12, node("other", cpu=1, unschedulable=True))
    assert start(harness, "g") == 200
    return harness


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader counts the age anew")
def test_who_has_started_waits_as_long_as_others_before_it_reserves_again():
    harness = looked_at()
    finish(harness, "default/a", "default/b")
    harness.wait(5)
    assert is_whole(harness, "g", 2)
    harness.delete("default/g-0", "default/g-1")
    harness.wait(5, runs("c", 0, 900), runs("d", 1, 900))
    harness.wait(AGE_S - 10, *pods("g", 2, first=2))
    assert start(harness, "g") is None
    harness.wait(20)
    assert start(harness, "g") == 900


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader counts the age anew")
def test_who_was_incomplete_waits_as_long_as_others_before_it_reserves_again():
    harness = looked_at()
    harness.delete("default/g-0")
    harness.wait(30)
    harness.wait(AGE_S - 10, *pods("g", 1, first=7))
    assert start(harness, "g") is None
    harness.wait(20)
    assert start(harness, "g") == 200


WORKS = Owner("Job", "work", "uid-work", "batch")


def job(ends_by: float) -> ForeignGroup:
    """The Job that owns pods of WORKS, which its limit ends then."""
    facts = WorkloadFacts("Job", ends_by=ends_by)
    return ForeignGroup(SERIES_OF, GroupKey("default", WORKS.name), WORKS.uid, 0.0, None, workload=facts)


TOLD_LATE: dict[str, Callable[[Harness], None]] = {
    "by its PodGroup": lambda harness: harness.change_spec("default/word", expected_s=1000.0),
    "by a PodGroup that is new": lambda harness: harness.add(group("new", min_member=1, expected_s=1000.0)),
    "by the pod": lambda harness: harness.change("default/alone", lifetime=Lifetime(expected_s=1000.0)),
    "by its Job": lambda harness: harness.add(job(START + 1000)),
}


@pytest.mark.parametrize("tell", TOLD_LATE.values(), ids=TOLD_LATE)
def test_an_end_that_is_declared_later_moves_a_start_though_nothing_else_happens(tell):
    """Regression: nothing that counts on a node had changed, so that nobody looked again."""
    harness = cluster(nodes=4)
    harness.add(pod("new-0", group="new", node="n1", bound_at=START))
    harness.add(pod("alone", group="", node="n2", bound_at=START))
    harness.settle(pod("of-job", group="", node="n3", bound_at=START, owner=WORKS))
    harness.settle(*gang("word", 1), job(0.0))
    starve(harness, *gang("g", 1))
    harness.wait(200)
    assert start(harness, "g") == float("inf")
    tell(harness)
    harness.wait(61)
    assert start(harness, "g") not in (None, float("inf"))


@pytest.mark.without("all", why="it asks one search, of which it knows when it goes on")
def test_an_end_that_is_declared_while_a_search_goes_on_moves_the_start(monkeypatch):
    """Regression: the search had passed that pod, and what it came to counted as found when it ended."""
    harness = cluster(nodes=0)
    # The search looks at the pods in this order, in several calls.
    harness.settle(*(node(f"n{at:02}", cpu=1) for at in range(40)), *gang("word", 1))
    harness.settle(*(pod(f"p{at}", group="", node=f"n{at:02}", bound_at=START) for at in range(1, 40)))
    harness.wait(AGE_S - 1, *gang("g", 1))
    monkeypatch.setattr(departing, "_AT_ONCE", 1)
    monkeypatch.setattr(units, "CALL", 4_000)
    harness.now += 2
    harness.step()
    harness.change_spec("default/word", expected_s=1000.0)
    harness.settle(rounds=500)
    assert start(harness, "g") == float("inf")
    harness.wait(61)
    assert start(harness, "g") == 1000 + GRACE_S


def test_a_device_that_nobody_uses_any_more_gives_a_start_though_nothing_else_happens():
    """Steps: a claim that no pod uses has the only device, so that no end of a pod helps. Then it is deleted."""
    harness = cluster(runs("p", 0, 900), nodes=1)
    orphan = device_claim("orphan", allocation=Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-0")),)))
    harness.settle(GPUS, gpus("n0"), orphan, device_claim("g-0"))
    starve(harness, group("g", min_member=1, max_schedule_time_s=9999.0), pod("g-0", group="g", device_claims=["g-0"]))
    harness.wait(200)
    assert start(harness, "g") is None
    harness.retract(orphan)
    harness.wait(61)
    assert start(harness, "g") == 900
