"""ResourceClaims that a PodGroup of Kubernetes shares, on an API server and with controllers that know them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from testbed.api import Json
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import member
from tests.integration import devices
from tests.integration.cluster import Cluster
from tests.integration.test_native import (
    ACCOUNT,
    chart_operator,  # noqa: F401 - a fixture
    declare,
    with_gates,  # noqa: F401 - a fixture
)
from tests.natives import GROUP, native

pytestmark = pytest.mark.timeout(600)
GANG: Json = {"gang": {"minCount": 3}}
MADE: Json = {"name": "gpu", "resourceClaimTemplateName": "gpus"}
NAMED: Json = {"name": "gpu", "resourceClaimName": "c"}


@pytest.fixture
def gated(with_gates: ControlPlane) -> Iterator[Cluster]:  # noqa: F811 - the fixture
    with_gates.delete_nodes()
    name = f"test-{secrets.token_hex(4)}"
    with_gates.kubectl("create", "namespace", name)
    found = Cluster(with_gates, name)
    found.until(lambda: with_gates.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    devices.add_class(found, "gpu")
    yield found
    devices.remove_devices(found)


@pytest.fixture
def cluster(gated: Cluster) -> Cluster:
    """For the fixtures of other modules."""
    return gated


@pytest.fixture
def ruled(gated: Cluster, chart_operator: Operator) -> Cluster:  # noqa: F811 - the fixture
    """With gangsched, which has the chart's rights."""
    assert chart_operator.get("/readyz")[0] == 200
    return gated


def add_pod(cluster: Cluster, name: str, *claims: Json, group: str = "g") -> None:
    cluster.make_pod(member(name, schedulingGroup={"podGroupName": group}, resourceClaims=list(claims)))


def group_of(cluster: Cluster, name: str = "g") -> Json:
    found: Json = cluster.api.get(f"{native().words.at(cluster.namespace)}/{name}")
    return found


def claim_of(cluster: Cluster, user: str) -> Json:
    """The claim whose name is this, or begins with the name of this PodGroup."""
    found = [each for each in devices.claims(cluster) if each["metadata"]["name"].startswith(user)]
    assert len(found) == 1
    return found[0]


def reserved(cluster: Cluster, user: str) -> list[Json]:
    return claim_of(cluster, user).get("status", {}).get("reservedFor") or []


def of_group(found: Json) -> Json:
    meta = found["metadata"]
    return {"apiGroup": GROUP, "resource": "podgroups", "name": meta["name"], "uid": meta["uid"]}


def delete_pod(cluster: Cluster, name: str) -> None:
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/{name}", grace_s=0)


def delete_group(cluster: Cluster, name: str = "g") -> None:
    cluster.api.delete(f"{native().words.at(cluster.namespace)}/{name}")


def test_a_claim_from_a_template_is_allocated_once_for_the_whole_gang_and_released_with_it(ruled: Cluster) -> None:
    for at in range(2):
        ruled.add_node(f"n{at}", cpu="64")
    devices.add_gpus(ruled, "n1", 1)
    declare(ruled, "g", GANG, resourceClaims=[MADE])
    for at in range(4):
        add_pod(ruled, f"p-{at}", MADE)
    ruled.until(lambda: ruled.told("p-0").get("reason") == "ResourceClaimNotReady", what="the claim is missing")
    told = ruled.told("p-0")["message"]
    devices.add_template(ruled, "gpu", 1)
    ruled.until(lambda: len(ruled.bound()) == 4, within_s=60, what="all are bound")
    claim = claim_of(ruled, "g-gpu-")
    assert "kube-controller-manager has yet to create from its ResourceClaimTemplate, for the PodGroup g" in told
    assert claim["status"]["reservedFor"] == [of_group(group_of(ruled))]
    assert [each["pool"] for each in claim["status"]["allocation"]["devices"]["results"]] == ["n1"]
    assert set(ruled.bound().values()) == {"n1"}
    for at in range(4):
        delete_pod(ruled, f"p-{at}")
    delete_group(ruled)
    ruled.until(lambda: devices.claims(ruled) == [], within_s=60, what="the claim has gone with its group")


def test_the_charts_rights_suffice(ruled: Cluster) -> None:
    ours = ruled.control_plane.audited(ACCOUNT)
    assert any("resourceclaims" in entry["requestURI"] and entry["verb"] == "patch" for entry in ours)
    assert [entry["requestURI"] for entry in ours if entry.get("responseStatus", {}).get("code") in (401, 403)] == []
