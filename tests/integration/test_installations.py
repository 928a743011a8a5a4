"""The chart in various environments: a second installation, a kept CRD, Prometheus, locked-down clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from documentation.manifests import CHART
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.waiting import until

IMAGE = ("--set", "image.repository=registry.invalid/gangsched")
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.gangsched.io"
MONITORING = "monitoring.coreos.com"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster():
    with ControlPlane(scheduler=True, audit=True) as running:
        running.add_node("system")
        yield running


@pytest.fixture
def release(cluster: ControlPlane) -> Iterator[Callable[..., str]]:
    """Installs releases, and uninstalls them at the end."""
    installed = []

    def install(name: str, namespace: str, *values: str) -> str:
        flags = [part for value in values for part in ("--set", value)]
        installed.append((name, namespace))
        place = ("--namespace", namespace, "--create-namespace")
        return cluster.helm("install", name, CHART, *place, "--wait", *IMAGE, *flags)

    yield install
    for name, namespace in installed:
        cluster.helm("uninstall", name, "--namespace", namespace, "--wait", "--ignore-not-found")


def disown(cluster, *owner: str) -> None:
    """Assign the CRD, if there is one, to this release and namespace, or to none.

    It is never deleted here: the API server may take minutes to delete one that was created a moment before.
    """
    name, namespace = owner or (None, None)
    notes = {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}
    labels = {"app.kubernetes.io/managed-by": "Helm" if owner else None}
    cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", str(CHART / "files" / "gangsched.io_podgroups.yaml")
    )
    cluster.api.merge(CRD, {"metadata": {"annotations": notes, "labels": labels}})


def owner(cluster) -> tuple[str, str]:
    notes = cluster.api.get(CRD)["metadata"]["annotations"]
    return notes["meta.helm.sh/release-name"], notes["meta.helm.sh/release-namespace"]


def operator(cluster, namespace: str, folder: Path) -> Operator:
    """The operator as the release `gangsched` in this namespace runs it."""
    settings = cluster.api.get(f"/api/v1/namespaces/{namespace}/configmaps/gangsched")["data"]
    config = folder / f"{namespace}.yaml"
    config.write_text(settings["config.yaml"])
    account = cluster.kubeconfig_of_service_account(namespace, "gangsched")
    return Operator(cluster, "--config", str(config), kubeconfig=account, leader_elect=True)


def pod(name: str, scheduler: str) -> dict:
    return {
        "metadata": {"name": name},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


def test_without_the_crd_none_is_installed_and_the_notes_say_so(cluster):
    place = ("--namespace", "one", "--create-namespace", "--dry-run=server")
    shown = cluster.helm("install", "gangsched", CHART, *place, *IMAGE, "--set", "crds.install=false")
    assert "crds.install is false" in shown
    assert "kind: CustomResourceDefinition" not in shown


def test_two_installations_of_one_name_bind_the_pods_of_their_own_scheduler_names(cluster, release, tmp_path):
    disown(cluster, "gangsched", "blue")
    release("gangsched", "blue", "config.schedulerNames={blue}")
    notes = release("gangsched", "green", "config.schedulerNames={green}")
    assert "was left as it is: it belongs to the release gangsched in namespace blue" in " ".join(notes.split())
    assert owner(cluster) == ("gangsched", "blue")
    cluster.helm("upgrade", "gangsched", CHART, "--namespace", "green", "--reuse-values", "--dry-run=server")
    cluster.add_node("worker", cpu="4")
    pods = "/api/v1/namespaces/default/pods"
    with operator(cluster, "blue", tmp_path) as blue, operator(cluster, "green", tmp_path) as green:
        for name in ("blue", "green"):
            cluster.api.post(pods, pod(name, name))
        until(lambda: all(cluster.api.get(f"{pods}/{each}")["spec"].get("nodeName") for each in ("blue", "green")))
        assert [each.metric("gangsched_leader") for each in (blue, green)] == [1, 1]
        until(lambda: [each.metric("gangsched_bindings_total", result="Bound") for each in (blue, green)] == [1, 1])
    assert [each.stop() for each in (blue, green)] == [0, 0]
    assert cluster.not_permitted("system:serviceaccount:green:gangsched") == []
    for name in ("blue", "green"):
        cluster.api.delete(f"{pods}/{name}", grace_s=0)


def test_a_crd_that_kubectl_has_applied_is_left_to_it(cluster):
    disown(cluster)
    place = ("--namespace", "one", "--create-namespace", "--dry-run=server")
    assert "it was installed without helm" in " ".join(
        cluster.helm("install", "gangsched", CHART, *place, *IMAGE).split()
    )


def test_everything_that_can_be_switched_on_is_admitted(cluster, release):
    for kind, plural in (("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")):
        cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(definition(kind, plural)))
    until(lambda: "servicemonitors" in cluster.kubectl("api-resources", f"--api-group={MONITORING}"))
    release(
        *(
            "full",
            "one",
            "fullnameOverride=sched",
            "podLabels.team=a",
            "podAnnotations.note=b",
            "extraArgs={--dry-run}",
        ),
        *("metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.labels.release=prometheus"),
        *("metrics.prometheusRule.enabled=true", "metrics.grafanaDashboard.enabled=true", "networkPolicy.enabled=true"),
        *(
            "networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring",
            "livenessProbe.periodSeconds=30",
        ),
        *("extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy", "serviceAccount.annotations.role=c"),
        *("extraVolumes[0].name=scratch", "extraVolumes[0].emptyDir.medium=Memory", "config.logLevel=debug"),
        *(
            "extraVolumeMounts[0].name=scratch",
            "extraVolumeMounts[0].mountPath=/scratch",
            "podSecurityContext.runAsUser=null",
        ),
        *("podSecurityContext.runAsGroup=null", f"image.digest=sha256:{'a' * 64}"),
    )
    [replica, *_] = cluster.api.get("/api/v1/namespaces/one/pods?labelSelector=team=a")["items"]
    [container] = replica["spec"]["containers"]
    assert container["image"] == f"registry.invalid/gangsched@sha256:{'a' * 64}"
    assert container["args"][-1] == "--dry-run"
    assert container["env"] == [{"name": "HTTPS_PROXY", "value": "http://proxy"}]
    assert "/scratch" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert replica["spec"]["securityContext"].keys() == {"runAsNonRoot", "seccompProfile"}
    assert replica["spec"]["serviceAccountName"] == "sched"
    assert [each["topologyKey"] for each in replica["spec"]["topologySpreadConstraints"]] == [
        "topology.kubernetes.io/zone"
    ]
    monitor = cluster.api.get(f"/apis/{MONITORING}/v1/namespaces/one/servicemonitors/sched")
    rule = cluster.api.get(f"/apis/{MONITORING}/v1/namespaces/one/prometheusrules/sched")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert len(rule["spec"]["groups"][0]["rules"]) > 10
    board = cluster.api.get("/api/v1/namespaces/one/configmaps/sched-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    policy = cluster.api.get("/apis/networking.k8s.io/v1/namespaces/one/networkpolicies/sched")["spec"]
    assert policy["ingress"][0]["from"][0] == {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}

    def addresses() -> int:
        subsets = cluster.api.get("/api/v1/namespaces/one/endpoints/sched-metrics").get("subsets") or []
        return sum(len(each.get("addresses", [])) + len(each.get("notReadyAddresses", [])) for each in subsets)

    until(lambda: addresses() == 2)


def definition(kind: str, plural: str) -> dict:
    """The CRD of a Prometheus Operator kind, without validation."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{MONITORING}"},
        "spec": {
            "group": MONITORING,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_an_account_and_rights_that_are_made_by_other_means_are_used(cluster):
    values = ("serviceAccount.create=false", "serviceAccount.name=mine", "rbac.create=false")
    text = cluster.helm("template", "gangsched", CHART, *IMAGE, *(f"--set={value}" for value in values))
    objects = {each["kind"]: each for each in yaml.safe_load_all(text) if each}
    assert objects["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    assert not {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} & objects.keys()
