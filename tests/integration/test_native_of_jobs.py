"""The groups that the Job controller of Kubernetes 1.37 makes for Jobs, with gangsched for their pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed import crds
from testbed.api import Json
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from tests.integration.cluster import Cluster
from tests.natives import JOBS, native

pytestmark = pytest.mark.timeout(300)

GANG: Json = {"schedulingPolicy": {"gang": {}}}


@pytest.fixture(scope="module")
def with_gates() -> Iterator[ControlPlane]:
    known = native()
    gates = known.feature_gates(JOBS)
    with ControlPlane(extra_apiserver_args=(*gates, *known.served), extra_controller_args=gates) as running:
        crds.install(running)
        yield running


@pytest.fixture(scope="module", autouse=True)
def _operator(with_gates: ControlPlane) -> Iterator[Operator]:
    with Operator(with_gates) as running:
        yield running


@pytest.fixture
def gated(with_gates: ControlPlane) -> Iterator[Cluster]:
    """At the end its Jobs are deleted, so that they take no room of later tests."""
    found = Cluster.fresh(with_gates)
    yield found
    with_gates.kubectl("delete", "jobs", "--all", "--namespace", found.namespace)
    found.until(lambda: not found.pods())


def add(cluster: Cluster, name: str, size: int, **spec: Any) -> None:
    def posted() -> bool:
        cluster.add_job(name, size, **spec)
        return True

    cluster.until(posted)


def group_of(cluster: Cluster, name: str) -> Json:
    """The group of the Job."""

    def found() -> list[Json]:
        path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{cluster.namespace}/podgroups"
        items: list[Json] = cluster.api.get(path)["items"]
        return [each for each in items if each["metadata"]["name"].startswith(f"{name}-")]

    cluster.until(found)
    [only] = found()
    return only


@pytest.mark.parametrize(
    "shape",
    [{"completionMode": "Indexed"}, {}, {"completionMode": "Indexed", "completions": 9}, {"completions": 9}],
    ids=["indexed", "not-indexed", "indexed-in-waves", "not-indexed-in-waves"],
)
def test_a_job_that_asks_for_a_gang_is_whole_or_waits_and_one_that_asks_for_nothing_does_not(gated, shape):
    gated.add_node("n1", cpu="4")
    add(gated, "whole", 3, **{**shape, "scheduling": GANG})
    gated.until(lambda: len(gated.bound()) == 3)
    add(gated, "late", 3, **{**shape, "scheduling": GANG})
    gated.until(lambda: len(gated.pods()) == 6)
    waiting = next(pod["metadata"]["name"] for pod in gated.pods() if pod["metadata"]["name"].startswith("late"))
    gated.until(lambda: gated.told(waiting).get("reason") == "Unschedulable")
    assert len(gated.bound()) == 3
    assert group_of(gated, "late")["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    add(gated, "loose", 3, **shape)
    gated.until(lambda: len(gated.bound()) == 4)
    assert group_of(gated, "loose")["spec"]["schedulingPolicy"] == {"basic": {}}


def test_a_changed_minimum_of_a_job_is_followed_while_it_waits(gated):
    gated.add_node("n1", cpu="2")
    add(gated, "train", 4, scheduling={"schedulingPolicy": {"gang": {"minCount": 4}}})
    gated.until(lambda: len(gated.pods()) == 4)
    waiting = gated.pods()[0]["metadata"]["name"]
    gated.until(lambda: gated.told(waiting).get("reason") == "Unschedulable")
    path = f"/apis/batch/v1/namespaces/{gated.namespace}/jobs/train"
    gated.api.merge(path, {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}})
    gated.until(lambda: len(gated.bound()) == 2)
