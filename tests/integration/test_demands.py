"""palantir's Demand objects on the real API server: how they are written and deleted, and what refuses that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand
from gangsched.core.objects.effects import DropDemand, PutDemand
from gangsched.kube.client.session import connect
from gangsched.kube.writing.demand_writes import drop_demand, put_demand
from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster
from tests.integration.foreign import DEMANDS, served

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def kind(with_crd: ControlPlane) -> Iterator[None]:
    with served(with_crd, DEMANDS):
        yield


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
    demands = f"/apis/scaler.palantir.com/v1alpha2/namespaces/{cluster.namespace}/demands"
    [found] = cluster.api.get(demands)["items"]
    uid = found["metadata"]["uid"]
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
    assert found["metadata"]["labels"] == {"gangsched.io/created-by": "gangsched"}
    assert [(owner["kind"], owner["uid"]) for owner in found["metadata"]["ownerReferences"]] == [("Pod", driver)]
    assert found["spec"] == {
        "instance-group": "batch",
        "is-long-lived": False,
        "enforce-single-zone-scheduling": False,
        "units": [{"count": 1, "resources": {"cpu": "1000m"}}],
    }
