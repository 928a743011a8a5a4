"""The chart, installed by the real helm on a real API server, and the operator with the rights that it gives."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gangsched.config.dialects import NAMES
from gangsched.config.workload_registry import WORKLOADS
from gangsched.kube.client.session import connect
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.access import may
from tests.integration.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "charts" / "gangsched"
NAMESPACE = "gangsched-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gangsched"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.gangsched.io"
IMAGE = ("--set", "image.repository=registry.invalid/gangsched")
GROUPS = "/apis/gangsched.io/v1alpha1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/gangsched"
LEASE_QUESTIONS = [(verb, name) for verb in ("get", "patch", "delete") for name in ("gangsched", "another")]
FLOW = f"gangsched-{NAMESPACE}"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster():
    """A separate control plane, because helm refuses to install a CRD that was applied outside of helm."""
    with ControlPlane(scheduler=True, audit=True) as running:
        running.add_node("system")
        yield running


@pytest.fixture(scope="module")
def installed(cluster):
    """The chart, installed as a user would; --wait ends when the Deployment's pod is Ready."""
    cluster.helm(
        *("install", "gangsched", CHART, "--namespace", NAMESPACE, "--create-namespace", "--wait"),
        *(*IMAGE, "--set", "config.repairDeadline=20s"),
    )
    return cluster


def group(name, *, members):
    return {
        "apiVersion": "gangsched.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": members},
    }


def member(group_name, name):
    return {
        "metadata": {"name": name, "labels": {"gangsched.io/pod-group": group_name}},
        "spec": {
            "schedulerName": "gangsched",
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


def rendered(cluster, setting):
    """The operator's configuration and the rules of its ClusterRole where this value is set."""
    text = cluster.helm("template", "gangsched", CHART, *IMAGE, "--set", setting)
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text) if each}
    config = yaml.safe_load(objects["ConfigMap", "gangsched"]["data"]["config.yaml"])
    return config, objects["ClusterRole", "gangsched-default"]["rules"]


@pytest.mark.parametrize(
    ("chosen", "groups"),
    [
        ("gangsched,pfnet,kueue,yunikorn", set()),
        ("kai,tenstack", {"scheduling.run.ai", "batch.scheduler.tencent.com"}),
        (
            ",".join(NAMES),
            {
                *("scheduling.x-k8s.io", "scheduling.sigs.k8s.io", "scheduling.volcano.sh", "scheduling.run.ai"),
                *("batch.scheduler.tencent.com", "scheduling.k8s.io"),
            },
        ),
    ],
)
def test_the_dialects_that_are_named_are_configured_and_their_podgroups_may_be_read(cluster, chosen, groups):
    config, rules = rendered(cluster, f"dialects={{{chosen}}}")
    read = [rule for rule in rules if rule["resources"] == ["podgroups"] and rule["apiGroups"] != ["gangsched.io"]]
    assert config["dialects"] == chosen.split(",")
    assert {group for rule in read for group in rule["apiGroups"]} == groups
    assert all(rule["verbs"] == ["list", "watch"] for rule in read)
    assert any(rule["resources"] == ["demands"] for rule in rules) == ("palantir" in chosen.split(","))


