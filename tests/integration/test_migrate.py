"""The manifests of docs/migrate/, applied unchanged, behave as their pages say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
import yaml

from documentation.generate import ROOT
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import member
from tests.integration.chart import configuration
from tests.integration.cluster import Cluster
from tests.integration.foreign import DIALECTS, served

pytestmark = pytest.mark.usefixtures("operator")


@pytest.fixture(scope="module")
def operator(with_crd: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """gangsched as the chart configures it with the value that palantir's page requires and the other pages do not.

    The API server serves other systems' PodGroups.
    """
    page = (ROOT / "docs" / "migrate" / "palantir.md").read_text(encoding="utf-8")
    [value] = re.findall(r"--set '(dialects=.*)'", page)
    config = configuration(with_crd, tmp_path_factory.mktemp("chart"), value)
    with served(with_crd, *DIALECTS), Operator(with_crd, "--config", str(config)) as running:
        yield running


def manifest(page: str) -> str:
    """The page's first YAML block."""
    text = (ROOT / "docs" / "migrate" / page).read_text(encoding="utf-8")
    return text.split("```yaml\n")[1].partition("```\n")[0]


def apply(cluster: Cluster, text: str) -> None:
    cluster.control_plane.kubectl("apply", "--namespace", cluster.namespace, "--filename", "-", stdin=text)


def test_pfnet(cluster: Cluster) -> None:
    for number in range(2):
        cluster.add_node(f"n{number}", cpu="2")
    job = yaml.safe_load(manifest("pfnet.md"))
    apply(cluster, manifest("pfnet.md"))
    cluster.until(lambda: len(cluster.bound()) == 3)
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    annotations["gang-scheduling.preferred.jp/gang-name"] = job["metadata"]["name"] = "second"
    apply(cluster, yaml.safe_dump(job))
    cluster.until(lambda: len(cluster.pods()) == 6)
    waiting = [pod["metadata"]["name"] for pod in cluster.pods() if pod["metadata"]["name"].startswith("second")]
    cluster.until(lambda: all(cluster.told(name).get("reason") == "Unschedulable" for name in waiting))
    during = set(cluster.bound())
    cluster.control_plane.kubectl("delete", "job", "training", "--namespace", cluster.namespace)
    cluster.until(lambda: set(waiting) <= set(cluster.bound()))

    assert all(name.startswith("training") for name in during)
    assert len(during) == 3


def test_toy_scheduler(cluster: Cluster) -> None:
    gpu = "nvidia.com/gpu"
    for name, total, used in (("first", "8", "4"), ("second", "4", "2")):
        cluster.add_node(name, cpu="16", extra={gpu: total})
        cluster.add_pod(f"old-{name}", requests={gpu: used}, scheduler="somebody-else", nodeName=name)
    apply(cluster, manifest("toy-scheduler.md"))
    cluster.until(lambda: len(cluster.bound()) == 2 + 5)

    placed = Counter(node for name, node in cluster.bound().items() if name.startswith("nginx"))
    assert placed == {"first": 3, "second": 2}


def add_executors(cluster: Cluster, manifest_of_driver: str, count: int, labels: dict[str, str], cpu: str) -> None:
    """Create executors owned by the driver's pod, as a Spark driver does once it runs.

    Spark marks the driver as their controller; scripts that create executors do not. Here only the first is marked.
    """
    name = yaml.safe_load(manifest_of_driver)["metadata"]["name"]
    uid = cluster.pod(name)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    for number in range(count):
        made = member(f"exec-{number}", requests={"cpu": cpu, "memory": "1Gi"}, labels=labels)
        made["metadata"]["ownerReferences"] = [owner if number else owner | {"controller": True}]
        cluster.make_pod(made)


def test_palantir(cluster: Cluster) -> None:
    pool = {"resource_channel": "batch"}
    cluster.add_node("elsewhere", cpu="64")
    cluster.add_node("n1", cpu="4", labels=pool)
    driver = manifest("palantir.md")
    apply(cluster, driver)
    cluster.until(lambda: cluster.told("pi-driver").get("reason") == "Unschedulable")
    before = cluster.bound()
    cluster.add_node("n2", cpu="1", labels=pool)
    cluster.until(lambda: "pi-driver" in cluster.bound())
    for number in range(5):
        cluster.add_pod(f"plain-{number}", requests={"cpu": "2"}, nodeSelector=pool)
    cluster.until(lambda: cluster.told("plain-4").get("reason") == "Unschedulable")
    add_executors(cluster, driver, 2, {"spark-app-id": "pi", "spark-role": "executor"}, cpu="2")
    cluster.until(lambda: len(cluster.bound()) == 3)

    assert before == {}
    assert {name: node for name, node in cluster.bound().items() if name.startswith("exec")} == {
        "exec-0": "n1",
        "exec-1": "n1",
    }


