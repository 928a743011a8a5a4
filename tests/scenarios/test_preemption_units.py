"""What leaves together, who is given up first, and that whoever leaves makes room with all constraints."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.contention.units import UNDECLARED_S
from gangsched.core.objects.declaration import Declaration, GroupKey, Role, Topology
from gangsched.core.objects.devices import AllocatedDevice, Allocation
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, EvictionRefused, Refused, Spared, StatusRefused
from gangsched.core.objects.volumes import CsiNode
from gangsched.core.objects.workload import SERIES_OF, WorkloadFacts
from tests.builders import claim, group, node, pod, pods, shape, volume
from tests.gadgets import DRIVER, GPUS, device_claim, gpus
from tests.harness import Harness
from tests.preempting import SET, alone, cluster, end, evicted, gang, holder, is_whole, names, record, victims
from tests.scenarios.test_while_provisioning import add_waiting
from tests.trees import inner, leaf, members_of

DAY_S = 86_400.0
JOB = Owner("Job", "work", "uid-work", "batch")


def job(*, patient: bool) -> ForeignGroup:
    """The object of JOB; a patient one counts no failure when its pods are evicted."""
    facts = WorkloadFacts("Job", patient=patient)
    return ForeignGroup(SERIES_OF, GroupKey("default", JOB.name), JOB.uid, 0.0, None, workload=facts)


def bound_before(harness: Harness, name: str, seconds: float) -> None:
    """Let the pods of this name be bound so many seconds before now."""
    for bare in harness.bound(f"default/{name}"):
        harness.change(bare, bound_at=harness.server_time - seconds)
    harness.settle()


def test_surplus_of_a_group_leaves_before_the_group_itself():
    harness = cluster(node(cpu=5), *gang("low", 5, least=3))
    assert victims(harness, *holder(2)) == ["low-3", "low-4"]
    end(harness)
    assert is_whole(harness, "high", 2)
    assert is_whole(harness, "low", 3)
    assert record(harness, "low").preemptions == 0
    assert victims(harness, *holder(1, name="next")) == ["low-0", "low-1", "low-2"]


def test_others_leave_once_a_device_is_free_though_nothing_else_happens():
    """Regression: it was known that nobody could help, and the end of a claim was no reason to search again."""
    orphan = device_claim("orphan", allocation=Allocation((AllocatedDevice("gpu", (DRIVER, "n1", "gpu-0")),)))
    harness = cluster(node("n1", cpu=1), GPUS, gpus("n1"), *gang("low", 1), orphan, device_claim("high-0"))
    assert victims(harness, *holder(1, pods_with={"device_claims": ["high-0"]})) == []
    harness.retract(orphan)
    harness.wait(5)
    assert evicted(harness) == ["low-0"]


def test_a_role_keeps_its_minimum():
    roles = (Role("driver", 1), Role("worker", 2))
    says = group("low", min_member=1, roles=roles)
    members = [pod("low-0", group="low", role="driver", owner=SET)]
    members += [pod(f"low-{at}", group="low", role="worker", owner=SET) for at in (1, 2, 3)]
    harness = cluster(node(cpu=4), says, *members)
    assert len(harness.bound()) == 4
    assert victims(harness, *holder(1)) == ["low-3"]
    end(harness)
    assert victims(harness, *holder(1, name="next")) == ["low-0", "low-1", "low-2"]


def test_each_group_of_a_tree_keeps_its_minimum_and_the_tree_leaves_as_a_whole():
    """Both groups have three of two members; of the third, which the tree does not need, two of two are bound."""
    harness = cluster(node(cpu=8), inner("low"), *(leaf(f"low{at}", "low", least=2) for at in (1, 2, 3)))
    harness.add(
        *(each for at, number in ((1, 3), (2, 3), (3, 2)) for each in members_of(f"low{at}", number, owner=SET))
    )
    harness.wait(3)
    assert len(harness.bound()) == 8
    assert victims(harness, *holder(2)) == ["low1-2", "low2-2"]
    end(harness)
    assert is_whole(harness, "high", 2)
    assert len(harness.bound("default/low")) == 6
    assert victims(harness, *holder(1, name="next")) == [f"low{at}-{member}" for at in (1, 2, 3) for member in (0, 1)]


def test_the_lowest_level_leaves_even_if_more_work_is_lost_there():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    bound_before(harness, "low", 3 * DAY_S)
    harness.settle(node("n2", cpu=4), *gang("mid", 4, priority=20))
    assert victims(harness, *holder(4)) == names("low", range(4))


# Racks


def racks(**cpus: int) -> list[object]:
    return [node(f"node-{rack}", cpu=cpu, labels={"rack": rack}) for rack, cpu in cpus.items()]


def test_the_rack_in_which_least_work_is_lost_is_cleared_and_no_other():
    harness = cluster(*racks(a=4, b=4, c=4))
    for at, rack in enumerate("abc"):
        harness.settle(*gang(rack, 4, pods_with={"node_selector": {"rack": rack}}))
        bound_before(harness, f"{rack}-", (300.0, 100.0, 200.0)[at])
    assert victims(harness, *holder(4, topology=Topology("rack"))) == names("b", range(4))
    end(harness)
    assert {harness.pod(name).node for name in harness.bound("default/high-")} == {"node-b"}


# Other constraints


def test_a_place_for_a_volume_is_freed():
    harness = cluster(node(cpu=4))
    harness.add(CsiNode("n1", (("csi", 1),)), *(volume(f"v{at}") for at in range(2)))
    harness.add(claim("low", "v0"), claim("high", "v1"))
    harness.add(*gang("other", 1, pods_with={"cpu": "100m"}))
    harness.settle(*gang("low", 1, pods_with={"cpu": "100m", "volume_claims": ["low"]}))
    assert len(harness.bound()) == 2
    assert victims(harness, *holder(1, pods_with={"cpu": "100m", "volume_claims": ["high"]})) == ["low-0"]
    end(harness)
    assert is_whole(harness, "high", 1)


def test_a_volume_for_a_single_pod_is_freed():
    harness = cluster(node(cpu=4))
    harness.add(volume("v"), claim("c", "v", single_pod=True))
    harness.settle(*gang("low", 1, pods_with={"volume_claims": ["c"]}), *gang("other", 1))
    assert victims(harness, *holder(1, pods_with={"volume_claims": ["c"]})) == ["low-0"]
    end(harness)
    assert is_whole(harness, "high", 1)


def test_a_device_is_freed():
    harness = cluster(node(cpu=4))
    harness.add(GPUS, gpus("n1", 1), device_claim("low"), device_claim("high"))
    harness.wait(5, *gang("other", 1), *gang("low", 1, pods_with={"device_claims": ["low"]}))
    assert is_whole(harness, "low", 1)
    assert victims(harness, *holder(1, pods_with={"device_claims": ["high"]})) == ["low-0"]
    harness.end_terminating()
    harness.retract(harness.gadgets.claim("low"))
    harness.wait(10)
    assert is_whole(harness, "high", 1)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader knows of no claim to be released")
@pytest.mark.parametrize("after_s", [0, 3, 30])
def test_a_device_whose_claim_outlives_its_user_is_waited_for(after_s):
    """kube-controller-manager releases a claim some time after its pod has gone. The plan ended as Overtaken at once,
    and the user of the other device left in vain."""
    harness = cluster(node("n1", cpu=4), node("n2", cpu=4))
    harness.add(GPUS, gpus("n1"), gpus("n2"), *(device_claim(name) for name in ("a", "b", "high")))
    harness.wait(5, *(each for name in ("a", "b") for each in gang(name, 1, pods_with={"device_claims": [name]})))
    (first,) = victims(harness, *holder(1, pods_with={"device_claims": ["high"]}))
    end(harness, wait_s=after_s)
    assert evicted(harness) == [first]
    harness.retract(harness.gadgets.claim(first.removesuffix("-0")))
    harness.wait(5)
    assert is_whole(harness, "high", 1)
    assert evicted(harness) == [first]


# Who never leaves


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"scheduler": "other"}, id="another installation's or scheduler's"),
        pytest.param({"owner": Owner("Node", "n1", "n1")}, id="a static pod"),
        pytest.param({"owner": Owner("DaemonSet", "d", "d", "apps")}, id="a DaemonSet's"),
    ],
)
def test_some_pods_never_leave(fields):
    harness = cluster(node(cpu=1), alone("there", node="n1", **fields))
    assert victims(harness, *holder(1)) == []


def test_system_critical_pods_never_leave():
    harness = Harness()
    harness.put_class("top", 1_000_000_000)
    harness.settle(node(cpu=1), alone("there", node="n1", priority=2_000_000_000))
    assert victims(harness, *gang("high", 1, priority_class="top")) == []


def test_pods_of_other_schedulers_leave_where_the_settings_admit_them():
    harness = cluster(node(cpu=1), alone("there", node="n1", scheduler="other"), all_victims=True)
    assert victims(harness, *holder(1)) == ["there"]


def test_pods_outside_the_namespace_of_the_installation_never_leave():
    harness = Harness(Policy(namespace="default"))
    harness.put_class("high", 100)
    harness.settle(node(cpu=1), alone("elsewhere/there", node="n1"))
    assert victims(harness, *holder(1)) == []


@pytest.mark.parametrize(
    ("owner", "patient", "leaves"),
    [(None, False, []), (JOB, False, []), (JOB, True, ["there"]), (SET, False, ["there"])],
    ids=["alone", "a Job that counts failures", "a Job that does not", "a StatefulSet"],
)
def test_whoever_would_be_lost_for_good_stays_if_the_settings_say_so(owner, patient, leaves):
    harness = cluster(node(cpu=1), alone("there", owner=owner), spares_uncontrolled=True)
    harness.add(job(patient=patient))
    assert victims(harness, *holder(1)) == leaves


def test_the_work_of_a_pod_that_nothing_would_create_again_counts_twofold():
    harness = cluster(node(cpu=2), alone("bare", owner=None), alone("kept"))
    bound_before(harness, "kept", 100)
    assert victims(harness, *holder(1)) == ["kept"]


@pytest.mark.parametrize(("patient", "leaves"), [(True, "job-0"), (False, "set-0"), (None, "set-0")])
def test_work_counts_twofold_whose_job_would_count_a_failure_or_is_not_known(patient, leaves):
    harness = cluster(node(cpu=2), *gang("job", 1, pods_with={"owner": JOB}), *gang("set", 1))
    if patient is not None:
        harness.settle(job(patient=patient))
    bound_before(harness, "set", 100)
    assert victims(harness, *holder(1)) == [leaves]
    end(harness)
    assert is_whole(harness, "high", 1)


def test_a_group_whose_bindings_are_in_flight_is_waited_for():
    harness = cluster(node(cpu=4))
    harness.withhold = lambda effect: effect.name == "low-3"
    harness.settle(*gang("low", 4))
    assert len(harness.bound("default/low-")) == 3
    assert victims(harness, *holder(4)) == []
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(5)
    assert evicted(harness) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)


def _without_podgroup(harness: Harness) -> None:
    harness.delete_group("default/low")


def _with_another_minimum(harness: Harness) -> None:
    harness.change("default/low-0", declaration=Declaration(group="low", min_member=9))


def _with_an_unreadable_minimum(harness: Harness) -> None:
    harness.change("default/low-0", declaration=Declaration(group="low", error="the minimum is no number"))


@pytest.mark.without("restarts", "standbys", why="a new leader does not know since when a PodGroup is missing")
@pytest.mark.parametrize("undeclare", [_without_podgroup, _with_another_minimum, _with_an_unreadable_minimum])
def test_who_takes_back_a_declaration_leaves_as_a_whole_all_the_same(undeclare: Callable[[Harness], None]):
    """Regression: a tenant kept running pods from being preempted by a change of one annotation of one of them."""
    harness = cluster(node(cpu=4), *gang("low", 4, least=2))
    harness.wait(40)
    undeclare(harness)
    harness.wait(UNDECLARED_S + 1)
    assert victims(harness, *holder(1)) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 1)


@pytest.mark.parametrize("gap_s", [0.0, 30.0])
def test_nobody_leaves_while_its_podgroup_is_replaced(gap_s: float):
    """Regression: its pods counted by their own priority as soon as the PodGroup was gone, as in a replace --force."""
    harness = cluster(node(cpu=4), *gang("run", 4, priority_class="high"))
    harness.wait(60, *gang("mid", 4, priority_class="mid"))
    spec = harness.group("default/run").spec
    harness.delete_group("default/run")
    harness.wait(gap_s)
    harness.wait(90, replace(group("run", uid="again", created=float(int(harness.now))), spec=spec))
    assert evicted(harness) == []


@pytest.mark.without("all", why="asserts an Event, which may be lost with its leader")
def test_pods_of_a_deleted_group_are_told_why_they_leave():
    harness = cluster(node(cpu=4), *gang("low", 4))
    harness.delete_group("default/low")
    harness.wait(UNDECLARED_S + 1)
    victims(harness, *holder(1))
    assert [(event.kind, event.name) for event in harness.events("Preempted")] == [("Pod", "low-0")]


def _with_a_volume_to_come(harness: Harness) -> None:
    add_waiting(harness, *pods("low", 1, first=4, owner=SET))


def _with_a_refused_binding(harness: Harness) -> None:
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no") if effect.name == "low-4" else None
    )
    harness.add(*pods("low", 1, first=4, owner=SET))


@pytest.mark.parametrize("hold", [_with_a_volume_to_come, _with_a_refused_binding])
def test_a_gang_leaves_together_with_the_place_of_a_member_to_come(hold: Callable[[Harness], None]):
    """Regression: a member whose volume was not provisioned, or whose binding failed, kept its gang from leaving."""
    harness = cluster(node(cpu=5), *gang("low", 4))
    hold(harness)
    harness.wait(30)
    assert victims(harness, *holder(5)) == names("low", range(4))
    assert " 4 pods leave " in harness.condition("default/high").message
    end(harness)
    assert is_whole(harness, "high", 5)


def test_a_gang_leaves_together_with_the_place_of_a_lost_member():
    """Regression: nobody of it left for as long as the place was held, ten minutes by default."""
    roles = (Role("driver", 1), Role("worker", 2, template=shape(2)))
    workers = [pod(f"low-{at}", group="low", role="worker", cpu=2, owner=SET) for at in range(2)]
    harness = cluster(node(cpu=5))
    harness.settle(
        group("low", min_member=3, roles=roles), pod("low-d", group="low", role="driver", owner=SET), *workers
    )
    harness.delete("default/low-0")
    harness.wait(10)
    assert victims(harness, *holder(5)) == ["low-1", "low-d"]
    end(harness)
    assert is_whole(harness, "high", 5)


@pytest.mark.without("all", why="the story has a new leader of its own")
def test_pods_that_leave_are_not_said_to_be_undone_by_a_leader_who_does_not_know_their_group():
    """Regression: the Event BindingUndone told it, as if a quorum had been bound in part."""
    harness = cluster(node(cpu=4), *gang("low", 4))
    harness.delete_group("default/low")
    harness.wait(60)
    harness.restart()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.BUDGET, "no")
    assert victims(harness, *holder(4)) == []
    assert harness.events("BindingUndone") == []


@pytest.mark.without("all", why="the story has a new leader of its own")
def test_nobody_leaves_of_a_group_created_again_before_its_status_says_so():
    """Regression: once it had been to leave while it had no PodGroup, evictions never waited for the status again."""
    harness = cluster(node(cpu=4), *gang("low", 4))
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.BUDGET, "no")
    harness.delete_group("default/low")
    harness.wait(5, *holder(4, name="first"))
    harness.delete(*(f"default/{name}" for name in names("first", range(4))))
    harness.delete_group("default/first")
    harness.wait(900, group("low", uid="again", min_member=4, max_schedule_time_s=9999.0))
    harness.refuse_eviction = lambda _: None
    harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False) if effect.key.name == "low" else None
    assert victims(harness, *holder(4)) == []
    harness.refuse_status = lambda _: None
    harness.wait(60)
    assert evicted(harness) == names("low", range(4))
