"""Steps of Argo workflows, with pods as Argo 3.6 creates them; its controller would need running containers."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.workloads import member
from tests.integration.cluster import Cluster

Json = dict[str, Any]
WORKFLOW = "workflows.argoproj.io"

pytestmark = pytest.mark.usefixtures("operator")


def add_steps(cluster: Cluster, workflow: str, count: int, *, group: str = "") -> None:
    """Create `count` steps at once, as `withItems` does. `group` is the group in the template's metadata."""
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
