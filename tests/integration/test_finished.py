"""Finished PodGroups on the real API server: deleted after their time to live, with the chart's rights alone."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gangsched.api.status_conversion import status_to_object
from gangsched.core.objects.record import Minima, Outcome, Phase, Record
from gangsched.core.objects.status import Condition, GroupStatus
from gangsched.operator.finished import SELECTOR
from testbed.api import Api
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import pod_group
from tests.effort import tries
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

NAMESPACE = "gangsched-finished"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gangsched"
MANY, TTL_S = min(1000, 240 * tries(1)), 1.0
ELECTION = {"leaseDuration": "9s", "renewDeadline": "4s", "retryPeriod": "1s", "resourceNamespace": NAMESPACE}

pytestmark = pytest.mark.timeout(300)

Start = Callable[..., Operator]


@pytest.fixture(scope="module")
def account(with_crd: ControlPlane) -> Iterator[Path]:
    """The operator's account, which may delete PodGroups because the chart's values ask for it."""
    with chart_account(with_crd, NAMESPACE, "--set", "config.podGroups.deleteFinished=true"):
        yield with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")


@pytest.fixture
def start(with_crd: ControlPlane, account: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a replica with that account; all replicas of a test share a Lease."""
    election = {**ELECTION, "resourceName": "gangsched"}

    def started(**pod_groups: Any) -> Operator:
        path = tmp_path / f"{secrets.token_hex(4)}.yaml"
        settings = {"leaderElection": election, "podGroups": {"deleteFinished": True, **pod_groups}}
        path.write_text(json.dumps(settings))
        arguments = ("--config", str(path))
        return stack.enter_context(Operator(with_crd, *arguments, leader_elect=True, kubeconfig=account))

    with ExitStack() as stack:
        yield started


def finish(api: Api, namespace: str, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> None:
    """Create a PodGroup whose run has ended well."""
    path = f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"
    group = pod_group(name, min_member=1, **spec)
    group["metadata"]["annotations"] = annotations or {}
    api.post(path, group)
    now = time.time()
    record = Record(
        phase=Phase.SUCCEEDED,
        run_start=now,
        outcome=Outcome.SUCCEEDED,
        scheduled_at=now,
        satisfied=Minima(1),
        succeeded=(("", 1),),
    )
    message = "The run ended with 1 member succeeded."
    status = GroupStatus(
        record,
        conditions=(Condition("Scheduled", status=True, reason="Succeeded", message=message, since=now, generation=1),),
        attempts=1,
        source="gangsched PodGroup",
        finished_at=now,
    )
    api.merge(f"{path}/{name}/status", status_to_object(status))


def finish_many(cluster: Cluster, names: list[str], **spec: Any) -> None:
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(lambda name: finish(cluster.api, cluster.namespace, name, **spec), names))


def deleted_by(operator: Operator) -> float:
    return operator.metric("gangsched_writes_total", kind="DeleteGroup", result="Written")


def cpu_s(operator: Operator) -> float:
    """Processor time that the operator has taken."""
    fields = Path(f"/proc/{operator.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(operator: Operator) -> float:
    statm = Path(f"/proc/{operator.child.pid}/statm").read_text()
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.explores
def test_hundreds_are_gone_a_minute_after_their_time_to_live_across_a_change_of_leader(
    cluster: Cluster, start: Start, show: Callable[[str], None]
) -> None:
    """They ended before the replicas started, which read their statuses; the leader ends in the middle of the work."""
    finish_many(cluster, [f"g{number}" for number in range(MANY)], ttlAfterFinished=f"{TTL_S:g}s")
    finish_many(cluster, [f"kept-{number}" for number in range(3)], annotations={"gangsched.io/keep": "true"})
    finish_many(cluster, [f"stays-{number}" for number in range(3)])
    spared = {f"{kind}-{number}" for kind in ("alive", "kept", "stays") for number in range(3)}
    cluster.add_node("n1", cpu="4")
    leader = start()
    led = time.monotonic()
    standby = start()
    before_mb, began_s = resident_mb(standby), cpu_s(standby)
    for number in range(3):
        name = f"alive-{number}"
        cluster.add_group(name, min_member=1, ttlAfterFinished="1s", timeoutPolicy="Fail", maxScheduleTime="1s")
        cluster.add_pods(name, 1, requests={"cpu": "99"})
    cluster.until(lambda: all(cluster.phase(f"alive-{number}") == "Failed" for number in range(3)))
    until(lambda: deleted_by(leader) >= 24)
    assert leader.stop() == 0
    until(lambda: set(cluster.groups()) == spared, within_s=TTL_S + 60)
    took_s, own = time.monotonic() - led, deleted_by(standby)
    assert took_s < TTL_S + 60
    assert own > MANY / 4
    used_ms = 1000 * (cpu_s(standby) - began_s) / own
    show(f"{MANY} finished groups were gone {took_s:.0f} s after a replica led, across a change of leader")
    show(f"a finished group cost {used_ms:.1f} ms of processor time in all of the operator")
    show(f"the operator's memory grew by {resident_mb(standby) - before_mb:.0f} MB meanwhile")
    assert cluster.control_plane.not_permitted(ACCOUNT) == []
    time.sleep(2 * TTL_S)
    assert set(cluster.groups()) == spared
    watched = [entry["requestURI"] for entry in cluster.control_plane.audited(ACCOUNT) if entry["verb"] == "watch"]
    limited = [uri for uri in watched if "podgroups?" in uri and "fieldSelector=status.phase" in uri]
    assert limited, "the API server does not limit the watch"


def test_the_server_selects_finished_groups_whatever_their_fields(cluster: Cluster) -> None:
    cluster.add_group("new", min_member=1)
    finish(cluster.api, cluster.namespace, "done")
    path = f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups?fieldSelector={SELECTOR}"
    assert [group["metadata"]["name"] for group in cluster.api.get(path)["items"]] == ["done"]
