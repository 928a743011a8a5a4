"""Two operators and one Lease on the real API server: one acts, the other takes over, however the first ends."""

from __future__ import annotations

import json
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gangsched.core.intake import FORMER_LEADER_S
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.nodes import node
from testbed.operator import Operator
from testbed.workloads import member, pod_group
from tests.faults.plan import Fault, Rates
from tests.faults.proxy import ProxyProcess
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

SHORT = {"leaseDuration": "9s", "renewDeadline": "4s", "retryPeriod": "1s"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

Start = Callable[..., Operator]


@pytest.fixture
def lease() -> str:
    """The name of a Lease for this test alone."""
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def start(with_crd: ControlPlane, tmp_path: Path, lease: str) -> Iterator[Start]:
    """Starts an operator that takes part in the election and ends it with the test."""
    with ExitStack() as stack:
        yield lambda **settings: _start(stack, with_crd, tmp_path, lease, **settings)


def _start(
    stack: ExitStack,
    control_plane: ControlPlane,
    folder: Path,
    lease: str,
    *,
    election: dict[str, str] | None = None,
    kubeconfig: Path | None = None,
    **settings: Any,
) -> Operator:
    path = folder / f"{secrets.token_hex(4)}.yaml"
    path.write_text(json.dumps({"leaderElection": {"resourceName": lease, **(election or {})}, **settings}))
    return stack.enter_context(Operator(control_plane, "--config", str(path), leader_elect=True, kubeconfig=kubeconfig))


@pytest.fixture
def slow(with_crd: ControlPlane) -> Iterator[Path]:
    """A kubeconfig through which each binding takes 50 ms: time to end a leader between two of them.

    The server acts at once and the response is late, so that one binding is always in flight.
    """
    with ProxyProcess(with_crd, seed=1, rates=Rates(of={}, delay_s=(0.05, 0.05))) as proxy:
        proxy.next(fault=Fault.DELAY_AFTER, method="POST", path_contains="/binding", times=10_000)
        yield proxy.kubeconfig_for()


def bound_by(operator: Operator) -> float:
    return operator.metric("gangsched_bindings_total", result="Bound")


def exit_status(operator: Operator, within_s: float = 15) -> int:
    return operator.child.wait(timeout_s=within_s)


def add_gangs(cluster: Cluster, count: int, *, members: int) -> None:
    for number in range(count):
        cluster.add_gang(f"g{number}", members)


def sizes(cluster: Cluster, count: int) -> list[int]:
    """How many members of each gang are bound."""
    bound = cluster.bound()
    return [sum(name.rpartition("-")[0] == f"g{number}" for name in bound) for number in range(count)]


def test_a_leader_ended_in_the_middle_of_a_gang_hands_over_at_once_to_a_standby_that_has_bound_nothing(
    cluster: Cluster, start: Start, slow: Path, lease: str, show: Callable[[str], None]
) -> None:
    """One binding at a time, so that the signal comes in the middle of the gang."""
    cluster.add_node("n1", cpu="20")
    leader, standby = start(bindConcurrency=1, kubeconfig=slow), start()
    cluster.add_gang("first", 2)
    cluster.until_bound("first", 2)
    spec = cluster.api.get(f"{LEASES}/{lease}")["spec"]
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
    assert leader.get("/readyz") == (200, "ok: leading\n")
    assert standby.get("/readyz") == (200, f"ok: standby; the leader is {spec['holderIdentity']}\n")
    assert (leader.metric("gangsched_leader"), standby.metric("gangsched_leader")) == (1, 0)
    # A binding is counted when its answer comes.
    until(lambda: (bound_by(leader), bound_by(standby)) == (2, 0))
    until(lambda: standby.metric("gangsched_pods") >= 2, what="a standby must know all that the leader knows")
    until(lambda: cluster.api.get(f"{LEASES}/{lease}")["spec"]["renewTime"] > spec["renewTime"])

    cluster.add_gang("large", 16)
    until(lambda: len(cluster.bound("large")) >= 2)
    began = time.monotonic()
    leader.child.signal(signal.SIGTERM)
    assert exit_status(leader) == 0
    assert len(cluster.bound("large")) < 16
    cluster.until_bound("large", 16)
    took_s = time.monotonic() - began
    assert "lease released" in leader.log
    assert cluster.api.get(f"{LEASES}/{lease}")["spec"]["leaseTransitions"] == 1
    assert took_s < 12, "it has waited until the lease expired"
    show(f"hand-over: a gang was whole {took_s:.1f} s after the leader's SIGTERM")


def test_a_leader_killed_in_the_middle_of_ten_gangs_leaves_none_in_pieces(
    cluster: Cluster, start: Start, slow: Path, show: Callable[[str], None]
) -> None:
    """Room for eight of ten gangs of four; one binding at a time, so that the kill comes in the middle of a gang."""
    for number in range(4):
        cluster.add_node(f"n{number}", cpu="8", wait=False)
    leader, standby = start(election=SHORT, bindConcurrency=1, kubeconfig=slow), start(election=SHORT)
    add_gangs(cluster, 10, members=4)
    until(lambda: len(cluster.bound()) >= 10)
    leader.kill()
    killed = time.monotonic()
    time.sleep(0.5)
    left = sizes(cluster, 10)
    bound = sum(left)
    until(lambda: len(cluster.bound()) > bound, within_s=60)
    took_s = time.monotonic() - killed
    cluster.until(lambda: sum(sizes(cluster, 10)) == 32)

    assert took_s < 30, "it has taken longer than one Lease"
    assert sorted(sizes(cluster, 10)) == [0] * 2 + [4] * 8
    assert standby.get("/readyz")[0] == 200
    pieces = sum(0 < size < 4 for size in left)
    show(f"fail-over: first binding {took_s:.1f} s after SIGKILL with {bound} of 32 bound, {pieces} gang in pieces")


def test_a_leader_stopped_until_another_has_taken_over_binds_nothing_more_and_stands_by(
    cluster: Cluster, start: Start, slow: Path
) -> None:
    for number in range(4):
        cluster.add_node(f"n{number}", cpu="10", wait=False)
    leader = start(election=SHORT, bindConcurrency=1, kubeconfig=slow)
    standby = start(election=SHORT)
    add_gangs(cluster, 10, members=4)
    until(lambda: len(cluster.bound()) >= 4)
    leader.child.signal(signal.SIGSTOP)
    until(lambda: standby.metric("gangsched_leader") == 1)
    cluster.until(lambda: sum(sizes(cluster, 10)) == 40)
    woken = datetime.now(UTC)
    leader.child.signal(signal.SIGCONT)

    until(
        lambda: leader.get("/readyz")[1].startswith("ok: standby; the leader is"),
        what=lambda: f"it stands by: {leader.get('/readyz')}\n{leader.log[-3000:]}\n{standby.log[-3000:]}",
    )
    assert leader.metric("gangsched_leases_lost_total") == 1
    # It may have been stopped between its check that it leads and its request; with bindConcurrency=1 that is one.
    assert bindings_since(cluster, woken) in ([], [409])
    assert bound_by(standby) > 0
    for name in cluster.bound("g0"):
        cluster.delete_pod(name)
    assert standby.stop() == 0
    before = bound_by(leader)
    cluster.add_pods("g0", 4)
    cluster.until_bound("g0", 4)
    # It leads again, and knows its former machine's writes; a binding is counted when its response has arrived.
    until(lambda: bound_by(leader) >= before + 4)
    assert bound_by(leader) == before + 4


def bindings_since(cluster: Cluster, moment: datetime) -> list[int]:
    """The answers to binding requests in the test's namespace after that moment, from the audit log."""
    time.sleep(0.5)
    return [
        event["responseStatus"]["code"]
        for event in cluster.control_plane.audited(naming=cluster.namespace)
        if event.get("objectRef", {}).get("subresource") == "binding"
        and event["objectRef"]["namespace"] == cluster.namespace
        and datetime.fromisoformat(event["requestReceivedTimestamp"]) > moment
    ]


@pytest.fixture(scope="module")
def lonely() -> Iterator[ControlPlane]:
    """An API server for these tests alone, so that they may stop it."""
    with ControlPlane(controllers=False, kwok=False, not_ready_taint=False) as running:
        crds.install(running)
        yield running


def test_a_leader_that_cannot_renew_its_lease_stands_by_and_leads_again(
    lonely: ControlPlane, tmp_path: Path, lease: str
) -> None:
    with ExitStack() as stack:
        leader = _start(stack, lonely, tmp_path, lease, election=SHORT)
        server = lonely._apiserver  # noqa: SLF001 - the testbed can stop a server but not freeze it
        server.signal(signal.SIGSTOP)
        until_lost(leader, times=1)
        server.signal(signal.SIGCONT)
        until_leading_again(lonely, leader, lease, term=2)
        lonely.kill_apiserver()
        until_lost(leader, times=2)
        lonely.start_apiserver()
        until_leading_again(lonely, leader, lease, term=3)
        assert leader.child.poll() is None


def until_lost(leader: Operator, *, times: int) -> None:
    """Wait until it has lost its Lease for the n-th time, and says that the API server does not answer."""
    until(lambda: leader.metric("gangsched_leader") == 0, within_s=20)
    until(lambda: leader.log.count("no longer leading") == times)
    until(lambda: "has not answered for" in leader.get("/readyz")[1])
    assert leader.metric("gangsched_api_problem_seconds", problem="Unreachable") > 0


def until_leading_again(control_plane: ControlPlane, leader: Operator, lease: str, *, term: int) -> None:
    """Wait until it leads, in another term, which waits until the lease of the last has expired."""
    until(lambda: leader.get("/readyz") == (200, "ok: leading\n"))
    identity = control_plane.api.get(f"{LEASES}/{lease}")["spec"]["holderIdentity"]
    assert identity.endswith(f"-{term}")


def test_a_custom_resource_definition_that_is_away_for_a_while_ends_nobody(lonely: ControlPlane) -> None:
    """Its PodGroups are deleted with it; those created after it is back are scheduled at once."""
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.gangsched.io"
    lonely.api.post("/api/v1/nodes", node("crd-1", ready=True))
    with Operator(lonely) as operator:
        lonely.api.delete(definition)
        until(lambda: "install the CustomResourceDefinition" in operator.get("/readyz")[1])
        crds.install(lonely)
        lonely.api.post("/apis/gangsched.io/v1alpha1/namespaces/default/podgroups", pod_group("again", min_member=2))
        for number in range(2):
            lonely.api.post("/api/v1/namespaces/default/pods", member(f"again-{number}", "again"))
        until(lambda: bound_by(operator) == 2, within_s=15)
        until(lambda: operator.get("/readyz")[0] == 200)
        assert operator.child.poll() is None


@pytest.mark.timeout(150)
def test_a_missing_right_is_named_after_a_minute_and_used_once_it_is_granted_and_a_wrong_token_is_called_one(
    with_crd: ControlPlane, lease: str, tmp_path: Path
) -> None:
    """One account may read everything but use no Lease; another has an invalid token. Neither operator ends."""
    name = f"reader-{lease}"
    with_crd.kubectl("create", "serviceaccount", name, "-n", "default")
    with_crd.kubectl("create", "clusterrole", name, "--verb=get,list,watch", "--resource=podgroups,pods,nodes")
    with_crd.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount=default:{name}")
    rules = [
        *({"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["list", "watch"]},),
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["persistentvolumeclaims", "persistentvolumes"], "verbs": ["list", "watch"]},
        *(
            {"apiGroups": ["storage.k8s.io"], "resources": [name], "verbs": ["list", "watch"]}
            for name in ("storageclasses", "csinodes", "volumeattachments", "csidrivers", "csistoragecapacities")
        ),
        {"apiGroups": ["gangsched.io"], "resources": ["podgroups"], "verbs": ["list", "watch"]},
    ]
    with_crd.api.merge(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}", {"rules": rules})
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"leaderElection": {"resourceName": lease}}))
    operators = [
        Operator(with_crd, "--config", str(config), kubeconfig=kubeconfig, leader_elect=True)
        for kubeconfig in (with_crd.kubeconfig_of_service_account("default", name), with_crd.kubeconfig_for(token="x"))
    ]
    for operator in operators:
        operator.launch()
    lacking, stranger = operators
    until(lambda: "cannot get resource" in lacking.get("/readyz")[1])
    assert "give its account a role" not in lacking.log
    remedy = "give its account a role with the verb get on leases of the API group coordination.k8s.io"
    until(lambda: remedy in lacking.get("/readyz")[1], within_s=80)
    until(lambda: lacking.log.count(remedy) == 1)
    assert lacking.metric("gangsched_api_problem_seconds", problem="Denied") > 59
    until(lambda: "check that the token, certificate or plug-in" in stranger.get("/readyz")[1], within_s=30)
    assert "give its account a role" not in stranger.log + stranger.get("/readyz")[1]
    assert lacking.log.count(remedy) == 1, "it is said once, however often it is refused"
    more = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]
    with_crd.api.merge(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}", {"rules": rules + more})
    until(lambda: lacking.get("/readyz") == (200, "ok: leading\n"))
    for operator in operators:
        assert operator.child.poll() is None
        assert operator.stop() == 0


def test_an_operator_whose_pods_somebody_else_binds_says_so(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1", cpu="16")
    # Until then such bindings may be a former leader's last ones.
    time.sleep(FORMER_LEADER_S)
    cluster.add_pod("stolen", requests={"cpu": "17"})
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/stolen/binding"
    cluster.api.post(path, {"metadata": {"name": "stolen"}, "target": {"kind": "Node", "name": "n1"}})
    cluster.until(lambda: operator.metric("gangsched_rival_bindings_total") > 0)
    status, problem = operator.get("/readyz")
    assert status == 503
    assert "another process bound a pod of our schedulerName" in problem
    assert "another process binds pods of our schedulerName" in operator.log
