"""`gangsched simulate` expands hand-written manifests exactly as the real API server and controllers do."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from gangsched.core.objects.pod import Pod
from gangsched.kube.reading.watched_resources import PODS
from gangsched.whatif.world.building import build
from gangsched.whatif.world.manifests import read
from tests.integration.cluster import Cluster

Json = dict[str, Any]

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
GANG = {"gangsched.io/pod-group": "g"}


def amounts(**given: str) -> Json:
    return {name.replace("huge", "hugepages-2Mi"): size for name, size in given.items()}


def container(name: str = "c", requests: Json | None = None, limits: Json | None = None, **fields: Any) -> Json:
    resources = {key: value for key, value in {"requests": requests, "limits": limits}.items() if value}
    return {"name": name, "image": "registry.example/x:1", "resources": resources, **fields}


def whole(*containers: Json, requests: Json | None = None, limits: Json | None = None, **spec: Any) -> Json:
    """A pod with pod-level resources as well."""
    resources = {key: value for key, value in {"requests": requests, "limits": limits}.items() if value}
    named = [each | {"name": f"c-{number}"} for number, each in enumerate(containers or [container()])]
    return {"containers": named, "resources": resources, **spec}


def tolerating(*tolerations: Json) -> Json:
    return {"containers": [container()], "tolerations": list(tolerations)}


PLAIN: Json = {"containers": [container(requests=amounts(cpu="1"))]}
HUGE = container(requests=amounts(cpu="1"), limits=amounts(huge="32Mi"))
SPECS: dict[str, Json] = {
    "nothing": {"containers": [container()]},
    "limits": {"containers": [container(limits=amounts(cpu="2", memory="1Gi"), requests=amounts(memory="1Mi"))]},
    "limits-of-init": {
        "containers": [container()],
        "initContainers": [
            container("sidecar", limits=amounts(cpu="1"), restartPolicy="Always"),
            container("init", limits=amounts(cpu="2")),
        ],
    },
    "host-network": {
        "hostNetwork": True,
        "containers": [container(ports=[{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}])],
        "initContainers": [container("sidecar", ports=[{"containerPort": 82}], restartPolicy="Always")],
    },
    "of-a-class": PLAIN | {"priorityClassName": "system-cluster-critical"},
    # Requests of the whole pod
    "whole-requests": whole(container(requests=amounts(cpu="1")), requests=amounts(cpu="3")),
    "whole-limits": whole(limits=amounts(cpu="3", memory="1Gi")),
    "whole-limits-of-other": whole(container(requests=amounts(cpu="1")), limits=amounts(cpu="3", memory="1Gi")),
    "whole-limits-and-requests": whole(
        container(requests=amounts(cpu="1", memory="1Mi")),
        requests=amounts(cpu="2"),
        limits=amounts(cpu="3", memory="1Gi"),
    ),
    "whole-limits-of-limits": whole(
        container(limits=amounts(cpu="1")), container(requests=amounts(cpu="0.5")), limits=amounts(cpu="3")
    ),
    "whole-limits-of-init": whole(
        limits=amounts(cpu="4", memory="1Gi"),
        initContainers=[
            container("sidecar", requests=amounts(cpu="1"), restartPolicy="Always"),
            container("init", requests=amounts(cpu="2")),
        ],
    ),
    "whole-limits-of-zero": whole(container(requests=amounts(cpu="0")), limits=amounts(cpu="3")),
    "whole-limits-of-huge": whole(container(requests=amounts(cpu="1")), limits=amounts(cpu="3", huge="64Mi")),
    "whole-limits-above-huge": whole(HUGE, limits=amounts(cpu="3", huge="64Mi")),
    "whole-requests-beside-huge": whole(HUGE, HUGE, requests=amounts(cpu="3")),
    "whole-limits-beside-huge": whole(HUGE, HUGE, limits=amounts(cpu="3")),
    # Tolerations
    "tolerates-all": tolerating({"operator": "Exists"}),
    "tolerates-every-no-execute": tolerating({"operator": "Exists", "effect": "NoExecute"}),
    "tolerates-every-no-schedule": tolerating({"operator": "Exists", "effect": "NoSchedule"}),
    "tolerates-not-ready": tolerating({"key": NOT_READY, "operator": "Exists"}),
    "tolerates-a-value": tolerating({"key": NOT_READY, "operator": "Equal", "value": "x", "effect": "NoExecute"}),
    "tolerates-unreachable": tolerating(
        {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    ),
    "tolerates-unreachable-in-part": tolerating({"key": UNREACHABLE, "operator": "Exists", "effect": "NoSchedule"}),
    "tolerates-another": tolerating({"key": "dedicated", "operator": "Exists"}),
    "tolerates-both": tolerating(
        {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ),
}
TEMPLATE = {"metadata": {"labels": GANG | {"app": "w"}}, "spec": SPECS["whole-limits-of-other"]}
SELECTOR = {"matchLabels": {"app": "w"}}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
WORKLOADS: dict[str, Json] = {
    "StatefulSet": {
        "serviceName": "w",
        "podManagementPolicy": "Parallel",
        "replicas": 2,
        "selector": SELECTOR,
        "volumeClaimTemplates": [CLAIM],
    },
    "Deployment": {"replicas": 2, "selector": SELECTOR},
    "ReplicaSet": {"replicas": 2, "selector": SELECTOR},
    "Job": {"parallelism": 2, "completions": 2},
}


def decides(pod: Pod) -> tuple[object, ...]:
    """Everything about the pod that a decision depends on, except names, labels and times."""
    return pod.shape, pod.priority, pod.scheduler, pod.gated, pod.phase, pod.declaration


def simulated(tmp_path: Path, *manifests: Json) -> list[Pod]:
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    world = build(read([str(file)]))
    return [*world.pods, *chain.from_iterable(world.successors.values())]


def stored(pods: list[Json]) -> list[Pod]:
    return [PODS.read(msgspec.Raw(msgspec.json.encode(pod)))[1] for pod in pods]


@pytest.fixture
def admitted(cluster: Cluster) -> dict[str, Json]:
    """The pods as the API server has them."""
    return {name: cluster.make_pod(pod(name)) for name in SPECS}


def pod(name: str) -> Json:
    meta = {"name": name, "labels": GANG}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"schedulerName": "gangsched"} | SPECS[name]}


def test_pods_are_admitted_as_by_the_api_server_and_those_it_has_admitted_are_not_changed(
    admitted: dict[str, Json], tmp_path: Path
) -> None:
    """The two tolerations that every pod gets were not added: on a tainted node it did not fit."""
    expected = {found.name: decides(found) for found in stored(list(admitted.values()))}
    assert {made.name: decides(made) for made in simulated(tmp_path, *map(pod, SPECS))} == expected
    saved = [found | {"apiVersion": "v1", "kind": "Pod"} for found in admitted.values()]
    assert {made.name: decides(made) for made in simulated(tmp_path, *saved)} == expected


@pytest.mark.parametrize("kind", WORKLOADS)
def test_pods_of_workloads_are_those_that_the_controllers_make(cluster: Cluster, tmp_path: Path, kind: str) -> None:
    group = "batch" if kind == "Job" else "apps"
    template = TEMPLATE | {"spec": TEMPLATE["spec"] | ({"restartPolicy": "Never"} if kind == "Job" else {})}
    workload = {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "w"},
        "spec": WORKLOADS[kind] | {"template": template},
    }
    cluster.api.post(f"/apis/{group}/v1/namespaces/{cluster.namespace}/{kind.lower()}s", workload)
    cluster.until(lambda: len(cluster.pods()) == 2, what="its pods are there")
    expected = Counter(map(decides, stored(cluster.pods())))
    assert Counter(map(decides, simulated(tmp_path, workload))) == expected
