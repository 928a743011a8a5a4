"""`gangsched explain` against the real API server, with more and with fewer rights."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from gangsched.cli import main
from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture
def explain(with_crd: ControlPlane, capsys):
    """The exit status, standard output and standard error of the command."""

    def run(*arguments: str, kubeconfig=None):
        status = main(["explain", "--kubeconfig", str(kubeconfig or with_crd.kubeconfig), *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def contended(cluster: Cluster) -> Cluster:
    """5 CPUs on two nodes, 4 of them held by a bound group, and a group of three that waits."""
    cluster.add_node("n1", cpu="3")
    cluster.add_node("n2", cpu="2")
    cluster.add_gang("holder", 4)
    cluster.until_bound("holder", 4)
    cluster.add_gang("waiter", 3)
    cluster.until_reason("waiter", "Unschedulable")
    return cluster


class TestFully:
    def test_it_says_how_many_fit_what_lacks_who_holds_it_and_what_would_help(self, contended, explain):
        status, out, err = explain(f"{contended.namespace}/waiter", "--json")

        assert (status, err) == (0, "")
        told = json.loads(out)
        assert (told["phase"], told["reason"], told["members"], told["bound"]) == ("Queued", "Unschedulable", 3, 0)
        shortfall = told["shortfall"]
        assert (shortfall["wanted"], shortfall["fits"], shortfall["lacks"]) == (3, 1, {"cpu": "2"})
        assert {"reason": "Insufficient", "resource": "cpu", "nodes": 2} in shortfall["obstacles"]
        assert shortfall["gaps"] == [{"members": 2, "obstacles": shortfall["obstacles"]}]
        assert sum(each["members"] for each in shortfall["nodeGroups"]) == 1
        assert [(each["nodes"], each["obstacles"]) for each in shortfall["nodeGroups"]] == [
            (1, [{"reason": "Insufficient", "resource": "cpu", "nodes": 1}])
        ] * 2
        assert shortfall["heldBy"] == [{"namespace": contended.namespace, "name": "holder", "amount": "4"}]
        assert shortfall["ahead"] == []
        assert f"the end of {contended.namespace}/holder: the group fits then" in told["helps"]
        assert "spec.minMember of at most 1: that many members fit now" in told["helps"]
        assert told["demand"] == [{"count": 2, "requests": {"cpu": "1"}, "domain": None}]
        assert told["fromStatusAlone"] is None

    def test_nothing_is_written(self, contended, explain):
        contended.until(lambda: contended.phase("holder") == "Running")
        contended.until(lambda: all(contended.told(f"waiter-{number}") for number in range(3)))
        before = contended.control_plane.api.get(f"/api/v1/namespaces/{contended.namespace}/pods")
        explain(f"{contended.namespace}/waiter")
        after = contended.control_plane.api.get(f"/api/v1/namespaces/{contended.namespace}/pods")
        assert before["items"] == after["items"]


class TestWithoutOperator:
    """Tests of objects that no operator handles."""

    def test_without_a_name_all_that_wait_are_listed_and_who_leads(self, contended, explain):
        contended.add_pod("lone", scheduler="nobody-runs-it")
        status, out, _ = explain("-A")
        assert status == 0
        # Operators of other tests may have left their Leases.
        assert out.startswith("No operator leads: ")
        assert (
            f"{contended.namespace}/waiter: Queued Unschedulable (3 of 3 members exist)\n  Only 1 of 3 members fit"
            in out
        )
        assert f"{contended.namespace}/holder" not in out.replace(f"Held by {contended.namespace}/holder", "")
        assert "lone" not in out
        told = json.loads(explain("-A", "--json")[1])
        assert told["operatorLeads"] is False
        [waiter] = [each for each in told["waiting"] if each["namespace"] == contended.namespace]
        assert (waiter["name"], waiter["pod"], waiter["minimum"]) == ("waiter", False, 3)

    @pytest.mark.parametrize(("seconds", "leads"), [(3600, True), (-3600, False)])
    def test_who_holds_the_lease_is_named(self, cluster, explain, seconds, leads):
        renewed = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "gangsched-7d9f_x", "leaseDurationSeconds": 15, "renewTime": renewed}
        cluster.api.post(
            f"/apis/coordination.k8s.io/v1/namespaces/{cluster.namespace}/leases",
            {"metadata": {"name": "gangsched"}, "spec": spec},
        )
        _, out, _ = explain("-A")
        _, told, _ = explain("-A", "--json")
        cluster.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/{cluster.namespace}/leases/gangsched")
        assert json.loads(told)["operatorLeads"] is leads
        lease = f"the Lease {cluster.namespace}/gangsched"
        said = f"An operator leads: gangsched-7d9f_x holds {lease}" if leads else f"No operator leads: {lease} has had"
        assert said in out


class TestRights:
    @pytest.fixture
    def viewer(self, cluster: Cluster):
        """A kubeconfig that may see the PodGroups of the namespace and nothing else."""
        kubectl, namespace = cluster.control_plane.kubectl, cluster.namespace
        verbs = ("--verb=get,list", "--resource=podgroups.gangsched.io")
        kubectl("create", "role", "viewer", *verbs, "--namespace", namespace)
        account = f"--serviceaccount={namespace}:default"
        kubectl("create", "rolebinding", "viewer", "--role=viewer", account, "--namespace", namespace)
        return cluster.control_plane.kubeconfig_of_service_account(namespace, "default")

    def test_who_may_not_list_nodes_is_told_the_status_and_that_it_is_no_more(self, contended, viewer, explain):
        contended.until(
            lambda: "missing on the nodes that accept them: cpu 2" in contended.condition("waiter").get("message", "")
        )
        status, out, err = explain(f"{contended.namespace}/waiter", "--json", kubeconfig=viewer)
        assert (status, err) == (0, "")
        told, written = json.loads(out), contended.status("waiter")
        assert (told["reason"], told["message"]) == ("Unschedulable", contended.condition("waiter")["message"])
        assert (told["fitting"], told["helps"]) == (written["fitting"], written["helps"])
        assert "forbidden" in told["fromStatusAlone"]
        assert told["shortfall"] is None

    def test_an_unknown_group_is_told_with_what_could_not_be_seen(self, cluster, viewer, explain):
        status, out, err = explain(f"{cluster.namespace}/none", kubeconfig=viewer)
        assert (status, out) == (1, "")
        assert (
            f"there is no PodGroup {cluster.namespace}/none, and gangsched cannot see whether pods declare such a group"
            in err
        )

    def test_who_may_not_see_the_podgroup_is_told_so(self, viewer, explain):
        status, _, err = explain("kube-system/any", kubeconfig=viewer)
        assert status == 1
        assert "cannot get resource" in err
        assert "ask for the right to get podgroups.gangsched.io in namespace kube-system, which shows" in err
        assert "and for a full answer to list namespaces, priorityclasses, nodes, persistentvolumeclaims, " in err

    def test_a_wrong_token_is_no_missing_right(self, cluster, explain):
        status, out, err = explain("a/b", kubeconfig=cluster.control_plane.kubeconfig_for(token="wrong"))
        assert (status, out) == (1, "")
        assert "the API server does not accept the token or certificate, which is wrong or has expired: log in" in err

    def test_without_a_name_all_rights_are_needed(self, viewer, explain):
        status, _, err = explain(kubeconfig=viewer)
        assert status == 1
        assert "ask for the right to list namespaces, priorityclasses, nodes, " in err

    def test_who_shows_no_credentials_is_told_so(self, cluster, explain, tmp_path):
        config = yaml.safe_load(cluster.control_plane.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {}
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        status, _, err = explain("a/b", kubeconfig=path)
        assert status == 1
        assert "the API server has seen no credentials (it answers system:anonymous)" in err


class TestWrong:
    def test_an_unknown_group_ends_with_1_and_where_to_look(self, cluster, explain):
        status, out, err = explain(f"{cluster.namespace}/none")
        assert (status, out) == (1, "")
        assert f"there is no PodGroup {cluster.namespace}/none, and no waiting pod" in err
        assert f"kubectl get podgroups.gangsched.io -n {cluster.namespace}" in err

    @pytest.mark.parametrize("name", ["a/b/c", "/b", "a/", ""])
    def test_what_names_no_group_ends_with_2(self, explain, name):
        status, _, err = explain(name)
        assert status == 2
        assert "write NAMESPACE/NAME" in err

    def test_a_kubeconfig_that_is_not_there_ends_with_2(self, explain, tmp_path):
        status, _, err = explain("a/b", kubeconfig=tmp_path / "none")
        assert status == 2
        assert "there is no kubeconfig" in err.lower()
