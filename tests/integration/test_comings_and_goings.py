"""Workloads that go and come back under their names, and a namespace that is deleted while gangs bind in it."""

from __future__ import annotations

from testbed.operator import Operator
from testbed.workloads import member, pod_group
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

GANGS, MEMBERS = 20, 5


def test_a_namespace_that_is_deleted_while_twenty_gangs_bind_in_it_leaves_nothing_behind(
    cluster: Cluster, operator: Operator
) -> None:
    api, doomed = cluster.api, f"{cluster.namespace}-doomed"
    cluster.add_node("n1", cpu=str(GANGS * MEMBERS), pods="200")
    api.post("/api/v1/namespaces", {"metadata": {"name": doomed}})
    until(lambda: api.get(f"/api/v1/namespaces/{doomed}/serviceaccounts")["items"])
    pods = f"/api/v1/namespaces/{doomed}/pods"
    for number in range(GANGS):
        api.post(f"/apis/gangsched.io/v1alpha1/namespaces/{doomed}/podgroups", pod_group(f"g{number}", min_member=5))
        for at in range(MEMBERS - 1):
            api.post(pods, member(f"g{number}-{at}", f"g{number}"))
    for number in range(GANGS // 2):
        api.post(pods, member(f"g{number}-last", f"g{number}"))
    api.delete(f"/api/v1/namespaces/{doomed}")
    until(lambda: doomed not in [each["metadata"]["name"] for each in api.get("/api/v1/namespaces")["items"]], 120)
    cluster.add_group("all", min_member=GANGS * MEMBERS)
    cluster.add_pods("all", GANGS * MEMBERS)
    cluster.until_bound("all", GANGS * MEMBERS, within_s=60)
    assert operator.child.poll() is None
    assert operator.metric("gangsched_partly_bound_groups") == 0
    assert operator.metric("gangsched_held_capacity") == 0
