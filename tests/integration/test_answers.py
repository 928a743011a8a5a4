"""Tenants who may not list the cluster query the operator: a leader and a standby, real tokens, RBAC, port-forward.

Only the kubelet is fake (tests/integration/kubelet.py): the control plane has none.
"""

from __future__ import annotations

import json
import re
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from gangsched.answers import gate, server
from gangsched.cli import main
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import member
from tests.integration.cluster import Cluster
from tests.integration.kubelet import Kubelet, kubelet
from tests.integration.waiting import until

PODS = ("replica-0", "replica-1")
OTHERS = "answers-others"

pytestmark = pytest.mark.timeout(240)


@dataclass
class Tenants:
    """The namespace of the `cluster` belongs to the tenant; `tenant` may edit in it, and `reader` may view."""

    cluster: Cluster
    system: str
    kubeconfig: Path
    replicas: list[Operator]
    announced: dict[str, str]
    kubelet: Kubelet


def rights_of(cluster: Cluster, account: str, role: str) -> None:
    api, namespace = cluster.api, cluster.namespace
    api.post(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
        {
            "metadata": {"name": f"{account}-{role}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        },
    )


@pytest.fixture(scope="module", autouse=True)
def _others(with_crd: ControlPlane) -> Iterator[None]:
    with_crd.api.post("/api/v1/namespaces", {"metadata": {"name": OTHERS}})
    until(lambda: with_crd.api.get(f"/api/v1/namespaces/{OTHERS}/serviceaccounts")["items"])
    yield
    with_crd.api.delete(f"/api/v1/namespaces/{OTHERS}")


@pytest.fixture
def tenants(with_crd: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Tenants]:
    """5 CPUs: a group of ours and one of others hold 2 each; one more of each waits, that of the others first."""
    api, values = with_crd.api, "answers.tenants[0].kind=ServiceAccount,answers.tenants[0].name=tenant"
    system = f"gangsched-answers-{secrets.token_hex(3)}"
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps({"answers": {"enabled": True, "port": 0}, "leaderElection": {"resourceNamespace": system}})
    )
    for account in ("tenant", "reader", "nobody"):
        api.post(f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts", {"metadata": {"name": account}})
    rights_of(cluster, "tenant", "edit")
    rights_of(cluster, "reader", "view")
    with ExitStack() as stack:
        own = f"{values},answers.tenants[0].namespace={cluster.namespace},answers.enabled=true"
        stack.enter_context(chart_account(with_crd, system, "--set", own))
        played = stack.enter_context(kubelet())
        with_crd.add_node("where-it-runs", cpu="1", labels={"operator": "yes"}, taints=[TAINT])
        until(lambda: is_reached_at(with_crd, "where-it-runs", played.port))
        until(lambda: api.get(f"/api/v1/namespaces/{system}/serviceaccounts/default"))
        replicas = []
        kubeconfig = with_crd.kubeconfig_of_service_account(system, "gangsched")
        for name in PODS:
            pod = member(
                name, scheduler="default-scheduler", nodeName="where-it-runs", tolerations=[{"operator": "Exists"}]
            )
            api.post(f"/api/v1/namespaces/{system}/pods", pod)
            env = {"POD_NAME": name, "POD_NAMESPACE": system}
            operator = Operator(with_crd, "--config", str(config), kubeconfig=kubeconfig, env=env, leader_elect=True)
            replicas.append(stack.enter_context(operator))
        cluster.add_node("secret-node-1", cpu="3")
        cluster.add_node("secret-node-2", cpu="2")
        others = Cluster(with_crd, OTHERS)
        stack.callback(empty, others)
        for each, group in ((cluster, "own"), (others, "foreign")):
            each.add_group(group, min_member=2)
            each.add_pods(group, 2)
            each.until_bound(group, 2)
        others.add_group("before", min_member=3, maxScheduleTime="1h")
        others.add_pods("before", 3)
        others.until_reason("before", "Unschedulable")
        cluster.add_group("waiter", min_member=3, maxScheduleTime="1h")
        cluster.add_pods("waiter", 3)
        cluster.until_reason("waiter", "Unschedulable")
        tenant = with_crd.kubeconfig_of_service_account(cluster.namespace, "tenant")
        until(lambda: len(announced(with_crd, system)) == len(PODS))
        yield Tenants(cluster, system, tenant, replicas, announced(with_crd, system), played)


def is_reached_at(control_plane: ControlPlane, node: str, port: int) -> bool:
    """Whether the API server finds the node's kubelet at that port; if not, write it to the node's status."""
    path = f"/api/v1/nodes/{node}"
    status = control_plane.api.get(path)["status"]
    if not status.get("addresses"):
        return False  # KWOK has not written them yet
    if (
        status["addresses"][0]["address"] == "127.0.0.1"
        and status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == port
    ):
        return True
    endpoint = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    control_plane.api.merge(f"{path}/status", {"status": {"addresses": addresses, **endpoint}})
    return False


def empty(cluster: Cluster) -> None:
    """Empty the namespace, so that its pods hold nothing that a later test needs."""
    for group in cluster.groups():
        cluster.delete_group(group)
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods", grace_s=0)


TAINT = {"key": "operator", "value": "only", "effect": "NoSchedule"}


def announced(control_plane: ControlPlane, system: str) -> dict[str, str]:
    pods = control_plane.api.get(f"/api/v1/namespaces/{system}/pods")["items"]
    return {
        pod["metadata"]["name"]: each["message"]
        for pod in pods
        for each in pod.get("status", {}).get("conditions", [])
        if each["type"] == "gangsched.io/answers"
    }


def reached(message: str) -> tuple[str, str]:
    """The flags that select the replica, which shares our loopback."""
    found = re.fullmatch(r"port ([0-9]+), certificate (sha256:[0-9a-f]{64})", message)
    assert found
    return f"--via=127.0.0.1:{found[1]}", f"--fingerprint={found[2]}"


@pytest.fixture
def explain(tenants: Tenants, capsys):
    """The exit status, standard output and standard error of the command as the tenant calls it."""

    def run(name: str, account: str, *arguments: str):
        where = f"{tenants.cluster.namespace}/{name}" if "/" not in name else name
        command = ["explain", where, "--kubeconfig", str(tenants.kubeconfig), "--operator-namespace", tenants.system]
        status = main([*command, "--ask-operator-as", account, *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_a_tenant_is_told_by_each_replica_what_only_the_operator_can_know(tenants, explain, capsys):
    """Through the API server's own port-forward, then from both replicas, one of them a standby."""
    cluster = tenants.cluster
    status, out, err = explain("waiter", "reader", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    shortfall = told["shortfall"]
    assert (told["phase"], told["reason"]) == ("Queued", "Unschedulable")
    assert (shortfall["wanted"], shortfall["fits"], shortfall["lacks"]) == (3, 1, {"cpu": "2"})
    assert shortfall["heldBy"] == [{"namespace": cluster.namespace, "name": "own", "amount": "2"}]
    assert (shortfall["heldByOthers"], shortfall["ahead"], shortfall["othersAhead"]) == (1, [], 1)
    assert f"the end of {cluster.namespace}/own: the group fits then" in told["helps"]
    assert tenants.kubelet.asked
    for hidden in (OTHERS, "foreign", "before", "secret-node"):
        assert hidden not in out

    roles = sorted(replica.get("/readyz")[1].split("; ")[0].strip() for replica in tenants.replicas)
    assert roles == ["ok: leading", "ok: standby"]
    for message in tenants.announced.values():
        _, again, _ = explain("waiter", "reader", "--json", *reached(message))
        found = json.loads(again)
        assert (found["shortfall"], found["helps"]) == (shortfall, told["helps"])

    _, text, _ = explain("waiter-0", "reader")
    assert text.startswith(f"{cluster.namespace}/waiter: Queued Unschedulable\n")
    assert "1 of other namespaces" in text

    # Without asking there is only the status.
    main(["explain", f"{cluster.namespace}/waiter", "--kubeconfig", str(tenants.kubeconfig)])
    assert "--ask-operator-as" in " ".join(capsys.readouterr().out.split())

    assert cluster.control_plane.not_permitted(f"system:serviceaccount:{tenants.system}:gangsched") == []
    assert (
        sum(replica.metric("gangsched_answer_duration_seconds_count", status="200") for replica in tenants.replicas)
        == 4
    )


def test_a_replica_that_has_gone_is_passed_over(tenants, explain):
    """Its announcement still exists, but nothing listens; the other one answers, though it does not lead yet."""
    leading = next(each for each in tenants.replicas if "leading" in each.get("/readyz")[1])
    leading.kill()
    status, out, _ = explain("waiter", "reader", "--json")
    assert (status, json.loads(out)["shortfall"]["fits"]) == (0, 1)
    assert PODS[1 - tenants.replicas.index(leading)] in json.loads(out)["settings"][0]
    for each in tenants.replicas:
        each.kill()
    status, out, err = explain("waiter", "reader")
    assert (status, out) == (1, "")
    assert "no replica of the operator has answered" in err
    assert "nothing listens there" in err


def test_whoever_may_list_nodes_is_told_their_names(tenants, explain):
    api, namespace = tenants.cluster.api, tenants.cluster.namespace
    role = {
        "metadata": {"name": "answers-nodes"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
    }
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    binding = {
        "metadata": {"name": "answers-nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "answers-nodes"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    try:

        def names() -> set[str]:
            _, out, _ = explain("waiter", "reader", "--json")
            assert OTHERS not in out
            return {name for each in json.loads(out)["shortfall"]["nodeGroups"] for name in each["first"]}

        # The API server knows a new binding after a moment.
        until(lambda: {"secret-node-1", "secret-node-2"} <= names())
    finally:
        api.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/answers-nodes")
        api.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/answers-nodes")


def test_whoever_is_not_answered_is_told_what_to_do(tenants, explain):
    def said(*arguments: str) -> str:
        status, out, err = explain(*arguments)
        assert (status, out) == (1, "")
        return str(err)

    address, _ = reached(tenants.announced[PODS[0]])
    assert gate.NO_RIGHT in said("waiter", "nobody")
    # An account that may not get a group does not learn whether it exists.
    assert said("waiter", "nobody") == said("none", "nobody")
    assert server.NO_GROUP in said("none", "reader")
    # A token of our own account does not open other namespaces, whatever is there.
    for name in ("foreign", "none"):
        assert gate.NO_RIGHT in said(f"{OTHERS}/{name}", f"{tenants.cluster.namespace}/reader")
    assert "kubectl create serviceaccount absent" in said("waiter", "absent")
    assert "serviceaccounts/token" in said("waiter", f"{OTHERS}/default")
    assert "--operator-namespace" in said("waiter", "reader", "--operator-namespace", tenants.cluster.namespace)
    assert "the Role that the chart creates" in said("waiter", "reader", "--operator-namespace", OTHERS)

    # Any HTTPS client may ask, with a token for the right audience.
    def asked(*arguments: str) -> tuple[int, str]:
        made = ("create", "token", "reader", "-n", tenants.cluster.namespace, *arguments)
        url = f"https://127.0.0.1:{address.rpartition(':')[2]}/v1/explain/{tenants.cluster.namespace}/waiter"
        header = {"Authorization": f"Bearer {tenants.cluster.control_plane.kubectl(*made).strip()}"}
        trusting = ssl._create_unverified_context()  # noqa: SLF001 - as curl --insecure does
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=header), context=trusting) as answer:
                return answer.status, json.load(answer)["phase"]
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)["error"]

    assert asked("--audience=gangsched") == (200, "Queued")
    assert asked() == (401, gate.FOR_OTHERS)
    assert asked("--audience=gangsched", "--audience=https://kubernetes.default.svc") == (401, gate.FOR_OTHERS)
    assert asked("--audience=other") == (401, gate.FOR_OTHERS)

    # A server at another address gets no token.
    _, other = reached(tenants.announced[PODS[1]])
    assert "does not have the expected certificate" in said("waiter", "reader", address, other)

    # Without the Role, port-forward is forbidden.
    api = tenants.cluster.api
    api.delete(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{tenants.system}/rolebindings/gangsched-ask")
    rights = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    folder = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{tenants.system}"
    api.post(f"{folder}/roles", {"metadata": {"name": "only-list"}, "rules": rights})
    subject = {"kind": "ServiceAccount", "name": "tenant", "namespace": tenants.cluster.namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "only-list"}
    api.post(f"{folder}/rolebindings", {"metadata": {"name": "x"}, "roleRef": reference, "subjects": [subject]})
    assert "pods/portforward" in said("waiter", "reader")


def test_without_the_value_the_chart_grants_nothing_and_the_operator_does_not_listen(with_crd):
    command = ["template", "gangsched", "charts/gangsched", "--set", "image.repository=none"]
    off, on = (
        [each for each in yaml.safe_load_all(with_crd.helm(*command, *more)) if each]
        for more in ((), ("--set", "answers.enabled=true"))
    )
    for word in ("tokenreviews", "subjectaccessreviews", "portforward", "answers", "POD_NAME"):
        assert word not in json.dumps(off)
        assert word in json.dumps(on)
    with Operator(with_crd) as operator:
        assert "answering tenants" not in operator.log
