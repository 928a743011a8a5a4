"""A kind of one's own, as docs/workloads/custom.md writes it: its CRD, its pods, and the rights of the chart alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from documentation.generate import ROOT
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from tests.integration.cluster import Cluster
from tests.integration.workloads import served

pytestmark = pytest.mark.timeout(240)

PAGE = (ROOT / "docs" / "workloads" / "custom.md").read_text(encoding="utf-8")
SETTING, FARM, POD = map(yaml.safe_load, re.findall(r"^```yaml\n((?:.*\n)*?)```", PAGE, re.MULTILINE))
"""The blocks of the page: the setting, an object, and the metadata of one of its pods."""


@pytest.fixture(scope="module", autouse=True)
def _kind(with_crd: ControlPlane) -> Iterator[None]:
    with served(with_crd, group="example.com", version="v1", kind="Farm", plural="farms"):
        yield


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[Operator]:
    """gangsched with the setting of the page and the account that the chart makes for it."""
    values, config = tmp_path / "values.yaml", tmp_path / "config.yaml"
    values.write_text(yaml.safe_dump(SETTING))
    config.write_text(yaml.safe_dump(SETTING | {"schedulerNames": ["farming"]}))
    with chart_account(cluster.control_plane, f"{cluster.namespace}-op", "--values", str(values)):
        account = cluster.control_plane.kubeconfig_of_service_account(f"{cluster.namespace}-op", "gangsched")
        with Operator(cluster.control_plane, "--config", str(config), kubeconfig=account) as running:
            yield running


def add_pool(cluster: Cluster, pool: str, replicas: int) -> None:
    """The StatefulSet that the operator of this kind makes for a pool."""
    labels: dict[str, Any] = POD["metadata"]["labels"] | {"example.com/pool": pool}
    resources = {"requests": {"cpu": "1"}}
    spec = {
        "schedulerName": "farming",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "registry.invalid/none", "resources": resources}],
    }
    body = {
        "metadata": {"name": f"bert-{pool}"},
        "spec": {
            "replicas": replicas,
            "serviceName": "bert",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    cluster.api.post(f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets", body)


@pytest.mark.usefixtures("operator")
def test_the_pods_of_a_kind_of_ones_own_are_bound_whole(cluster: Cluster) -> None:
    farms = f"/apis/example.com/v1/namespaces/{cluster.namespace}/farms"
    cluster.add_node("n1", cpu="4")
    cluster.api.post(farms, FARM)
    add_pool(cluster, "trainer", 1)
    add_pool(cluster, "worker", 4)
    cluster.until(lambda: cluster.told("bert-worker-0").get("reason") == "Unschedulable")
    assert cluster.told("bert-worker-0")["message"].startswith("Group farm.bert: ")
    assert not cluster.bound()
    cluster.add_node("n2", cpu="1")
    cluster.until(lambda: len(cluster.bound()) == 5)