def test_cosmin(cluster: Cluster) -> None:
    cluster.add_node("dear", cpu="3", labels={"cost": "5"})
    driver = manifest("cosmin.md")
    apply(cluster, driver)
    cluster.until(lambda: cluster.told("sleep-driver").get("reason") == "Unschedulable")
    before = cluster.bound()
    cluster.add_node("cheap", cpu="3", labels={"cost": "1"})
    cluster.until(lambda: cluster.bound() == {"sleep-driver": "cheap"})
    labels = {"spark-role": "executor", "exec-cpu": "1", "exec-mem": "1"}
    add_executors(cluster, driver, 2, labels, cpu="1")
    cluster.until(lambda: len(cluster.bound()) == 3)
    cluster.until(lambda: cluster.phase("sleep-driver") in ("Scheduled", "Running"), what="no place is held any more")

    assert before == {}


def of(prefix: str, cluster: Cluster) -> set[str]:
    """The names of the bound pods with this prefix."""
    return {name for name in cluster.bound() if name.startswith(prefix)}


def test_tenstack(cluster: Cluster) -> None:
    for number in range(2):
        cluster.add_node(f"n{number}", cpu="4")
    cluster.add_pod("used", requests={"cpu": "900m"}, scheduler="somebody-else", nodeName="n0")
    apply(cluster, manifest("tenstack.md"))
    cluster.until(lambda: len(cluster.bound()) == 1 + 5)
    first = "group1" if of("group1", cluster) else "group2"
    other = "group2" if first == "group1" else "group1"
    cluster.until(lambda: cluster.told(f"{other}-0").get("reason") == "Unschedulable")
    during = of("group", cluster)
    message = cluster.told(f"{other}-0")["message"]
    cluster.control_plane.kubectl("delete", "statefulset", first, "--namespace", cluster.namespace)
    cluster.until(lambda: of(other, cluster) == {f"{other}-{number}" for number in range(5)})

    assert during == {f"{first}-{number}" for number in range(5)}
    assert f"Held by {cluster.namespace}/{first}" in message


def test_scheduler_plugins(cluster: Cluster) -> None:
    cluster.add_node("n0", cpu="2")
    apply(cluster, manifest("scheduler-plugins.md"))
    cluster.until(lambda: len(cluster.pods()) == 4)
    names = [pod["metadata"]["name"] for pod in cluster.pods()]
    cluster.until(lambda: all(cluster.told(name).get("reason") == "Unschedulable" for name in names))
    before = dict(cluster.bound())
    cluster.add_node("n1", cpu="1")
    cluster.until(lambda: len(cluster.bound()) == 3)
    cluster.until(
        lambda: [cluster.told(name).get("reason") for name in names if name not in cluster.bound()] == ["Unschedulable"]
    )

    assert before == {}


@pytest.mark.parametrize(("page", "reason"), [("volcano.md", "Unschedulable"), ("kai.md", "Unschedulable")])
def test_three_pods_of_two_roles(cluster: Cluster, page: str, reason: str) -> None:
    cluster.add_node("n0", cpu="2")
    apply(cluster, manifest(page))
    cluster.until(lambda: len(cluster.pods()) == 3)
    names = [pod["metadata"]["name"] for pod in cluster.pods()]
    cluster.until(lambda: all(cluster.told(name).get("reason") == reason for name in names))
    before = dict(cluster.bound())
    cluster.add_node("n1", cpu="1")
    cluster.until(lambda: len(cluster.bound()) == 3)

    assert before == {}


def short_and_enough(cluster: Cluster, page: str, *, short: str, more: str, pods: list[str]) -> None:
    """Nothing is bound while the node has too few CPUs; all of the pods are once there is another node."""
    cluster.add_node("n1", cpu=short)
    apply(cluster, manifest(page))
    cluster.until(lambda: len(cluster.pods()) >= len(pods))
    names = [pod["metadata"]["name"] for pod in cluster.pods()]
    cluster.until(lambda: all(cluster.told(name).get("reason") == "Unschedulable" for name in names))
    assert cluster.bound() == {}
    cluster.add_node("n2", cpu=more)
    cluster.until(lambda: len(cluster.bound()) == len(pods))
    assert all(any(name.startswith(pod) for pod in pods) for name in cluster.bound())


def test_kueue(cluster: Cluster) -> None:
    short_and_enough(cluster, "kueue.md", short="2", more="1", pods=["sample-leader", "sample-worker"])


def test_koordinator(cluster: Cluster) -> None:
    short_and_enough(cluster, "koordinator.md", short="1", more="1", pods=["gang-a-"] * 2)
    waiting = [pod["metadata"]["name"] for pod in cluster.pods() if "nodeName" not in pod["spec"]]
    assert len(waiting) == 1
    cluster.add_node("n3", cpu="1")
    cluster.until(lambda: len(cluster.bound()) == 3)


def test_yunikorn(cluster: Cluster) -> None:
    short_and_enough(cluster, "yunikorn.md", short="2", more="1", pods=["gang-job-"] * 3)
