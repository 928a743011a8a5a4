"""Pods that the kubelet rejects, or that end at once: no loop is as fast as the controller that replaces them."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.policy import FifoRules, Policy
from tests.builders import group, node, pod, pods, shape
from tests.harness import START, Harness
from tests.loops import SAID, Fate, Loop

LATE = "a failure is seen only after the pods that replace the failed ones were bound"
STOPS = "the time without a leader does not count, but kubelets go on"
SET = Owner("ReplicaSet", "web", "set-web", "apps")


def member(number: int, *, group: str = "a", owner: Owner = SET, cpu: str = "1") -> Pod:
    return pod(f"web-{number}", group=group, owner=owner, cpu=cpu)


plain = partial(member, group="")


def on(*nodes: str, fate: Fate = Fate.REJECTED):
    """Pods meet this fate on these nodes, and run on others."""
    return lambda found: fate if found.node in nodes else Fate.RUNS


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
@pytest.mark.parametrize(("minimum", "fate"), [(1, Fate.ENDS), (2, Fate.REJECTED)])
def test_a_group_whose_pods_fail_on_its_only_node_loses_at_most_five_in_five_minutes(minimum: int, fate: Fate) -> None:
    """A ReplicaSet of two on one node: 850 pods were bound and failed in two minutes, and the group was Healthy."""
    harness = Harness.of(node("n1", cpu=8), group("a", min_member=minimum))
    loop = Loop(harness, member, 2, fate=on("n1", fate=fate))
    loop.run_for(1800)
    assert 0 < loop.most() <= 5
    pauses = [after - before for (before, _), (after, _) in zip(loop.failed, loop.failed[1:], strict=False)]
    assert max(pauses) > 300, "the pause grows"
    assert min(pauses[-4:], default=0) >= 0


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_the_groups_condition_quotes_the_kubelet_and_its_members_say_it_too() -> None:
    harness = Harness.of(node("n1", cpu=8), group("a", min_member=2))
    loop = Loop(harness, member, 2)
    loop.run_for(8)
    condition = harness.condition("default/a")
    assert (condition.status, condition.reason) == (False, "PodsFailAtOnce")
    assert f'"{SAID}"' in condition.message
    assert "node n1" in condition.message
    assert {found.condition_reason for found in loop.pods()} == {"PodsFailAtOnce"}


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_a_scheduled_group_whose_replacements_fail_is_degraded_and_says_why() -> None:
    harness = Harness.of(node("n1", cpu=8), group("a", min_member=2))
    loop = Loop(harness, member, 2, fate=on())
    loop.run_for(20)
    assert harness.gang("default/a").record.phase == "Running"
    loop.fate = on("n1")
    harness.delete("default/web-0")
    loop.run_for(20)
    condition = harness.condition("default/a", "Degraded")
    assert (condition.status, condition.reason) == (True, "MembersMissing")
    assert SAID in condition.message
    assert 0 < loop.most() <= 5


@pytest.mark.without("all", why="a StatefulSet deletes what failed, so a new process learns it anew")
@pytest.mark.parametrize("made", [member, plain])
def test_pods_that_are_made_again_under_their_names_pause_too(made) -> None:
    harness = Harness.of(node("n1", cpu=8), group("a", min_member=2))
    loop = Loop(harness, made, 2, same_names=True)
    loop.run_for(900)
    assert 0 < loop.most() <= 5


@pytest.mark.without("all", why="which pods are on trial is in memory")
def test_after_a_pause_many_pods_without_a_group_are_tried_one_by_one() -> None:
    harness = Harness.of(node("n1", cpu=64))
    loop = Loop(harness, plain, 20)
    loop.run_for(1)
    assert len(loop.failed) == 20, "nothing was known of the node"
    loop.run_for(900)
    later = [at for at, _ in loop.failed[20:]]
    assert later
    assert len(set(later)) == len(later)
    loop.failed = loop.failed[20:]
    assert loop.most() <= 5
    loop.fate = on()
    loop.run_for(700)
    assert all(found.node for found in loop.pods())


# Who is paused where


@pytest.mark.without("disorder", why="a pod is made again before the failure of the last one is seen")
def test_a_pod_without_a_group_goes_where_none_has_failed_once_the_pause_everywhere_ends() -> None:
    """Regression: it went back to the first node that had rejected it, again and again."""
    harness = Harness()
    fates = {"n0": Fate.REJECTED, "n1": Fate.REJECTED, "n2": Fate.RUNS}
    harness.add(*(node(name, cpu=15) for name in fates))
    loop = Loop(harness, plain, 1, fate=lambda found: fates[found.node])
    loop.run_for(30)
    assert len(loop.failed) <= 3
    assert [found.node for found in loop.pods()] == ["n2"]


@pytest.mark.without("disorder", "restarts", "standbys", "leaderless", why="when it restarts is what is asked")
def test_a_group_leaves_the_domain_that_it_prefers_once_its_pods_have_failed_there_again() -> None:
    """Each time, a new leader does not know that the node refused them; the failed pods still tell of it."""
    prefers = Topology("rack", required=False)
    harness = Harness.of(node("n0", cpu=2, labels={"rack": "n0"}), group("a", min_member=2, topology=prefers))
    for name in ("n1", "n2"):
        harness.add(node(name, cpu=3, pods=1, labels={"rack": name}), pod(f"on-{name}", group="", node=name))
    loop = Loop(harness, member, 2, fate=on("n0"))
    loop.run_for(1)
    harness.delete("default/on-n1", "default/on-n2")
    for _ in range(2):
        harness.pass_without_leader(60)
        loop.run_for(1)
    assert len(loop.failed) == 4
    assert sorted(found.node for found in loop.pods() if found.phase is PodPhase.RUNNING) == ["n1", "n2"]


def test_room_on_another_node_ends_the_wait_before_the_pause_does() -> None:
    harness = Harness.of(node("n1", cpu=8), node("n2", cpu=2), group("a", min_member=2))
    harness.add(pod("busy", group="", node="n2", cpu="2", scheduler="somebody-else"))
    loop = Loop(harness, member, 2, fate=on("n1"))
    loop.run_for(30)
    failed = len(loop.failed)
    harness.delete("default/busy")
    loop.run_for(1)
    assert {found.node for found in loop.pods()} == {"n2"}
    assert len(loop.failed) == failed


# What ends a pause


def test_a_few_nodes_that_reject_do_not_stop_a_controller_whose_pods_run_elsewhere() -> None:
    harness = Harness.of(*(node(f"n{number:02}", cpu=4) for number in range(30)))
    loop = Loop(harness, plain, 100, fate=on("n00", "n07", "n13"))
    loop.run_for(60)
    assert all(found.node for found in loop.pods())


def paused(harness: Harness) -> Loop:
    """A group whose pods have failed three times and that will not be tried for minutes."""
    harness.add(node("n1", cpu=8), group("a", min_member=2))
    loop = Loop(harness, member, 2)
    loop.run_for(30)
    assert len(loop.failed) == 4
    loop.fate = on()
    loop.run_for(30)
    assert harness.bound() == []
    return loop


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_a_change_of_the_spec_ends_it() -> None:
    harness = Harness()
    loop = paused(harness)
    harness.change_spec("default/a", max_schedule_time_s=77.0)
    loop.run_for(1)
    assert len(harness.bound()) == 2


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_another_template_ends_it() -> None:
    harness = Harness()
    loop = paused(harness)
    loop.make = partial(member, cpu="500m")
    harness.delete(*(f"default/{found.name}" for found in loop.pods()))
    loop.run_for(2)
    assert len(harness.bound()) == 2


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_a_change_of_the_node_ends_it_as_soon_as_the_number_of_failures_permits() -> None:
    harness = Harness.of(node("n1", cpu=8))
    loop = Loop(harness, plain, 1)
    loop.run_for(75)
    assert [round(at - START) for at, _ in loop.failed] == [0, 10, 30, 70]
    loop.fate = on()
    harness.add(node("n1", cpu=8, labels={"mended": "yes"}))
    loop.run_for(1)
    assert len(harness.bound()) == 1


@pytest.mark.without("all", why="after a restart, a success is known only while its pod exists")
def test_pods_that_run_there_for_a_while_end_it() -> None:
    """The next failure, minutes later, is a first one."""
    harness = Harness.of(node("n1", cpu=8))
    loop = Loop(harness, plain, 1)
    loop.run_for(75)
    loop.fate = on()
    loop.run_for(400)
    [running] = loop.pods()
    assert running.node
    loop.fate = on("n1")
    loop.failed.clear()
    harness.delete(f"default/{running.name}")
    loop.run_for(100)
    since = loop.failed[0][0]
    assert [round(at - since) for at, _ in loop.failed] == [0, 10, 30, 70]


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_after_a_restart_the_failed_pods_that_still_exist_tell_of_it() -> None:
    harness = Harness()
    loop = paused(harness)
    failed = len(loop.failed)
    harness.restart()
    loop.fate = on("n1")
    loop.run_for(60)
    assert len(loop.failed) == failed
    assert SAID in harness.condition("default/a").message


def test_failed_pods_of_long_ago_and_pods_of_other_schedulers_pause_nobody() -> None:
    harness = Harness.of(node("n1", cpu=8), group("a", min_member=2))
    loop = Loop(harness, partial(member), 2)
    loop.run_for(1)
    for found in list(harness.pods.values()):
        if found.terminal:
            harness.pods[found.uid] = replace(found, bound_at=START - 7200)
        else:
            harness.pods.pop(found.uid)
    harness.add(pod("theirs", group="a", owner=SET, node="n1", scheduler="somebody-else"))
    harness.change("default/theirs", phase=PodPhase.FAILED, rejected=True)
    harness.restart()
    loop.fate = on()
    loop.run_for(3)
    assert len(harness.bound("default/web")) >= 2


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_a_group_that_waits_for_the_end_of_its_pause_holds_up_nobody_in_its_lane() -> None:
    """Contract rule 7: only a group that waits for room is not overtaken."""
    lane = {"resource_channel": "batch"}
    harness = Harness(Policy(fifo=FifoRules(groups=frozenset(lane.values()))))
    harness.add(node("n1", cpu=8, labels=lane), group("a", min_member=1), group("b", min_member=1, created=5.0))
    loop = Loop(harness, lambda number: replace(member(number), shape=shape(node_selector=lane)), 1)
    loop.run_for(30)
    harness.add(pod("b-0", group="b", node_selector=lane))
    loop.run_for(3)
    assert harness.condition("default/a").reason == "PodsFailAtOnce"
    assert harness.bound("default/b") == ["default/b-0"]


@pytest.mark.without("disorder", "leaderless", why=f"{LATE}; {STOPS}")
def test_a_group_whose_pause_holds_everywhere_is_not_ahead_of_others_until_it_ends() -> None:
    harness = Harness()
    harness.add(node("n1", cpu=2), node("n2", cpu=2), group("a", min_member=1), group("b", min_member=5, created=5.0))
    loop = Loop(harness, member, 1, fate=on("n1", "n2", fate=Fate.ENDS))
    loop.run_for(60)
    assert harness.gang("default/a").wait.pause.everywhere
    harness.add(*pods("b", 5, cpu="500m"), pod("busy", group="", cpu=4))
    harness.add(pod("full", group="", cpu=2, node="n1"))
    loop.run_for(3)
    assert harness.gang("default/a").wait.pause.everywhere
    assert not harness.bound("default/b")
    assert "Ahead" not in harness.condition("default/b").message
    loop.fate = on()
    harness.add(pod("full-too", group="", cpu=2, node="n2"))
    loop.run_for(600)
    assert "Ahead of it: default/a." in harness.condition("default/b").message
