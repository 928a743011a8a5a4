"""Places that are reserved for a starved group on the real API server, with the chart's rights alone.

Nothing ends a pod here at its limit but the Job controller, so the tests act as kubelets.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import pod_template
from tests.integration.cluster import Cluster, Json
from tests.integration.test_preemption_kills import add_victims, end_victims
from tests.integration.urgent import alive, evictions

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("operator")]
NAMESPACE = "gangsched-reserves"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gangsched"
SETTINGS = {"reservation": {"starvationAge": "2s"}}
LIMIT_S = 16
"""The limit of what fills the nodes."""
GRACE_S = 6
"""Its grace period, of which it uses nothing: so much earlier than the computed start the nodes are left."""


@pytest.fixture(scope="module")
def operator(with_crd: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """gangsched with the rights of the chart, which suffice."""
    config = tmp_path_factory.mktemp("reservations") / "config.json"
    config.write_text(json.dumps(SETTINGS))
    with chart_account(with_crd, NAMESPACE):
        account = with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")
        with Operator(with_crd, "--config", str(config), kubeconfig=account) as running:
            yield running
    assert with_crd.not_permitted(ACCOUNT) == []


def test_a_starved_gang_is_bound_by_its_start_while_others_use_its_places_until_then(
    cluster: Cluster, operator: Operator
) -> None:
    """A Job and small pods fill the nodes, and more of them wait; whoever ends in time is let in.

    A new leader keeps places and start.
    """
    fill(cluster)
    add_starved(cluster)
    for number in range(3):
        cluster.add_pod(f"long-{number}", activeDeadlineSeconds=3600)
    kept = until_reserved(cluster)
    assert {place["node"] for place in kept["placements"]} == {"n1", "n2"}
    assert 0 < (at(kept["start"]) - datetime.now(UTC)).total_seconds() <= LIMIT_S + GRACE_S
    cluster.until_reason("gang", "ReservedLater")
    finish(cluster, "small-0", "Succeeded")
    add_late(cluster)
    cluster.until_reason("late", "NotBeforeReservation")
    cluster.add_pod("short", activeDeadlineSeconds=2)
    cluster.until(lambda: "short" in cluster.bound(), what="who ends in time is let in")
    operator.kill()
    operator.start()
    assert reserved(cluster) == kept
    cluster.until(lambda: bound(cluster), what="the gang has its places")
    assert bound_at(cluster) <= at(kept["start"])
    assert not {"late-0", "long-0", "long-1", "long-2"} & cluster.bound().keys()
    assert evictions(cluster) == []


def test_who_lasts_longer_than_declared_is_evicted_as_a_whole(cluster: Cluster) -> None:
    """The gang needs both nodes; on one of them runs a group that has declared to end, and does not."""
    cluster.add_node("n1", cpu="2")
    cluster.add_group("word", min_member=2, expectedRunTime="8s")
    add_victims(cluster, "word", 2)
    cluster.until_bound("word", 2)
    cluster.add_node("n2", cpu="2")
    add_starved(cluster)
    start = until_reserved(cluster)["start"]
    cluster.until(lambda: len(alive(cluster, "word")) == 0, what="all are told to leave")
    preempted = cluster.status("word")["preempted"]
    assert preempted["cause"] == "Overdue"
    assert at(preempted["at"]) >= at(start)
    end_victims(cluster)
    cluster.until_bound("gang", 2)
    assert sorted({name for name, _ in evictions(cluster)}) == ["word-0", "word-1"]
    cluster.until(lambda: cluster.status("word")["preemptions"] == 1, what="it is counted")
    cluster.until(lambda: cluster.events("word", "Preempted"), what="an Event on the group")


def fill(cluster: Cluster) -> None:
    """Two nodes, full of two pods of a Job and two without an owner, all with a limit."""
    cluster.add_node("n1", cpu="2")
    cluster.add_node("n2", cpu="2")
    limits = pod_template("", restartPolicy="Never", terminationGracePeriodSeconds=GRACE_S)
    cluster.add_job("job", 2, template=limits, activeDeadlineSeconds=LIMIT_S)
    for number in range(2):
        cluster.add_pod(f"small-{number}", activeDeadlineSeconds=LIMIT_S, terminationGracePeriodSeconds=GRACE_S)
    cluster.until(lambda: len(cluster.bound()) == 4, what="the nodes are full")


def add_starved(cluster: Cluster) -> None:
    """A gang each of whose members needs a whole node."""
    cluster.add_group("gang", min_member=2)
    cluster.add_pods("gang", 2, requests={"cpu": "2"})


def add_late(cluster: Cluster) -> None:
    """A group that is not known to end before the start."""
    cluster.add_group("late", min_member=1, expectedRunTime="1h")
    cluster.add_pods("late", 1)


def until_reserved(cluster: Cluster) -> Json:
    """Wait until places are reserved for the gang from a time on."""
    cluster.until(lambda: reserved(cluster)["start"], what="places are reserved for the gang")
    assert reserved(cluster)["kind"] == "Time"
    return reserved(cluster)


def reserved(cluster: Cluster) -> Json:
    """What the status of the gang says is reserved, but for when that is given up."""
    return {name: value for name, value in cluster.status("gang")["reservation"].items() if name != "expires"}


def bound(cluster: Cluster) -> bool:
    """Whether the gang is bound; meanwhile pods end at their limits."""
    for pod in alive(cluster, ""):
        limit_s, began = pod["spec"].get("activeDeadlineSeconds"), pod["status"].get("startTime")
        if limit_s and began and at(began) + timedelta(seconds=limit_s) <= datetime.now(UTC):
            with contextlib.suppress(ApiError):
                finish(cluster, pod["metadata"]["name"], "Failed")
    return len(cluster.bound("gang")) == 2


def finish(cluster: Cluster, name: str, phase: str) -> None:
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{name}/status"
    cluster.api.merge(path, {"status": {"phase": phase}})


def bound_at(cluster: Cluster) -> datetime:
    """When the last member was bound."""
    names = [pod["metadata"]["name"] for pod in cluster.pods("gang")]
    return max(at(cluster.told(name)["lastTransitionTime"]) for name in names)


def at(time_: str) -> datetime:
    return datetime.fromisoformat(time_)
