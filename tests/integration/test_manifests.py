"""The plain manifests on a real API server, and the operator with the rights and the command line that they give."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys

import pytest
import yaml

from documentation import manifests
from documentation.generate import ROOT
from testbed import crds
from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster

NAMESPACE = "gangsched-system"
DEPLOYMENT = ROOT / "manifests" / "deployment.yaml"
CRD = ROOT / "crds" / "gangsched.io_podgroups.yaml"
STATIC_POD = ROOT / "manifests" / "static-pod.yaml"
RIGHTS = ROOT / "manifests" / "static-pod-rbac.yaml"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def control_plane():
    """A separate control plane, because these tests install cluster-wide objects."""
    with ControlPlane(scheduler=True, audit=True, users=(manifests.USER,)) as running:
        crds.install(running)
        yield running


@pytest.fixture
def placed(control_plane, namespace):
    cluster = Cluster(control_plane, namespace)
    cluster.add_node("n1", cpu="4")
    return cluster


@pytest.fixture
def install(control_plane):
    """Applies a manifest for as long as the test lasts."""
    with contextlib.ExitStack() as stack:

        def apply(file):
            control_plane.kubectl("apply", "--server-side", "-f", file)
            stack.callback(control_plane.kubectl, "delete", "-f", file)

        yield apply


def bind_a_gang_of_three(cluster):
    cluster.add_gang("gang", 3)
    # The operator may just have been started.
    cluster.until_bound("gang", 3, within_s=90)
    cluster.until(lambda: cluster.phase("gang") == "Running")
    cluster.until(lambda: cluster.events("gang", "Scheduled"))


def test_the_manifests_are_the_charts():
    made = manifests.pages()
    assert {path: (ROOT / path).read_text(encoding="utf-8") for path in made} == made, "stale: run make docs"


def test_a_kustomization_on_the_base_is_what_the_manifests_are_with_another_image(control_plane, tmp_path):
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    own = {
        "resources": ["manifests"],
        "images": [{"name": manifests.IMAGE, "newName": "registry.example.com/gangsched"}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own))
    made = list(yaml.safe_load_all(control_plane.kubectl("kustomize", str(tmp_path))))
    plain = [*yaml.safe_load_all(DEPLOYMENT.read_text()), yaml.safe_load(CRD.read_text())]

    def by_name(objects):
        return {(each["kind"], each["metadata"]["name"]): each for each in objects if each}

    deployed = by_name(made)["Deployment", "gangsched"]["spec"]["template"]["spec"]["containers"][0]
    assert deployed["image"].startswith("registry.example.com/gangsched:")
    deployed["image"] = deployed["image"].replace("registry.example.com/gangsched", manifests.IMAGE)
    assert by_name(made) == by_name(plain)


def test_the_static_pod_is_accepted_and_refers_to_no_other_object(control_plane):
    accepted = control_plane.kubectl("create", "--dry-run=server", "-o", "json", "-f", STATIC_POD)
    assert json.loads(accepted)["spec"]["priority"] > 0
    spec = yaml.safe_load(STATIC_POD.read_text())["spec"]
    assert [list(volume) for volume in spec["volumes"]] == [["name", "hostPath"]]
    assert "serviceAccountName" not in spec
    assert spec["securityContext"]["runAsNonRoot"]


def test_the_command_line_of_the_static_pod_binds_a_gang_with_the_rights_of_its_user(
    control_plane, install, placed, tmp_path
):
    install(RIGHTS)
    arguments = yaml.safe_load(STATIC_POD.read_text())["spec"]["containers"][0]["args"]
    assert f"--listen={manifests.LISTEN}" in arguments
    (tmp_path / "kubeconfig").write_text(control_plane.kubeconfig_of_user(manifests.USER).read_text())
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"leaderElection": {"resourceNamespace": "kube-system"}}))
    # On a node its folder and its port are fixed; here the test replaces them.
    arguments = [
        each.replace("/etc/gangsched", str(tmp_path)).replace(manifests.LISTEN, "127.0.0.1:0") for each in arguments
    ]
    operator = control_plane.spawn("static-pod", [sys.executable, "-m", "gangsched", *arguments])
    try:
        bind_a_gang_of_three(placed)
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/gangsched"
        assert control_plane.api.get(lease)["spec"]["holderIdentity"]
    finally:
        assert operator.stop(timeout_s=30) == 0, operator.log_tail()
    assert control_plane.not_permitted(manifests.USER) == []


def test_the_commands_in_the_static_pods_head_name_what_it_mounts():
    """The header comment is the only instruction, so its commands must write the files that the pod reads."""
    text = STATIC_POD.read_text()
    head = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    spec = yaml.safe_load(text)["spec"]
    folder = spec["volumes"][0]["hostPath"]["path"]
    mounted = spec["containers"][0]["volumeMounts"][0]["mountPath"]
    for argument in spec["containers"][0]["args"]:
        _, _, file = argument.partition(f"={mounted}/")
        assert f"> {folder}/{file}" in head
    assert f"chown -R {spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']} {folder}" in head