def test_the_workloads_that_are_named_are_configured_and_may_be_read(cluster):
    """`test_custom_workloads.py` has one of a custom kind."""
    config, rules = rendered(cluster, "workloads={jobset,job}")
    read = {
        (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        for rule in rules
        if {*rule["apiGroups"]} & {row.resource.group for row in WORKLOADS.values()}
    }
    assert config["workloads"] == ["jobset", "job"]
    assert read == {
        ("batch", "jobs", "get"),
        ("batch", "jobs", "list", "watch"),
        ("jobset.x-k8s.io", "jobsets", "list", "watch"),
    }


def test_the_deployment_is_admitted_and_locked_down(installed):
    deployment = installed.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/gangsched")
    assert deployment["status"]["readyReplicas"] == 2
    assert deployment["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }

    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["image"] == "registry.invalid/gangsched:0.1.0"
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_deployment_and_the_pod_of_helm_test_meet_the_restricted_pod_security_standard(installed):
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    installed.api.post("/api/v1/namespaces", {"metadata": {"name": "restricted", "labels": labels}})
    template = installed.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/gangsched")["spec"]["template"]
    template["metadata"]["name"] = "tried"
    del template["spec"]["serviceAccountName"]
    del template["spec"]["serviceAccount"]
    until(lambda: installed.api.get("/api/v1/namespaces/restricted/serviceaccounts")["items"])
    installed.api.post("/api/v1/namespaces/restricted/pods?dryRun=All", template)
    only = ("-n", "restricted", "-s", "templates/tests/ready.yaml")
    text = installed.helm("template", "gangsched", CHART, *only, *IMAGE)
    assert "created" in installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=text)


def test_the_operators_account_may_do_what_it_needs_and_no_more(installed):
    """Of Leases it may use its own in its namespace."""
    granted = [
        *(("list", "pods"), ("create", "pods/binding"), ("patch", "pods/status"), ("create", "pods/eviction")),
        *(("get", "jobs.batch"), ("patch", "podgroups.gangsched.io/status"), ("create", "events.events.k8s.io")),
    ]
    denied = [
        *(("patch", "pods"), ("delete", "pods"), ("patch", "nodes"), ("list", "secrets")),
        *(("patch", "podgroups.gangsched.io"), ("delete", "podgroups.gangsched.io")),
        ("get", "leases.coordination.k8s.io"),
    ]
    lease = "leases.coordination.k8s.io"
    here = {(verb, name): verb != "delete" and name == "gangsched" for verb, name in LEASE_QUESTIONS}
    assert [each for each in granted if not may(installed.api, ACCOUNT, *each, namespace="default")] == []
    assert [each for each in denied if may(installed.api, ACCOUNT, *each, namespace="default")] == []
    assert here == {
        (verb, name): may(installed.api, ACCOUNT, verb, lease, namespace=NAMESPACE, name=name)
        for verb, name in LEASE_QUESTIONS
    }


@pytest.mark.parametrize(
    ("account", "method", "path", "schema", "level"),
    [
        ("gangsched", "POST", "/api/v1/namespaces/default/pods/p/binding", FLOW, "workload-high"),
        ("gangsched", "GET", "/api/v1/pods?limit=1", FLOW, "workload-high"),
        ("gangsched", "GET", "/apis", FLOW, "workload-high"),
        ("gangsched", "PATCH", LEASE, f"{FLOW}-lease", "leader-election"),
        ("default", "GET", "/api/v1/pods?limit=1", "service-accounts", "workload-low"),
    ],
)
async def test_a_busy_api_server_takes_the_operators_requests_before_ordinary_ones(
    installed, account, method, path, schema, level
):
    until(lambda: installed.api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}"))
    session = await connect(kubeconfig=str(installed.kubeconfig_of_service_account(NAMESPACE, account)))
    kinds = {"FlowSchema": ("flowschemas", schema), "PriorityLevel": ("prioritylevelconfigurations", level)}
    expected = {
        f"X-Kubernetes-PF-{kind}-UID": installed.api.get(f"{FLOWS}/{where}/{name}")["metadata"]["uid"]
        for kind, (where, name) in kinds.items()
    }
    answer = await session.request(method, path, body=None if method == "GET" else b"{}")
    await session.close()
    assert {header: answer.headers[header] for header in expected} == expected


def test_without_priority_and_fairness_there_are_no_flow_schemas(cluster):
    chosen = ("--set", "priorityAndFairness=false")
    assert "FlowSchema" in cluster.helm("template", "gangsched", CHART, *IMAGE)
    assert "FlowSchema" not in cluster.helm("template", "gangsched", CHART, *IMAGE, *chosen)


def test_one_replica_at_a_time_may_be_evicted(installed):
    budget = installed.api.get(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/gangsched")
    assert budget["spec"]["maxUnavailable"] == 1
    until(lambda: installed.kubectl("get", "pdb", "-n", NAMESPACE, "-o", "jsonpath={..status.expectedPods}") == "2")


def test_a_namespaces_users_get_podgroups_through_the_standard_roles(installed):
    groups = "podgroups.gangsched.io"
    reads, writes = ("get", "list", "watch"), ("create", "update", "delete")
    expected = {
        **{("view", verb, groups): verb in reads for verb in (*reads, *writes)},
        **{(role, verb, groups): True for role in ("edit", "admin") for verb in (*reads, *writes)},
        ("edit", "patch", f"{groups}/status"): False,
    }
    for role in ("view", "edit", "admin"):
        user = f"{role}-user"
        installed.kubectl("create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}", "-n", "default")

    def answered():
        return {each: may(installed.api, f"{each[0]}-user", *each[1:], namespace="default") for each in expected}

    # A controller aggregates the roles shortly after they exist.
    until(lambda: answered() == expected)


def checked(address):
    """The command of `helm test` beside a real replica: this control plane has no pod network."""
    script = (CHART / "files" / "check.py").read_text().replace("WAIT_S = 60", "WAIT_S = 5")
    command = [sys.executable, "-c", script, address.replace("127.0.0.1", "localhost")]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_operator_binds_a_group_with_the_charts_account_and_configuration(installed, tmp_path):
    """`helm test` finds one replica that leads, and none of a dry run, which touches no Lease."""
    config = tmp_path / "config.yaml"
    config.write_text(installed.api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/gangsched")["data"]["config.yaml"])
    assert yaml.safe_load(config.read_text()) == {
        "repairDeadline": "20s",
        "dialects": [name for name in NAMES if name != "palantir"],
        "workloads": {"kinds": list(WORKLOADS), "custom": []},
        "leaderElection": {"resourceName": "gangsched", "resourceNamespace": NAMESPACE},
    }
    for name in ("one", "two"):
        installed.add_node(name, cpu="2")
    account = installed.kubeconfig_of_service_account(NAMESPACE, "gangsched")

    def running():
        return [installed.api.get(f"{PODS}/{name}")["status"]["phase"] for name in names] == ["Running"] * 3

    def holder():
        return installed.api.get(LEASE)["spec"]["holderIdentity"]

    with Operator(installed, "--config", str(config), kubeconfig=account, leader_elect=True) as operator:
        installed.api.post(GROUPS, group("gang", members=3))
        names = [f"gang-{ordinal}" for ordinal in range(3)]
        for name in names:
            installed.api.post(PODS, member("gang", name))
        until(running)
        until(lambda: installed.api.get(f"{GROUPS}/gang").get("status", {}).get("phase") == "Running")
        until(lambda: "Scheduled" in installed.kubectl("get", "events", "--field-selector=involvedObject.name=gang"))
        assert holder()
        passed = checked(operator.address)
        assert passed.returncode == 0, passed.stderr
        assert passed.stdout.splitlines()[-1].endswith("1 of them leads")
    assert operator.stop() == 0, operator.child.log_tail()
    assert holder() == ""
    with Operator(installed, "--dry-run", "--config", str(config), kubeconfig=account, leader_elect=True) as dry:
        assert dry.get("/readyz") == (200, "ok: dry run\n")
        assert dry.metric("gangsched_synced") == 1
        assert "0 replicas lead" in checked(dry.address).stderr
    assert holder() == ""
    assert "refused" in checked(dry.address).stderr
    assert installed.not_permitted(ACCOUNT) == []
    for name in names:
        installed.api.delete(f"{PODS}/{name}", grace_s=0)


def test_upgrade_and_rollback_change_the_crd_and_an_uninstall_loses_no_podgroup_and_a_new_install_adopts_both(
    installed, tmp_path
):
    chart = tmp_path / "gangsched"
    shutil.copytree(CHART, chart)
    file = chart / "files" / "gangsched.io_podgroups.yaml"
    crd = yaml.safe_load(file.read_text())
    crd["spec"]["names"]["categories"].append("upgraded")
    file.write_text(yaml.safe_dump(crd))
    release = ("gangsched", "--namespace", NAMESPACE)
    installed.api.post(GROUPS, group("precious", members=2))

    def is_upgraded():
        assert installed.api.get(f"{GROUPS}/precious")["spec"]["minMember"] == 2
        return "upgraded" in installed.api.get(CRD)["spec"]["names"]["categories"]

    installed.helm("upgrade", *release, chart, *IMAGE)
    assert is_upgraded()
    installed.helm("rollback", *release)
    assert not is_upgraded()
    installed.helm("uninstall", *release, "--wait")
    assert not is_upgraded()
    for gone in (
        f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/gangsched",
        f"/apis/rbac.authorization.k8s.io/v1/clusterroles/gangsched-{NAMESPACE}",
    ):
        with pytest.raises(ApiError, match="not found"):
            installed.api.get(gone)
    installed.helm("install", *release, chart, *IMAGE)
    assert is_upgraded()


def test_an_upgrade_never_deletes_a_crd_that_was_replaced_without_helm_and_the_notes_say_how_to_take_it_over(
    installed, tmp_path
):
    """Regression: helm deleted the CRD and every PodGroup, because the live CRD no longer said that it is kept."""
    release = ("gangsched", CHART, "--namespace", NAMESPACE, *IMAGE)
    crd = yaml.safe_load((ROOT / "crds" / "gangsched.io_podgroups.yaml").read_text())
    file, before = tmp_path / "crd.yaml", installed.api.get(CRD)["metadata"]["uid"]
    installed.kubectl("apply", "-f", "-", "-n", "default", stdin=yaml.safe_dump(group("valued", members=2)))

    def replace():
        file.write_text(yaml.safe_dump(crd))
        installed.kubectl("replace", "-f", file)

    def is_kept():
        # The API server takes a while to delete one.
        there = installed.api.get(CRD)["metadata"]
        return there["uid"] == before and "deletionTimestamp" not in there

    replace()
    notes = installed.helm("upgrade", *release)
    assert is_kept()

    del crd["metadata"]["annotations"]
    replace()
    refused = installed.helm("upgrade", *release, check=False)
    [remedy] = re.findall(r"kubectl (annotate --overwrite crd .*=keep), then", refused)
    installed.kubectl(*remedy.split())
    installed.helm("upgrade", *release)
    assert is_kept()

    for command in re.findall(r"kubectl ((?:annotate|label) --overwrite .*)", notes.replace("\\\n", "")):
        installed.kubectl(*command.split())
    assert "was left as it is" not in installed.helm("upgrade", *release)
    assert installed.api.get(CRD)["metadata"]["labels"]["helm.sh/chart"].startswith("gangsched-")
    assert installed.api.get(f"{GROUPS}/valued")["spec"]["minMember"] == 2
