"""The manifests of docs/migrate/, applied as they stand there, end as their pages say."""

from __future__ import annotations

from collections import Counter

import pytest
import yaml

from testbed.docs import ROOT
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")


def manifest(page: str) -> str:
    """The page's only YAML block."""
    text = (ROOT / "docs" / "migrate" / page).read_text(encoding="utf-8")
    _, block = text.split("```yaml\n")
    return block.partition("```\n")[0]


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
