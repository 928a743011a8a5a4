"""The phase of Volcano's PodGroups on the real API server, also beside other writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from testbed.api import Json
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import member
from tests.integration.access import may
from tests.integration.cluster import Cluster
from tests.integration.foreign import WORDS, as_before_1_11, served

WORDS_HERE = WORDS["volcano"]
pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def _kind(with_crd: ControlPlane) -> Iterator[None]:
    with served(with_crd, "volcano"):
        yield


@pytest.fixture(scope="module", autouse=True)
def _volcano_system(with_crd: ControlPlane) -> Iterator[None]:
    with_crd.api.post("/api/v1/namespaces", {"metadata": {"name": "volcano-system"}})
    yield
    with_crd.api.delete("/api/v1/namespaces/volcano-system")


def account(cluster: Cluster) -> str:
    """The operator's account, in a namespace of its own."""
    return f"system:serviceaccount:{cluster.namespace}-op:gangsched"


@contextmanager
def writing(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """gangsched with the chart's account, which may write phases in the test's namespace."""
    chosen = f"config.volcano.writePhase={{{cluster.namespace}}}"
    config = tmp_path / "config.yaml"
    config.write_text(f"volcano: {{writePhase: [{cluster.namespace}]}}\nschedulerNames: [late]\n")
    with chart_account(cluster.control_plane, f"{cluster.namespace}-op", "--set", chosen):
        of_account = cluster.control_plane.kubeconfig_of_service_account(f"{cluster.namespace}-op", "gangsched")
        with Operator(cluster.control_plane, "--config", str(config), kubeconfig=of_account) as running:
            yield running


def declare(cluster: Cluster, name: str = "g", **more: object) -> None:
    cluster.api.post(WORDS_HERE.at(cluster.namespace), WORDS_HERE.body | {"metadata": {"name": name}} | more)


def add_pods(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.make_pod(member(name, annotations=WORDS_HERE.annotations, scheduler="late"))


def found(cluster: Cluster, name: str = "g") -> Json:
    return cluster.api.get(f"{WORDS_HERE.at(cluster.namespace)}/{name}")


def phase(cluster: Cluster, name: str = "g") -> str:
    return str(found(cluster, name).get("status", {}).get("phase", ""))


def write(cluster: Cluster, value: str | None, name: str = "g") -> None:
    """Write the phase as Volcano's scheduler does."""
    cluster.api.merge(f"{WORDS_HERE.at(cluster.namespace)}/{name}/status", {"status": {"phase": value}})


@pytest.mark.parametrize(("stored", "rivals"), [(nullcontext, 20), (as_before_1_11, 0)], ids=["now", "Volcano 1.10"])
def test_a_podgroup_without_pods_is_inqueue_and_running_once_they_are_bound(
    cluster: Cluster, tmp_path: Path, stored: Callable[[ControlPlane], AbstractContextManager[object]], rivals: int
) -> None:
    """The controller waits for Inqueue, then makes two pods. Nothing but the phase of the object is changed.

    What another scheduler writes at the same time, as soon as an object exists, always stays.
    """
    names = [f"race-{number}" for number in range(rivals)]
    with stored(cluster.control_plane), writing(cluster, tmp_path):
        for name in names:
            declare(cluster, name)
            write(cluster, "Pending", name)
        declare(cluster, status={})
        cluster.until(lambda: phase(cluster) == "Inqueue")
        add_pods(cluster, "one", "two")
        cluster.add_node("n1")
        cluster.until(lambda: phase(cluster) == "Running")
        assert len(cluster.bound()) == 2
        assert [phase(cluster, name) for name in names] == ["Pending"] * len(names)
        seen = found(cluster)
        refused = cluster.control_plane.not_permitted(account(cluster))
        asked = {
            (entry["verb"], target.get("namespace", ""))
            for entry in cluster.control_plane.audited(account(cluster))
            if (target := entry.get("objectRef", {})).get("resource") == "podgroups"
            and target.get("apiGroup") == "scheduling.volcano.sh"
        }
        cluster.api.delete(WORDS_HERE.at(cluster.namespace))

    assert seen["spec"] == WORDS_HERE.body["spec"]
    [ours] = [entry for entry in seen["metadata"]["managedFields"] if entry["manager"] == "gangsched"]
    assert (ours["operation"], ours["fieldsV1"]) == ("Apply", {"f:status": {"f:phase": {}}})
    assert refused == []
    assert asked == {("list", ""), ("watch", ""), ("patch", cluster.namespace)}


def test_the_chart_grants_the_phase_in_the_named_namespaces_alone(cluster: Cluster, with_crd: ControlPlane) -> None:
    groups = "podgroups.scheduling.volcano.sh"
    verbs = [
        *(("patch", groups), ("patch", f"{groups}/status"), ("update", f"{groups}/status")),
        *(("create", groups), ("delete", groups)),
    ]
    expected = {(*each, "default"): False for each in verbs}
    expected |= {(*each, cluster.namespace): each[0] == "patch" for each in verbs}
    chosen = f"config.volcano.writePhase={{{cluster.namespace}}}"
    with chart_account(with_crd, f"{cluster.namespace}-op", "--set", chosen):

        def granted() -> dict[tuple[str, str, str], bool]:
            return {
                (verb, resource, namespace): may(with_crd.api, account(cluster), verb, resource, namespace=namespace)
                for verb, resource, namespace in expected
            }

        # The API server knows a new Role after a moment.
        cluster.until(lambda: granted() == expected, what=lambda: str(granted()))
