"""The real control plane for the tests in this folder; each test starts with a cluster without nodes."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
from collections.abc import Callable, Iterator

import pytest

from testbed import binaries, chromium, crds
from testbed.api import ApiError, unless_gone
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.faults.proxy import ProxyProcess
from tests.integration import pictures
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster
from tests.integration.pictures import Camera
from tests.integration.waiting import until
from tests.judge import Judge

_OF_KUBERNETES = {
    "apps": ("deployments", "statefulsets", "daemonsets", "replicasets"),
    "batch": ("cronjobs", "jobs"),
    "resource.k8s.io": ("resourceclaims", "resourceclaimtemplates"),
}


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.integration)


@pytest.fixture(scope="session", autouse=True)
def _built_binaries() -> None:
    """If `make control-plane` has not run, fail under CI=true and skip elsewhere."""
    if binaries.find() is not None:
        return
    message = "NOT TESTED against a real API server: the control plane is not built; run make control-plane"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """etcd, kube-apiserver, kube-controller-manager and KWOK, one for the whole session."""
    with ControlPlane(audit=True) as running:
        yield running


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """kube-scheduler's filters, without an API server."""
    with Judge() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_nodes_left(request: pytest.FixtureRequest) -> None:
    if "control_plane" in request.fixturenames:
        request.getfixturevalue("control_plane").delete_nodes()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace; its pods are gone when the fixture ends, and what makes pods is too, or soon will be."""
    api = control_plane.api
    name = f"test-{secrets.token_hex(4)}"
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    until(lambda: _exists(control_plane, f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    yield name
    for path in _creators(control_plane, name):
        with unless_gone():
            api.delete(path)
    pods = f"/api/v1/namespaces/{name}/pods"

    def emptied() -> bool:
        # A controller that has not yet seen the deletion of its object may have created another pod meanwhile.
        api.delete(pods, grace_s=0)
        left = api.get(pods)["items"]
        for pod in left:
            # The Job controller keeps a pod until a kubelet has ended it.
            if pod["metadata"].get("finalizers"):
                with contextlib.suppress(ApiError):
                    api.merge(f"{pods}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
        return not left

    until(emptied)


def _creators(control_plane: ControlPlane, namespace: str) -> Iterator[str]:
    """The paths of the namespace's collections whose objects make pods or groups, are groups, or hold devices.

    The namespace itself stays: its deletion would cost the control plane more than most tests do, because its
    controller asks for every kind of object that there is.
    """
    yield f"/api/v1/namespaces/{namespace}/replicationcontrollers"
    for group, kinds in _OF_KUBERNETES.items():
        yield from (f"/apis/{group}/v1/namespaces/{namespace}/{kind}" for kind in kinds)
    for group in control_plane.api.get("/apis")["groups"]:
        if "." not in group["name"] or group["name"].endswith(".k8s.io"):
            continue
        path = f"/apis/{group['preferredVersion']['groupVersion']}"
        with unless_gone():
            for kind in control_plane.api.get(path)["resources"]:
                if kind["namespaced"] and "deletecollection" in kind["verbs"]:
                    yield f"{path}/namespaces/{namespace}/{kind['name']}"


def _exists(control_plane: ControlPlane, path: str) -> bool:
    with unless_gone():
        control_plane.api.get(path)
        return True
    return False


@pytest.fixture(scope="session")
def with_crd(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with the PodGroup CRD installed and served."""
    crds.install(control_plane)
    return control_plane


@pytest.fixture(scope="module")
def operator(with_crd: ControlPlane) -> Iterator[Operator]:
    """gangsched, running as cluster-admin for the tests of one module."""
    with Operator(with_crd) as running:
        yield running
        assert "Traceback" not in running.log, running.log[running.log.index("Traceback") - 500 :]


@pytest.fixture(scope="module")
def proxy(with_crd: ControlPlane) -> Iterator[ProxyProcess]:
    """A proxy in front of the API server that injects no faults until a test orders them."""
    with ProxyProcess(with_crd, seed=4) as running:
        running.calm()
        yield running


@pytest.fixture(scope="module")
def behind(with_crd: ControlPlane, proxy: ProxyProcess) -> Iterator[Operator]:
    """gangsched behind that proxy."""
    with Operator(with_crd, kubeconfig=proxy.kubeconfig_for()) as running:
        yield running


@pytest.fixture
def cluster(with_crd: ControlPlane, namespace: str) -> Cluster:
    """The test's own namespace with its helpers."""
    return Cluster(with_crd, namespace)


@pytest.fixture
def show(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Prints a measurement at the end of the run even if the test passes."""
    return functools.partial(record_property, "measured")


@pytest.fixture
def refuse_bindings(cluster: Cluster) -> Iterator[BindingPolicy]:
    """Refuses bindings of the namespace's pods whose name begins with a prefix, until `allow` is called."""
    policy = BindingPolicy(cluster)
    yield policy
    policy.allow()


@pytest.fixture
def camera() -> Iterator[Camera]:
    if not chromium.find():
        message = f"NOT COMPARED with what a browser shows: {chromium.MISSING}"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    with pictures.camera() as made:
        yield made
