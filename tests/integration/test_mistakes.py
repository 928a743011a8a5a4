"""What newcomers do wrong: where the answer appears, and the sentence, which names the remedy.

All mistakes are made at once, each with names of its own, beside two nodes of 8 CPUs.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from gangsched.cli import main
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import SCHEDULER, member, pod_group
from tests.integration.cluster import Cluster

Json = dict[str, Any]
LABEL = "gangsched.io/pod-group"
_WITHIN_S = 30


def template(group: str, *, scheduler: str = SCHEDULER, requests: Json | None = None, **spec: Any) -> Json:
    pod = member("", group, scheduler=scheduler, requests=requests)
    return {"metadata": {"labels": pod["metadata"]["labels"] | {"made": "yes"}}, "spec": pod["spec"] | spec}


def job(name: str, number: int, made: Json, *, labels: Json | None = None, **spec: Any) -> Json:
    made["spec"]["restartPolicy"] = "Never"
    asked = {"parallelism": number, "completions": number, "template": made}
    meta = {"name": name, "labels": labels or {}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": asked | spec}


def stateful_set(name: str, number: int, made: Json, *, policy: str = "Parallel") -> Json:
    made["metadata"]["labels"]["set"] = name
    asked = {
        "replicas": number,
        "serviceName": name,
        "podManagementPolicy": policy,
        "selector": {"matchLabels": {"set": name}},
        "template": made,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": asked}


@dataclass(frozen=True)
class Mistake:
    """The `objects` of a mistake, what `gangsched explain` is asked for, and what it must say.

    `on_pods`: the Event on each pod says this, and so do their conditions.
    """

    objects: tuple[Json, ...]
    asked: str
    said: str
    on_pods: str = ""


def priority_class(name: str, value: int) -> Json:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


MISTAKES = {
    "the label on the Job instead of its template": Mistake(
        (pod_group("a", min_member=2), job("a", 2, template("", scheduler="default-scheduler"), labels={LABEL: "a"})),
        "a",
        f"the label {LABEL} in spec.template.metadata.labels of the Job a, which has it only on itself",
    ),
    "a group of almost the same name": Mistake(
        (pod_group("training", min_member=2), job("b", 2, template("trainig"))),
        "trainig",
        "the right name in the pods' label: there is a PodGroup training",
        "There is no PodGroup trainig in namespace {namespace}: create it, or give the pods",
    ),
    "a group of that name in another namespace": Mistake(
        (pod_group("c", min_member=2) | {"elsewhere": True}, job("c", 2, template("c"))),
        "c",
        "a PodGroup in the pods' own namespace {namespace}: {elsewhere}/c counts only for pods of its own",
        "There is no PodGroup c in namespace {namespace}: create it",
    ),
    "minMember above the replicas": Mistake(
        (pod_group("d", min_member=3), stateful_set("d", 2, template("d"))),
        "d",
        "a minimum of at most 2, which is all that the StatefulSet d will make, or more replicas there",
        "2 of 3 members exist; 1 more member is needed",
    ),
    "minMember above what exists": Mistake(
        (pod_group("e", min_member=3), job("e", 2, template("e"))),
        "e",
        "a minimum of 2, as many as exist",
    ),
    "a suspended Job": Mistake(
        (pod_group("f", min_member=2), job("f", 2, template("f"), suspend=True)),
        "f",
        "the end of the suspension of the Job f: set its spec.suspend to false",
    ),
    "a StatefulSet that makes its pods one by one": Mistake(
        (pod_group("g", min_member=2), stateful_set("g", 2, template("g"), policy="OrderedReady")),
        "g",
        "podManagementPolicy: Parallel for the StatefulSet g, which makes a pod only when the one before runs; delete",
    ),
    "no PodGroup at all": Mistake(
        (job("h", 2, template("h")),),
        "h",
        "There is no PodGroup h in namespace {namespace}: create it, or give the pods the annotation "
        "gangsched.io/min-member.",
        "There is no PodGroup h in namespace {namespace}: create it, or give the pods the annotation",
    ),
    "another schedulerName": Mistake(
        (pod_group("i", min_member=2), job("i", 2, template("i", scheduler="default-scheduler"))),
        "i",
        "another schedulerName: 2 pods of default-scheduler named the group without effect",
    ),
    "more CPUs than any node has": Mistake(
        (pod_group("j", min_member=2), job("j", 2, template("j", requests={"cpu": "40"}))),
        "j",
        "each member asks cpu 40, and the largest node that accepts them has cpu 8; ask for less or add a larger node",
        "each member asks cpu 40, and the largest node that accepts them has cpu 8; ask for less or add a larger node",
    ),
    "a GPU that no node offers": Mistake(
        (pod_group("k", min_member=2), job("k", 2, template("k", requests={"amd.com/gpu": "1"}))),
        "k",
        "no node that accepts them offers amd.com/gpu (is its device plug-in running?)",
        "no node that accepts them offers amd.com/gpu (is its device plug-in running?)",
    ),
    "a node selector that no node matches": Mistake(
        (pod_group("l", min_member=2), job("l", 2, template("l", nodeSelector={"disk": "ssd"}))),
        "l",
        "disk=ssd",
        "disk=ssd",
    ),
    "a claim that does not exist": Mistake(
        (
            pod_group("m", min_member=1),
            job(
                "m",
                1,
                template("m", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]),
            ),
        ),
        "m",
        "uses the PersistentVolumeClaim missing, which does not exist: create it.",
        "uses the PersistentVolumeClaim missing, which does not exist: create it.",
    ),
    "a priority class of the group that does not exist": Mistake(
        (pod_group("n", min_member=1, priorityClassName="urgent"), job("n", 1, template("n"))),
        "n",
        "names the PriorityClass urgent, which does not exist: create it or name another.",
        "names the PriorityClass urgent, which does not exist: create it or name another.",
    ),
    "a role that the group does not have": Mistake(
        (
            pod_group("o", min_member=1),
            job("o", 1, template("o") | {"metadata": {"labels": {LABEL: "o", "gangsched.io/role": "worker"}}}),
        ),
        "o",
        "names the role worker, but the group o has no roles: correct the label gangsched.io/role or add the role",
        "names the role worker, but the group o has no roles: correct the label gangsched.io/role or add the role",
    ),
    "a strategy that is not installed": Mistake(
        (pod_group("p", min_member=1, placement={"strategy": "example.com/Best"}), job("p", 1, template("p"))),
        "p",
        "The placement strategy example.com/Best is not installed: install the plug-in that provides it, or use one of",
        "The placement strategy example.com/Best is not installed: install the plug-in that provides it, or use one of",
    ),
    "pods that a quota refuses": Mistake(
        (
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "small"},
                "spec": {"hard": {"requests.example.com/token": "0"}},
            },
            pod_group("q", min_member=1),
            stateful_set("q", 1, template("q", requests={"example.com/token": "1"})),
        ),
        "q",
        "pods that the StatefulSet q could not make: Create Pod q-0 in StatefulSet q failed error: ",
    ),
}


@dataclass(frozen=True)
class Stage:
    """The namespace where all mistakes have been made, and another one."""

    cluster: Cluster
    elsewhere: str


@pytest.fixture(autouse=True)
def _no_nodes_left() -> None:
    """The nodes stay from one test to the next here, as everything else does."""


@pytest.fixture(scope="module")
def stage(with_crd: ControlPlane) -> Iterator[Stage]:
    with_crd.delete_nodes()
    names = [f"mistakes-{secrets.token_hex(3)}" for _ in range(2)]
    for name in names:
        with_crd.kubectl("create", "namespace", name)
    made = Stage(Cluster(with_crd, names[0]), names[1])
    for number in range(2):
        made.cluster.add_node(f"n{number}", cpu="8")
    with Operator(with_crd):
        for namespace, elsewhere in zip(names, (False, True), strict=True):
            bodies = [
                {key: value for key, value in each.items() if key != "elsewhere"}
                for mistake in MISTAKES.values()
                for each in mistake.objects
                if ("elsewhere" in each) is elsewhere
            ]
            listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
            with_crd.kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=listed)
        yield made
    with_crd.delete_nodes()
    for name in names:
        with_crd.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_answered_with_its_remedy(stage: Stage, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    mistake, cluster = MISTAKES[what], stage.cluster
    words = {"namespace": cluster.namespace, "elsewhere": stage.elsewhere}
    said, until = mistake.said.format(**words), time.monotonic() + _WITHIN_S
    while True:
        main(["explain", "--kubeconfig", str(cluster.control_plane.kubeconfig), f"{cluster.namespace}/{mistake.asked}"])
        out = capsys.readouterr().out
        if said in out or time.monotonic() > until:
            break
        time.sleep(0.5)
    assert said in out
    if mistake.on_pods:
        on_pods = mistake.on_pods.format(**words)
        waiting = [
            pod["metadata"]["name"] for pod in cluster.pods() if pod["metadata"]["labels"].get(LABEL) == mistake.asked
        ]
        assert waiting
        for name in waiting:
            cluster.until(partial(_has_event, cluster, name, on_pods), within_s=30)
            assert on_pods in cluster.told(name)["message"]


def _has_event(cluster: Cluster, name: str, note: str) -> bool:
    return any(note in each["note"] for each in cluster.events(name))
