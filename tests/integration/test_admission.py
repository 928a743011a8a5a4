"""What `gangsched simulate` makes of manifests is what the real API server and controllers store of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape, Toleration
from gangsched.kube.reading.watched_resources import PODS
from gangsched.whatif.world.building import build
from gangsched.whatif.world.contents import World
from gangsched.whatif.world.manifests import ManifestError, manifests_of
from testbed.api import ApiError, unless_gone
from tests.effort import seeded
from tests.integration.admitted import MARK, TOPOLOGY, Dice
from tests.integration.cluster import Cluster

Json = dict[str, Any]
NUMBER = 40


def stored(pods: list[Json]) -> list[Pod]:
    return [PODS.read(msgspec.Raw(msgspec.json.encode(pod)))[1] for pod in pods]


def decides(pod: Pod) -> tuple[object, ...]:
    """Everything about the pod that a decision depends on, except names, labels and times."""
    return pod.shape, pod.priority, pod.scheduler, pod.gated, pod.phase, pod.declaration


def world(cluster: Cluster, *manifests: Json) -> World:
    return build(manifests_of(manifests, "manifests", namespace=cluster.namespace))


def tried(cluster: Cluster, pod: Json) -> Json | None:
    """The pod as the API server would store it; None if it refuses it."""
    with contextlib.suppress(Refused):
        return posted(cluster, pod)
    return None


class Refused(Exception):  # noqa: N818 - what it says, in a word
    """The API server refuses the object."""


def posted(cluster: Cluster, pod: Json) -> Json:
    try:
        return cluster.api.post(f"/api/v1/namespaces/{cluster.namespace}/pods?dryRun=All", pod)
    except ApiError as error:
        if error.status not in (403, 422):
            raise
        raise Refused(str(error)) from None


def simulated(cluster: Cluster, *manifests: Json) -> Pod | None:
    """The only pod that simulate makes of these; None if it refuses it."""
    with contextlib.suppress(ManifestError):
        return world(cluster, *manifests).pods[0]
    return None


def held(cluster: Cluster, pod: Json, *manifests: Json) -> Shape | None:
    """The place that is held for a later pod of this template; None if it is refused, as by the API server.

    What is added to pods may repair them, for example by a toleration that includes one of an unknown form.
    """
    spec = {"replicas": 2, "serviceName": "w", "selector": {"matchLabels": {"set": "w"}}}
    template = {"metadata": {"labels": pod["metadata"]["labels"] | {"set": "w"}}, "spec": pod["spec"]}
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}}
    stateful_set |= {"spec": {**spec, "template": {**template, "spec": pod["spec"] | {"restartPolicy": "Always"}}}}
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets?dryRun=All"
    try:
        cluster.api.post(path, stateful_set)
    except ApiError as error:
        if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        with pytest.raises(ManifestError, match="the API server would refuse it"):
            world(cluster, *manifests, stateful_set)
        return None
    made = world(cluster, *manifests, stateful_set)
    [role] = (role for each in made.foreign if each.spec for role in each.spec.roles)
    assert role.template is not None
    return role.template


BY_DEFAULT = {
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect="NoExecute")
    for key in ("not-ready", "unreachable")
}
"""The tolerations of every pod."""


@pytest.fixture
def runtimes(cluster: Cluster) -> Iterator[list[str]]:
    """The names of two RuntimeClasses; the test creates them."""
    names = [f"{cluster.namespace}-{number}" for number in range(2)]
    yield names
    for name in names:
        with unless_gone():
            cluster.api.delete(f"/apis/node.k8s.io/v1/runtimeclasses/{name}")


def in_force(cluster: Cluster, limit_range: Json) -> None:
    """Create the LimitRange and wait until the API server applies it."""
    cluster.api.post(f"/api/v1/namespaces/{cluster.namespace}/limitranges", limit_range)
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}

    def applied() -> bool:
        try:
            found = posted(cluster, probe)
        except Refused:
            return True
        return MARK in found["spec"]["containers"][0]["resources"].get("requests", {})

    cluster.until(applied, what="the LimitRange is in force")


@seeded(16)
def test_pods_are_changed_and_refused_as_by_the_api_server(cluster: Cluster, runtimes: list[str], seed: int) -> None:
    """Neither LimitRanges nor RuntimeClasses nor label keys of pod affinity were applied, nor default tolerations.

    Pods that it has admitted are not changed again.
    """
    dice = Dice(seed)
    limit_range = dice.limit_range()
    classes = [dice.runtime_class(name) for name in runtimes]
    in_force(cluster, limit_range)
    for each in classes:
        cluster.api.post("/apis/node.k8s.io/v1/runtimeclasses", each)
    for number in range(NUMBER):
        pod = dice.pod(f"p{number}", runtimes)
        admitted, found = tried(cluster, pod), simulated(cluster, limit_range, *classes, pod)
        assert (found is None) == (admitted is None), pod
        if found and admitted:
            [expected] = stored([admitted])
            assert decides(found) == decides(expected), pod
            saved = simulated(cluster, limit_range, *classes, admitted | {"apiVersion": "v1", "kind": "Pod"})
            assert saved is not None
            assert decides(saved) == decides(expected), pod
            place = held(cluster, pod, limit_range, *classes)
            if place is None:
                continue
            assert place.node_selector == expected.shape.node_selector, pod
            own, made = dict(place.requests), dict(expected.shape.requests)
            # What a pod limits as a whole, it requested as a whole before 1.37.
            limited = pod["spec"].get("resources", {}).get("limits", {})
            assert own.keys() == made.keys(), pod
            assert all(own[name] == made[name] or (name in limited and own[name] > made[name]) for name in made), pod
            assert place.host_ports == expected.shape.host_ports
            assert {*place.tolerations} >= {*expected.shape.tolerations} - BY_DEFAULT, pod


def quota(**hard: str) -> Json:
    names = {name.replace("_", "."): amount for name, amount in hard.items()}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": names}}


def job(name: str, size: int, **asked: str) -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": asked}}
    template = {"spec": {"restartPolicy": "Never", "schedulerName": "gangsched", "containers": [container]}}
    spec = {"parallelism": size, "completions": size, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("hard", "asked", "number"),
    [
        (quota(requests_cpu="5"), {"cpu": "2"}, 2),
        (quota(pods="3"), {"cpu": "2"}, 3),
        (quota(requests_cpu="5", memory="3Gi"), {"cpu": "1", "memory": "1Gi"}, 3),
        (quota(memory="3Gi"), {"cpu": "1"}, 0),
        (quota(services="3"), {"cpu": "1"}, 4),
        (quota(requests_cpu="100m"), {"cpu": "1"}, 0),
    ],
)
def test_a_quota_admits_as_many_pods_of_a_job_as_in_the_cluster(
    cluster: Cluster, hard: Json, asked: Json, number: int
) -> None:
    cluster.api.post(f"/api/v1/namespaces/{cluster.namespace}/resourcequotas", hard)
    path = f"/api/v1/namespaces/{cluster.namespace}/resourcequotas/q"
    cluster.until(lambda: cluster.api.get(path)["status"]["hard"] == hard["spec"]["hard"], what="the quota is counted")
    made = job("train", 4, **asked)
    cluster.api.post(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs", made)
    if number < 4:
        cluster.until(lambda: cluster.events("train", "FailedCreate"), what="a pod is refused")
    cluster.until(lambda: len(cluster.pods()) == number, what=f"{number} pods are there")
    found = world(cluster, hard, made)
    assert len(found.pods) == number
    assert bool(found.refused) == (number < 4)


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": TOPOLOGY,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "w"}},
}
KEYS = {
    "StatefulSet": "controller-revision-hash",
    "Deployment": "pod-template-hash",
    "ReplicaSet": "team",
    "Job": "batch.kubernetes.io/job-completion-index",
    "ReplicationController": "team",
}


@pytest.mark.parametrize("kind", KEYS)
def test_pods_of_workloads_are_those_that_controllers_make_with_the_labels_by_which_they_spread(
    cluster: Cluster, kind: str
) -> None:
    """A hash that a controller computes may be another one, but it groups the same pods."""
    spec = {
        "containers": [{"name": "c", "image": "x", "resources": {"limits": {"cpu": "1"}}}],
        "topologySpreadConstraints": [{**SPREAD, "matchLabelKeys": [KEYS[kind]]}],
    }
    version, group = ("v1", "api/v1") if kind == "ReplicationController" else ("apps/v1", "apis/apps/v1")
    labels = {"app": "w", "team": "x"}
    own: Json = {"replicas": 2, "selector": {"matchLabels": {"app": "w"}}}
    if kind == "Job":
        version, group = "batch/v1", "apis/batch/v1"
        own = {"parallelism": 2, "completions": 2, "completionMode": "Indexed"}
        spec["restartPolicy"] = "Never"
    elif kind == "ReplicationController":
        own = {"replicas": 2, "selector": {"app": "w"}}
    elif kind == "StatefulSet":
        own |= {"serviceName": "w", "podManagementPolicy": "Parallel", "volumeClaimTemplates": [CLAIM]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    made = {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": {**own, "template": template}}
    cluster.api.post(f"/{group}/namespaces/{cluster.namespace}/{kind.lower()}s", made)
    cluster.until(lambda: len(cluster.pods()) == 2, what="its pods are there")
    real, here = stored(cluster.pods()), world(cluster, made).pods
    assert [decides(spread_apart(pod)) for pod in here] == [decides(spread_apart(pod)) for pod in real]
    assert [set(dict(pod.labels)) for pod in here] == [set(dict(pod.labels)) for pod in real]
    assert [asked(pod) for pod in here] == [asked(pod) for pod in real]


def spread_apart(pod: Pod) -> Pod:
    """The pod without the constraints that `asked` compares."""
    return replace(pod, shape=replace(pod.shape, spread=()))


def asked(pod: Pod) -> list[tuple[str, bool]]:
    """The keys by which the pod spreads, and whether the value is the pod's own."""
    [constraint] = pod.shape.spread
    own = dict(pod.labels)
    return sorted({(each.key, each.values == (own.get(each.key),)) for each in constraint.term.selector or ()})
