"""Pods as controllers create them that do not run here: the steps of Argo workflows, and Spark's drivers."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.workloads import member
from tests.integration.cluster import Cluster

Json = dict[str, Any]
WORKFLOW = "workflows.argoproj.io"
EXECUTORS = 4

pytestmark = pytest.mark.usefixtures("operator")


def add_steps(cluster: Cluster, workflow: str, count: int, *, group: str = "") -> None:
    """Create `count` steps at once, as Argo 3.6 does for `withItems`; the template may name a `group`."""
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": workflow, "uid": f"uid-of-{workflow}"}
    for number in range(count):
        name = f"{workflow}-step-{number}"
        labels = {f"{WORKFLOW}/workflow": workflow, f"{WORKFLOW}/completed": "false"}
        annotations = {f"{WORKFLOW}/node-name": f"{workflow}[0].step({number})", f"{WORKFLOW}/node-id": name}
        pod = member(name, group, labels=labels, annotations=annotations, restartPolicy="Never")
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
        cluster.make_pod(pod)


def test_steps_are_left_single_in_a_namespace_in_which_workloads_are_gangs(cluster: Cluster) -> None:
    labels = {"gangsched.io/gang": "auto"}
    cluster.api.merge(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": labels}})
    cluster.add_node("n1", cpu="2")
    add_steps(cluster, "etl", 3)
    cluster.until(lambda: len(cluster.bound()) == 2)
    [waits] = {pod["metadata"]["name"] for pod in cluster.pods()} - set(cluster.bound())
    cluster.until(lambda: cluster.told(waits).get("reason") == "Unschedulable")
    assert "Group" not in cluster.told(waits)["message"]


def test_of_two_workflows_whose_template_names_a_group_with_room_for_one_the_steps_of_one_are_whole(
    cluster: Cluster,
) -> None:
    cluster.add_node("n1", cpu="4")
    for workflow in ("one", "two"):
        cluster.add_group(workflow, min_member=3)
        add_steps(cluster, workflow, 3, group=workflow)
    cluster.until(lambda: len(cluster.bound()) == 3)
    first, second = ("one", "two") if cluster.bound("one") else ("two", "one")
    cluster.until_reason(second, "Unschedulable")
    whole = len(cluster.bound(first)), len(cluster.bound(second))
    for pod in cluster.pods(first):
        cluster.delete_pod(pod["metadata"]["name"])
    cluster.until_bound(second, 3)
    assert whole == (3, 0)


def test_the_group_that_is_made_for_a_driver_belongs_to_it_and_goes_with_it(cluster: Cluster) -> None:
    """A driver of 1 CPU with four executors of 2 CPU, as palantir's users write it."""
    cluster.add_node("n1", cpu="9")
    executors = {"spark-executor-cpu": "2", "spark-executor-mem": "1Gi", "spark-executor-count": str(EXECUTORS)}
    cluster.add_pod(
        "pi-driver",
        labels={"spark-role": "driver", "spark-app-id": "pi"},
        annotations={"spark-driver-cpu": "1", "spark-driver-mem": "1Gi", **executors},
        requests={"cpu": "1", "memory": "1Gi"},
    )
    cluster.until(cluster.bound)
    group = cluster.api.get(f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups/pi")
    assert group["metadata"]["labels"] == {"gangsched.io/created-by": "gangsched"}
    (owner,) = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", cluster.pod("pi-driver")["metadata"]["uid"])
    assert group["spec"]["minMember"] == 1 + EXECUTORS
    cluster.delete_pod("pi-driver")
    cluster.until(lambda: not cluster.groups(), what="the PodGroup is collected with its owner")
