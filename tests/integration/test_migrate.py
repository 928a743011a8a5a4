"""The manifests of docs/migrate/, applied unchanged, behave as their pages say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from documentation.generate import ROOT
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
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


@pytest.mark.parametrize(
    ("page", "short", "more", "pods", "whole"),
    [
        ("cosmin.md", 3, 3, 1, 1),
        ("kai.md", 2, 1, 3, 3),
        ("koordinator.md", 1, 1, 3, 2),
        ("kueue.md", 2, 1, 2, 2),
        ("palantir.md", 4, 1, 1, 1),
        ("pfnet.md", 2, 1, 3, 3),
        ("scheduler-plugins.md", 2, 1, 4, 3),
        ("tenstack.md", 4, 1, 10, 5),
        ("volcano.md", 2, 1, 3, 3),
        ("yunikorn.md", 2, 1, 3, 3),
    ],
)
def test_nothing_is_bound_while_a_cpu_is_missing_and_a_whole_gang_once_it_is_there(
    cluster: Cluster, page: str, short: int, more: int, pods: int, whole: int
) -> None:
    """Of each page: the CPUs of two nodes, and the pods that are there and then bound.

    Room for the executors of a driver must be there before the driver is bound.
    """
    pool = {"resource_channel": "batch"}
    cluster.add_node("n1", cpu=str(short), labels=pool)
    apply(cluster, manifest(page))
    cluster.until(lambda: len(cluster.pods()) == pods)
    names = [pod["metadata"]["name"] for pod in cluster.pods()]
    cluster.until(lambda: all(cluster.told(name).get("reason") == "Unschedulable" for name in names))
    assert cluster.bound() == {}
    cluster.add_node("n2", cpu=str(more), labels=pool)
    cluster.until(lambda: len(cluster.bound()) == whole)
    waiting = set(names) - set(cluster.bound())
    cluster.until(lambda: all(cluster.told(name).get("reason") == "Unschedulable" for name in waiting))
    assert len({name.rpartition("-")[0] for name in cluster.bound()}) == 1 or page != "tenstack.md"


def test_toy_scheduler(cluster: Cluster) -> None:
    gpu = "nvidia.com/gpu"
    for name, total, used in (("first", "8", "4"), ("second", "4", "2")):
        cluster.add_node(name, cpu="16", extra={gpu: total})
        cluster.add_pod(f"old-{name}", requests={gpu: used}, scheduler="somebody-else", nodeName=name)
    apply(cluster, manifest("toy-scheduler.md"))
    cluster.until(lambda: len(cluster.bound()) == 2 + 5)

    placed = Counter(node for name, node in cluster.bound().items() if name.startswith("nginx"))
    assert placed == {"first": 3, "second": 2}
