"""palantir's Demand objects on the real API server: created for pods that do not fit, deleted once they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand
from gangsched.core.objects.effects import DropDemand, PutDemand
from gangsched.kube.client.session import connect
from gangsched.kube.writing.demand_writes import drop_demand, put_demand
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.cluster import Cluster
from tests.integration.foreign import DEMANDS, served
from tests.integration.test_spark import EXECUTORS, add_driver

POOL = {"resource_channel": "batch"}
Json = dict[str, Any]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def kind(with_crd: ControlPlane) -> Iterator[None]:
    with served(with_crd, DEMANDS):
        yield


@pytest.fixture
def operator(with_crd: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Operator]:
    """One operator for each test: two at once would both schedule."""
    request.getfixturevalue("kind")
    with Operator(with_crd) as running:
        yield running


def path(cluster: Cluster, name: str = "") -> str:
    return f"/apis/scaler.palantir.com/v1alpha2/namespaces/{cluster.namespace}/demands{name and '/'}{name}"


def demands(cluster: Cluster) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in cluster.api.get(path(cluster))["items"]}


def until_demanded(cluster: Cluster, *names: str) -> None:
    cluster.until(lambda: sorted(demands(cluster)) == sorted(names), what=f"the Demand objects are {names}")


def writes(cluster: Cluster, namespace: str) -> list[str]:
    """The verbs with which gangsched has written Demand objects of the namespace."""
    return [
        entry["verb"]
        for entry in cluster.control_plane.audited(naming=namespace)
        if entry.get("userAgent") == "gangsched"
        and entry.get("objectRef", {}).get("resource") == "demands"
        and entry["objectRef"].get("namespace") == namespace
    ]


@pytest.mark.usefixtures("operator")
def test_a_driver_that_does_not_fit_is_demanded_and_the_demand_is_gone_once_nodes_are_there(cluster: Cluster) -> None:
    cluster.add_node("small", cpu="2", labels=POOL)
    add_driver(cluster, "pi", nodeSelector=POOL)
    until_demanded(cluster, "demand-pi-driver")
    found = demands(cluster)["demand-pi-driver"]
    assert found["metadata"]["labels"] == {"gangsched.io/created-by": "gangsched"}
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", cluster.pod("pi-driver")["metadata"]["uid"])
    executor = {"count": EXECUTORS, "resources": {"cpu": "2000m", "memory": str(2**30)}}
    assert found["spec"] == {
        "instance-group": "batch",
        "is-long-lived": False,
        "enforce-single-zone-scheduling": False,
        "units": [executor],
    }
    cluster.add_node("large", cpu="8", labels=POOL)
    cluster.until(lambda: set(cluster.bound()) == {"pi-driver"})
    until_demanded(cluster)
    # The audit log is written after the response.
    cluster.until(lambda: writes(cluster, cluster.namespace) == ["create", "delete"])


@pytest.mark.usefixtures("kind")
async def test_another_object_of_the_name_is_neither_changed_nor_deleted(cluster: Cluster) -> None:
    # A Demand without an existing owner pod is garbage-collected.
    cluster.add_pod("pi-driver", scheduler="somebody-else")
    driver = cluster.pod("pi-driver")["metadata"]["uid"]
    pool = PoolDemand(instance_group="batch", units=(DemandUnit(1, (("cpu", 1000),)),))
    wanted = DemandObject(DemandKey(cluster.namespace, "demand-pi-driver"), "pi-driver", driver, pool)
    session = await connect(kubeconfig=str(cluster.control_plane.kubeconfig))
    answers = [
        await put_demand(session, PutDemand(wanted)),
        await put_demand(session, PutDemand(wanted)),
        await put_demand(session, PutDemand(wanted, "another")),
        await drop_demand(session, DropDemand(wanted.key, "another")),
    ]
    uid = demands(cluster)["demand-pi-driver"]["metadata"]["uid"]
    answers += [
        await put_demand(session, PutDemand(wanted, uid)),
        await drop_demand(session, DropDemand(wanted.key, uid)),
        await put_demand(session, PutDemand(wanted, uid)),
    ]
    await session.close()
    assert [str(answer.result) for answer in answers] == [
        *("Written", "Stale", "Gone", "Gone"),
        *("Written", "Written", "Gone"),
    ]
