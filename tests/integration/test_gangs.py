"""The promises of gangsched, kept on the real API server by the real operator."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.effort import seeded
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")


def test_a_lone_group_on_an_idle_cluster_is_bound_with_no_other_event(cluster: Cluster) -> None:
    cluster.add_node("n1")
    cluster.add_group("lone", min_member=3)
    cluster.add_pods("lone", 3)

    cluster.until_bound("lone", 3)
    cluster.until(lambda: cluster.phase("lone") == "Running")

    assert cluster.condition("lone")["status"] == "True"
    cluster.until(lambda: cluster.events("lone", "Scheduled"))
    [event] = cluster.events("lone", "Scheduled")
    assert "n1 (3)" in event["note"]


@seeded(10)
def test_of_eight_groups_that_fit_four_at_a_time_four_are_whole_and_none_is_partial(
    cluster: Cluster, seed: int
) -> None:
    for number in range(5):
        cluster.add_node(f"n{number}", cpu="4")
    groups = [f"g{number}" for number in range(8)]
    creations: list[Callable[[], None]] = [partial(cluster.add_group, group, min_member=5) for group in groups]
    creations += [partial(cluster.add_pod, f"{group}-{number}", group) for group in groups for number in range(5)]
    Random(seed).shuffle(creations)

    for create in creations:
        create()
    cluster.until(lambda: len(cluster.bound()) == 20)
    waiting = [group for group in groups if not cluster.bound(group)]
    for group in waiting:
        cluster.until_reason(group, "Unschedulable")

    assert sorted(len(cluster.bound(group)) for group in groups) == [0, 0, 0, 0, 5, 5, 5, 5]


def test_two_of_three_members_wait_until_the_third_arrives(cluster: Cluster) -> None:
    cluster.add_node("n1")
    cluster.add_group("trio", min_member=3)
    cluster.add_pods("trio", 2)

    message = cluster.until_reason("trio", "GangIncomplete")
    cluster.until(lambda: cluster.told("trio-0").get("reason") == "GangIncomplete")
    phase = cluster.phase("trio")
    bound_before = cluster.bound("trio")
    cluster.add_pods("trio", 1, first=2)
    cluster.until_bound("trio", 3)

    assert phase == "Pending"
    assert "1 more member is needed" in message
    assert not bound_before


def test_a_group_may_be_created_after_its_pods(cluster: Cluster) -> None:
    cluster.add_node("n1")
    cluster.add_pods("late", 2)
    cluster.until(lambda: cluster.told("late-0").get("reason") == "PodGroupNotFound")
    told = cluster.told("late-0")["message"]
    cluster.add_group("late", min_member=3)
    message = cluster.until_reason("late", "GangIncomplete")
    cluster.add_pods("late", 1, first=2)
    cluster.until_bound("late", 3)

    assert "create it, or give the pods the annotation gangsched.io/min-member" in told
    assert "1 more member is needed" in message


def test_a_group_without_room_times_out_and_is_bound_as_soon_as_there_is_some(cluster: Cluster, tmp_path: Path) -> None:
    """An operator of its own, because the back-off must be longer than a busy machine takes to bind two pods."""
    config = tmp_path / "config.yaml"
    config.write_text("backoff: {initial: 60s}\n")
    cluster.add_node("n1", cpu="1")
    with Operator(cluster.control_plane, "--scheduler-name", "patient", "--config", str(config)):
        began = time.monotonic()
        cluster.add_group("slow", min_member=2, maxScheduleTime="2s")
        cluster.add_pods("slow", 2, scheduler="patient")
        cluster.until(lambda: cluster.phase("slow") == "TimedOut")
        took_s = time.monotonic() - began
        message = cluster.condition("slow")["message"]
        cluster.until(lambda: cluster.events("slow", "TimedOut"))
        cluster.until(lambda: cluster.told("slow-0").get("status") == "False")
        told = cluster.told("slow-0")

        cluster.add_node("n2", cpu="1")
        began = time.monotonic()
        cluster.until_bound("slow", 2, within_s=90)
        bound_after_s = time.monotonic() - began

    assert bound_after_s < 50, "it waited for the back-off of 60 s"
    assert took_s >= 2
    assert "No room within 2s" in message
    assert "Only 1 of 2 members fit" in message
    assert told["reason"] == "Unschedulable"
    assert "Only 1 of 2 members fit" in told["message"]


def test_a_group_that_must_not_retry_fails_and_its_members_say_so(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="1")
    cluster.add_group("once", min_member=2, maxScheduleTime="1s", timeoutPolicy="Fail")
    cluster.add_pods("once", 2)
    cluster.until(lambda: cluster.phase("once") == "Failed")
    message = cluster.condition("once")["message"]
    cluster.until(lambda: cluster.told("once-1").get("reason") == "GangFailed")
    cluster.add_node("n2", cpu="4")
    cluster.add_group("other", min_member=1)
    cluster.add_pods("other", 1)
    cluster.until_bound("other", 1)
    still_unbound = cluster.bound("once")
    cluster.change_spec("once", timeoutPolicy="Retry")
    cluster.until_bound("once", 2)

    assert "timeoutPolicy is Fail" in message
    assert not still_unbound


def test_a_gpu_group_is_bound_on_idle_gpu_nodes(cluster: Cluster) -> None:
    for name in ("gpu1", "gpu2"):
        cluster.add_node(name, cpu="16", extra={"nvidia.com/gpu": "4"})
    cluster.add_node("cpu1", cpu="64")
    cluster.add_group("train", min_member=4)
    cluster.add_pods("train", 4, requests={"cpu": "1", "nvidia.com/gpu": "2"})
    cluster.until_bound("train", 4)

    assert sorted(cluster.bound("train").values()) == ["gpu1", "gpu1", "gpu2", "gpu2"]


def test_enough_room_in_all_but_in_pieces_is_refused_and_the_message_says_how_many_fit(cluster: Cluster) -> None:
    for name in ("n1", "n2", "n3"):
        cluster.add_node(name, cpu="3")
    cluster.add_group("wide", min_member=4)
    cluster.add_pods("wide", 4, requests={"cpu": "2"})
    message = cluster.until_reason("wide", "NeverFits")

    assert "Only 3 of 4 members fit" in message
    assert "enough is free in total" in message
    assert not cluster.bound("wide")


def test_a_group_that_can_never_fit_is_told_at_once_and_delays_nobody(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="4")
    cluster.add_group("huge", min_member=5)
    cluster.add_pods("huge", 5)
    cluster.add_group("small", min_member=3)
    cluster.add_pods("small", 3)
    cluster.until_bound("small", 3)
    message = cluster.until_reason("huge", "NeverFits")
    cluster.until(lambda: cluster.told("huge-0").get("reason") == "Unschedulable")

    assert "even if they were empty" in message


def test_what_must_be_added_is_in_the_status_and_such_nodes_let_the_group_be_bound(cluster: Cluster) -> None:
    for zone, cpu in (("a", "1"), ("b", "2")):
        cluster.add_node(f"n-{zone}", cpu=cpu, labels={"example.com/zone": zone})
    topology = {"key": "example.com/zone", "mode": "Required"}
    cluster.add_group("wide", min_member=4, placement={"topology": topology})
    cluster.add_pods("wide", 4, requests={"cpu": "1", "memory": "1Gi"})
    cluster.until(lambda: cluster.status("wide").get("demand"))
    seen = cluster.control_plane.kubectl(
        *("get", "podgroups.gangsched.io", "wide", "-n", cluster.namespace, "-o", "jsonpath={.status.demand}")
    )
    [entry] = json.loads(seen)
    assert entry == {"count": 2, "requests": {"cpu": "1000m", "memory": "1073741824"}, "domain": "b"}

    for number in range(entry["count"]):
        assert cluster.bound("wide") == {}
        cluster.add_node(
            f"new-{number}",
            cpu=entry["requests"]["cpu"],
            memory=entry["requests"]["memory"],
            pods="1",
            labels={"example.com/zone": entry["domain"]},
        )
    cluster.until_bound("wide", 4)
    cluster.until(lambda: not cluster.status("wide").get("demand"))


def test_a_member_that_only_accepts_a_node_that_is_not_there_is_no_case_for_an_autoscaler(cluster: Cluster) -> None:
    cluster.add_node("n1")
    cluster.add_group("named", min_member=2)
    cluster.add_pod("named-0", "named")
    cluster.add_pod("named-1", "named", nodeSelector={"kubernetes.io/hostname": "n9"})
    assert "a new node would not help" in cluster.until_reason("named", "NeverFits")
    names = ("named-0", "named-1")
    cluster.until(lambda: [cluster.told(name).get("reason") for name in names] == ["NeverFits"] * 2)
    assert not cluster.status("named").get("demand")
    cluster.add_node("n9", labels={"kubernetes.io/hostname": "n9"})
    cluster.until_bound("named", 2)


def test_a_plain_pod_is_placed_alone_and_told_in_its_own_condition(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="2")
    cluster.add_pod("fits")
    cluster.add_pod("waits", requests={"cpu": "2"})
    cluster.until(lambda: cluster.bound() == {"fits": "n1"})
    cluster.until(lambda: cluster.told("waits").get("reason") == "Unschedulable")
    cluster.until(lambda: cluster.events("waits", "Unschedulable"))
    cluster.delete_pod("fits")
    cluster.until(lambda: cluster.bound() == {"waits": "n1"})


def test_annotations_alone_make_a_group(cluster: Cluster) -> None:
    cluster.add_node("n1")
    annotations = {"gangsched.io/min-member": "2"}
    cluster.add_pod("a-0", "a", annotations=annotations)
    cluster.until(lambda: cluster.told("a-0").get("reason") == "GangIncomplete")
    cluster.add_pod("a-1", "a", annotations=annotations)
    cluster.until_bound("a", 2)


def test_the_anti_affinity_of_a_pod_that_is_there_keeps_a_newcomer_out(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="8")
    cluster.add_node("n2", cpu="2")
    term = {"labelSelector": {"matchLabels": {"team": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    cluster.add_pod(
        "hermit",
        scheduler="somebody-else",
        nodeName="n1",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    )
    cluster.add_group("b", min_member=3)
    cluster.add_pods("b", 3, labels={"team": "b"})
    message = cluster.until_reason("b", "Unschedulable")
    cluster.delete_pod("hermit")
    cluster.until_bound("b", 3)

    assert (
        f"1 closed by the anti-affinity of pods in the same kubernetes.io/hostname: {cluster.namespace}/hermit"
        in message
    )


BAD_INPUT = {
    "a PriorityClass that does not exist": (
        {"priorityClassName": "no-such-class"},
        {},
        "PriorityClassNotFound",
        "create it or name another",
    ),
    "a role that the group does not have": (
        {"roles": [{"name": "worker"}]},
        {"labels": {"gangsched.io/role": "boss"}},
        "RoleUnknown",
        "correct the label gangsched.io/role or add the role",
    ),
    "two sources that contradict": (
        {},
        {"annotations": {"gangsched.io/min-member": "3"}},
        "Contradiction",
        "make them equal or remove the latter",
    ),
    "an annotation that cannot be read": (
        {},
        {"annotations": {"gangsched.io/min-member": "two"}},
        "InvalidDeclaration",
        "gangsched.io/min-member",
    ),
    "a strategy that is not installed": (
        {"placement": {"strategy": "example.com/magic"}},
        {},
        "StrategyUnknown",
        "example.com/magic",
    ),
}


@pytest.mark.parametrize(("spec", "pod", "reason", "remedy"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_waits_with_a_condition_and_one_event_that_say_what_to_do(
    cluster: Cluster, spec, pod, reason, remedy
) -> None:
    cluster.add_node("n1")
    cluster.add_group("odd", min_member=2, **spec)
    cluster.add_pods("odd", 2, **pod)
    message = cluster.until_reason("odd", reason)
    cluster.until(lambda: cluster.told("odd-1").get("reason") == reason)
    cluster.until(lambda: cluster.events("odd", reason))

    assert remedy in message
    assert len(cluster.events("odd", reason)) == 1
    assert not cluster.bound("odd")


def test_a_pod_whose_claim_does_not_exist_waits_and_says_so(cluster: Cluster) -> None:
    cluster.add_node("n1", labels={"zone": "z"})
    cluster.add_pod("odd", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])
    cluster.until(lambda: cluster.told("odd").get("reason") == "ResourceClaimNotReady")

    assert "the ResourceClaim one, which does not exist" in cluster.told("odd")["message"]
    assert not cluster.bound()


def test_members_that_leave_and_return_are_repaired_first(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="3")
    cluster.add_group("team", min_member=3)
    cluster.add_pods("team", 3)
    cluster.until_bound("team", 3)
    cluster.add_group("rival", min_member=1, priority=100)
    cluster.add_pods("rival", 1)
    cluster.until_reason("rival", "Unschedulable")
    cluster.add_pod("team-3", "team")
    cluster.delete_pod("team-0")
    cluster.until(lambda: "team-3" in cluster.bound("team"))

    assert not cluster.bound("rival")


def test_a_group_is_bound_after_the_api_server_was_away(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1")
    cluster.control_plane.restart_apiserver()
    cluster.add_group("after", min_member=2)
    cluster.add_pods("after", 2)
    cluster.until_bound("after", 2, within_s=60)

    assert operator.child.poll() is None, "the operator ended"
    # The next tests need KWOK, which asks the API server ever more seldom while that is away.
    cluster.until(lambda: cluster.phase("after") == "Running", within_s=120)


def test_metrics_and_probes_tell_what_happened(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1")
    before = operator.metric("gangsched_bindings_total", result="Bound")
    cluster.add_group("counted", min_member=2)
    cluster.add_pods("counted", 2)
    cluster.until_bound("counted", 2)
    cluster.until(lambda: cluster.phase("counted") == "Running")

    assert operator.get("/livez")[0] == 200
    assert operator.get("/readyz")[0] == 200
    assert operator.metric("gangsched_bindings_total", result="Bound") - before == 2


def test_a_restart_loses_no_group_and_repeats_no_event(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1", cpu="3")
    cluster.add_group("whole", min_member=2)
    cluster.add_pods("whole", 2)
    cluster.until_bound("whole", 2)
    cluster.until(lambda: cluster.phase("whole") == "Running")
    cluster.add_group("waits", min_member=2)
    cluster.add_pods("waits", 2)
    cluster.until(lambda: cluster.events("waits", "Unschedulable"))
    cluster.until_reason("waits", "Unschedulable")
    operator.kill()
    cluster.delete_pod("whole-0")
    operator.start()
    cluster.until(lambda: cluster.phase("whole") == "Degraded")
    cluster.delete_pod("whole-1")
    cluster.until_bound("waits", 2)
    cluster.until(lambda: cluster.events("waits", "Scheduled"))

    assert len(cluster.events("whole", "Scheduled")) == 1
    assert len(cluster.events("waits", "Unschedulable")) == 1


def test_sigterm_ends_the_operator_with_status_0(with_crd: ControlPlane) -> None:
    second = Operator(with_crd, "--scheduler-name", "another")
    second.start()

    assert second.stop() == 0


def test_strategies_and_preferences_choose_among_the_nodes_that_take_a_member(cluster: Cluster) -> None:
    """BestFit avoids the wide node, for gangs and for GPU pods without one; a preference for cheap nodes does not."""
    gpu = "nvidia.com/gpu"
    cluster.add_node("wide", extra={gpu: "8"}, labels={"cost": "1"})
    cluster.add_node("dear", extra={gpu: "2"}, labels={"cost": "20"})
    cluster.add_node("cheap", extra={gpu: "2"}, labels={"cost": "3"})
    prefer = [{"key": "cost", "order": "Ascending"}]
    cluster.add_group("tight", min_member=2, placement={"strategy": "BestFit"})
    cluster.add_pods("tight", 2, requests={gpu: "1"})
    cluster.until_bound("tight", 2)
    cluster.add_pod("plain", requests={gpu: "1"})
    cluster.until(lambda: "plain" in cluster.bound())
    cluster.add_group("thrifty", min_member=1, placement={"prefer": prefer})
    cluster.add_pods("thrifty", 1, requests={gpu: "1"})
    cluster.until_bound("thrifty", 1)

    assert set(cluster.bound("tight").values()) == {"cheap"}
    assert cluster.bound()["plain"] == "dear"
    assert cluster.bound("thrifty") == {"thrifty-0": "wide"}


def test_members_go_where_their_pods_prefer_and_still_use_nodes_that_they_do_not(cluster: Cluster) -> None:
    cluster.add_node("a-tainted", taints=[{"key": "old", "effect": "PreferNoSchedule"}])
    cluster.add_node("b-slow")
    cluster.add_node("c-fast", cpu="2", labels={"disk": "ssd"})
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": fast}]}
    cluster.add_group("choosy", min_member=7)
    cluster.add_pods("choosy", 7, affinity={"nodeAffinity": preferred})
    cluster.until_bound("choosy", 7)

    assert Counter(cluster.bound("choosy").values()) == {"c-fast": 2, "b-slow": 4, "a-tainted": 1}


def test_members_that_need_a_feature_wait_for_a_kubelet_that_declares_it(cluster: Cluster) -> None:
    cluster.add_node("n1")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    main = {"name": "main", "image": "registry.invalid/sleep", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    cluster.add_group("restarting", min_member=2, maxScheduleTime="1h")
    cluster.add_pods("restarting", 2, containers=[main])
    message = cluster.until_reason("restarting", "NeverFits")
    feature = "RestartAllContainersOnContainerExits"
    cluster.api.merge("/api/v1/nodes/n1/status", {"status": {"declaredFeatures": [feature]}})
    cluster.until_bound("restarting", 2)

    assert f"1 that do not declare the feature {feature}" in message


def test_all_members_of_a_group_are_bound_in_one_zone_and_a_replacement_too(cluster: Cluster) -> None:
    zone = "topology.kubernetes.io/zone"
    for name, cpu in (("a1", "2"), ("a2", "1"), ("b1", "2"), ("b2", "2")):
        cluster.add_node(name, cpu=cpu, labels={zone: name[0]})
    cluster.add_group("zonal", min_member=4, maxScheduleTime="1h", placement={"topology": {"key": zone}})
    cluster.add_filler("busy", "b1", "1")
    cluster.add_pods("zonal", 4)
    message = cluster.until_reason("zonal", "Unschedulable")
    before = cluster.bound("zonal")
    cluster.delete_pod("busy")
    cluster.until_bound("zonal", 4)
    whole = set(cluster.bound("zonal").values())
    cluster.delete_pod("zonal-0")
    cluster.add_pods("zonal", 1, first=4)
    cluster.until(lambda: "zonal-4" in cluster.bound())

    assert not before
    assert f"Only 3 of 4 members fit into one domain of {zone}" in message
    assert whole == {"b1", "b2"}
    assert cluster.bound()["zonal-4"] in whole
