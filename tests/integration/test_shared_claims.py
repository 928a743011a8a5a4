"""ResourceClaims that a PodGroup of Kubernetes shares, on an API server and with controllers that know them."""

from __future__ import annotations

import secrets
import time
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
OWN: Json = {"name": "own", "resourceClaimName": "own"}


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


def test_the_story_of_workload_resource_claims(ruled: Cluster) -> None:
    """test/integration/dra/workload_resource_claims.go of v1.37.2, with the controllers instead of the test's hands."""
    ruled.add_node("worker-0", cpu="64")
    devices.add_gpus(ruled, "worker-0", 2)
    for name in ("c", "own"):
        devices.add_claim(ruled, name, "gpu")
    declare(ruled, "g", {"basic": {}}, resourceClaims=[NAMED])
    add_pod(ruled, "p-1", NAMED, OWN)
    ruled.until(lambda: len(ruled.bound()) == 1, what="the first is bound")
    its_group = [of_group(group_of(ruled))]
    assert reserved(ruled, "c") == its_group
    assert [each["name"] for each in reserved(ruled, "own")] == ["p-1"]

    add_pod(ruled, "p-2", NAMED, OWN)
    ruled.until(lambda: len(ruled.bound()) == 2, what="the second is bound")
    assert reserved(ruled, "c") == its_group
    assert sorted(each["name"] for each in reserved(ruled, "own")) == ["p-1", "p-2"]

    delete_pod(ruled, "p-1")
    ruled.until(lambda: [each["name"] for each in reserved(ruled, "own")] == ["p-2"], within_s=60)
    delete_pod(ruled, "p-2")
    ruled.until(lambda: reserved(ruled, "own") == [], within_s=60)
    time.sleep(5)  # longer than gangsched takes to undo what nobody needs
    assert reserved(ruled, "c") == its_group

    delete_group(ruled)
    ruled.until(lambda: reserved(ruled, "c") == [], within_s=60, what="the group's claim is released")


def test_devices_that_never_get_ready_are_given_back_when_the_gang_loses_a_member(ruled: Cluster) -> None:
    ruled.add_node("n0", cpu="64")
    device = {"name": "gpu-0", "capacity": {"memory": {"value": "80Gi"}}, "bindsToNode": True}
    conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    devices.add_slice(ruled, "n0-gpus", "n0", devices=[device | conditions])
    devices.add_claim(ruled, "c", "gpu")
    declare(ruled, "g", GANG, resourceClaims=[NAMED])
    for at in range(3):
        add_pod(ruled, f"p-{at}", NAMED)
    ruled.until(lambda: reserved(ruled, "c") == [of_group(group_of(ruled))], what="it is reserved for the group")
    time.sleep(1)
    assert ruled.bound() == {}
    delete_pod(ruled, "p-2")
    ruled.until(lambda: not devices.left(ruled), within_s=30, what="nothing is left on the claim")
    assert ruled.bound() == {}
    add_pod(ruled, "p-3", NAMED)
    ruled.until(lambda: reserved(ruled, "c") != [], within_s=30, what="it is reserved again")
    devices.report(ruled, claim_of(ruled, "c"), "Attached")
    ruled.until(lambda: len(ruled.bound()) == 3, within_s=30, what="all are bound")


def test_the_charts_rights_suffice(ruled: Cluster) -> None:
    ours = ruled.control_plane.audited(ACCOUNT)
    assert any("resourceclaims" in entry["requestURI"] and entry["verb"] == "patch" for entry in ours)
    assert [entry["requestURI"] for entry in ours if entry.get("responseStatus", {}).get("code") in (401, 403)] == []
