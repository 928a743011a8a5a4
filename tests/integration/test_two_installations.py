"""Two operators with different schedulerNames on one API server: each group belongs to one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

SCHEDULER = "gangsched.io/scheduler"


def operator(with_crd: ControlPlane, folder: Path, name: str) -> Operator:
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump({"leaderElection": {"resourceName": f"{name}-beside"}}))
    return Operator(with_crd, "--scheduler-name", name, "--config", str(config), leader_elect=True)


@pytest.fixture(scope="module")
def both(with_crd: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Operator, Operator]]:
    folder = tmp_path_factory.mktemp("installations")
    with operator(with_crd, folder, "gangsched") as first, operator(with_crd, folder, "green") as green:
        until(lambda: (first.metric("gangsched_leader"), green.metric("gangsched_leader")) == (1, 1))
        yield first, green
        for each in (first, green):
            assert "Traceback" not in each.log
    # Other tests look for leftover Leases.
    for name in ("gangsched", "green"):
        with_crd.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}-beside")


def writes(one: Operator) -> float:
    """How many writes of any kind it has decided."""
    return one.metric("gangsched_effects_total")


def annotate(cluster: Cluster, group: str, name: str | None) -> None:
    path = f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups/{group}"
    cluster.api.merge(path, {"metadata": {"annotations": {SCHEDULER: name}}})


def test_members_decide_whose_a_group_is_and_the_other_writes_nothing(cluster, both):
    first, green = both
    cluster.add_node("n1", cpu="4")
    cluster.add_group("a", min_member=2)
    cluster.add_pods("a", 1, scheduler="green")
    # The PodGroup had no pods for a moment, and belonged to the first operator.
    cluster.until(lambda: cluster.status("a").get("scheduler") == "green")
    before = writes(first)
    cluster.add_pods("a", 1, first=1, scheduler="green")
    cluster.until_bound("a", 2)
    # This is the group's last status write.
    cluster.until(lambda: (cluster.phase("a"), cluster.status("a").get("running")) == ("Running", 2))
    # One write may have been in flight.
    assert writes(first) - before <= 1
    before = writes(green)
    cluster.add_group("b", min_member=2)
    cluster.add_pods("b", 2)
    cluster.until_bound("b", 2)
    cluster.until(lambda: cluster.phase("b") in ("Scheduled", "Running"))
    assert "scheduler" not in cluster.status("b")
    assert writes(green) == before


@pytest.mark.usefixtures("both")
def test_the_annotation_decides_about_a_group_without_pods_and_may_change(cluster):
    cluster.add_group("a", min_member=2)
    cluster.until_reason("a", "NoMembers")
    assert "scheduler" not in cluster.status("a")
    annotate(cluster, "a", "green")
    cluster.until(lambda: cluster.status("a").get("scheduler") == "green")
    annotate(cluster, "a", "gangsched")
    cluster.until(lambda: "scheduler" not in cluster.status("a"))
    assert cluster.condition("a")["reason"] == "NoMembers"


@pytest.mark.usefixtures("both")
def test_pods_of_both_are_told_by_one_operator_with_the_remedy(cluster):
    cluster.add_node("n1", cpu="4")
    cluster.add_pod("a-0", "a")
    cluster.add_group("a", min_member=2)
    cluster.until_reason("a", "GangIncomplete")
    cluster.add_pod("a-1", "a", scheduler="green")
    cluster.until(lambda: cluster.events("a-1", "ForeignMember"))
    [event] = cluster.events("a-1", "ForeignMember")
    assert "Set schedulerName to gangsched or remove the label." in event["note"]
    assert cluster.events("a-0", "ForeignMember") == []
    cluster.until(lambda: "its schedulerName is green" in cluster.condition("a")["message"], within_s=60)
    annotate(cluster, "a", "green")
    cluster.until(lambda: cluster.status("a").get("scheduler") == "green")
    assert cluster.status("a")["members"] == 1
    cluster.until(lambda: cluster.events("a-0", "ForeignMember"))
    assert "Set schedulerName to green" in cluster.events("a-0", "ForeignMember")[0]["note"]


@pytest.mark.usefixtures("both")
def test_places_held_for_a_group_that_passes_to_the_other_are_free_at_once(cluster):
    cluster.add_node("n1", cpu="3")
    roles = [{"name": "worker", "minMember": 3, "template": {"requests": {"cpu": "1"}}}]
    cluster.add_group("a", min_member=3, roles=roles, maxScheduleTime="10m")
    cluster.add_pod("a-0", "a", labels={"gangsched.io/role": "worker"})
    cluster.until_bound("a", 1)
    cluster.until(lambda: cluster.status("a").get("reservation"))
    cluster.add_group("b", min_member=2)
    cluster.add_pods("b", 2)
    cluster.until_reason("b", "Unschedulable")
    cluster.delete_pod("a-0")
    cluster.add_pod("a-9", "a", scheduler="green", requests={"cpu": "64"})
    cluster.until_bound("b", 2)
    cluster.until(lambda: cluster.status("a").get("scheduler") == "green")
    cluster.until(lambda: "reservation" not in cluster.status("a"))


def test_an_operator_that_starts_again_finds_what_is_its_own(cluster, both):
    first, green = both
    cluster.add_node("n1", cpu="4")
    for name, scheduler in (("a", "green"), ("b", "gangsched")):
        cluster.add_pods(name, 1, scheduler=scheduler)
        cluster.add_group(name, min_member=2)
    cluster.until_reason("a", "GangIncomplete")
    cluster.until_reason("b", "GangIncomplete")
    green.stop()
    green.start()
    cluster.add_pods("a", 1, first=1, scheduler="green")
    cluster.add_pods("b", 1, first=1)
    cluster.until_bound("a", 2)
    cluster.until_bound("b", 2)
    assert (cluster.status("a")["scheduler"], cluster.status("b").get("scheduler")) == ("green", None)
    assert first.metric("gangsched_leader") == 1


@pytest.mark.usefixtures("both")
def test_a_schedulername_that_nobody_serves_is_told_on_the_pod_by_the_default_installation_alone(cluster):
    cluster.add_group("a", min_member=1)
    cluster.add_pod("a-0", "a", scheduler="gangshed")
    cluster.until(lambda: cluster.events("a-0", "ForeignMember"), within_s=40)
    [event] = cluster.events("a-0", "ForeignMember")
    assert "no scheduler named gangshed has reacted to it within 20s" in event["note"]
    assert "gangshed" not in str(cluster.status("a"))
