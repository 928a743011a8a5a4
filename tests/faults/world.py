"""A random world: users who create, change and delete groups, pods that end, nodes that fail, schedulers that compete.

Every choice is drawn from one seed. The total demand is kept between a part of the nodes' capacity and somewhat more
than all of it, so that groups contend and still make progress. Failed requests are ignored.
"""

from __future__ import annotations

import http.client
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from testbed.api import Api, ApiError
from testbed.workloads import member, pod_group
from tests.faults.hardware import Hardware
from tests.faults.history import History
from tests.faults.kubelet import end_pod
from tests.faults.latecomers import Latecomers
from tests.faults.objects import (
    GROUP_LABEL,
    MINIMUM_ANNOTATION,
    Json,
    Key,
    ended,
    key_of,
    ours,
    phase_of,
    requests_of,
    uid_of,
)
from tests.faults.workloads import WORKLOADS, workload

NAMESPACE = "soak"
RIVAL = "rival"
WANTED = (0.6, 1.4)
"""Shares of all cores: below the first nothing is deleted, above the second nothing is created."""

_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_GROUPS = f"/apis/gangsched.io/v1alpha1/namespaces/{NAMESPACE}/podgroups"
_BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
_KINDS = {kind: path.format(namespace=NAMESPACE) for kind, path in WORKLOADS.items()}
_REJECTIONS = ("TopologyAffinityError", "UnexpectedAdmissionError", "NodeAffinity", "SMTAlignmentError")
_CPUS = ("500m", "1", "1500m", "2", "3")


class World:
    """Acts on the cluster, one random action at a time. `done` counts them by name."""

    def __init__(
        self, api: Api, history: History, *, seed: int, nodes: int, spoiled: dict[str, str] | None = None
    ) -> None:
        """`spoiled` is that of the kubelets."""
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._api = api
        self._history = history
        self._random = Random(seed)
        self._hardware = Hardware(api, history, self._random, count=nodes)
        self._spoiled = {} if spoiled is None else spoiled
        self._spared: dict[str, str] = {}
        self._numbers = 0
        self._workloads: dict[str, str] = {}
        self._bodies: dict[str, Json] = {}
        self._restarting: set[str] = set()
        self._latecomers = Latecomers(
            api,
            history,
            self._random,
            namespace=NAMESPACE,
            name=self._name,
            room=self._room,
            plenty=self._plenty,
            spare=self._spare,
        )
        self._actions: list[tuple[int, Callable[[], object]]] = [
            (10, self.create_gang),
            (3, self.create_annotated_gang),
            (3, self.create_plain_pod),
            (5, self.bind_rival),
            (4, self.delete_gang),
            (3, self.create_again),
            (5, self.delete_pod),
            (4, self.complete_pod),
            (3, self.fail_pod),
            (4, self.reject_pod),
            (2, self.spoil_kubelet),
            (2, self.mend_kubelet),
            (2, self.end_rivals),
            (2, self._hardware.cordon),
            (2, self._hardware.uncordon),
            (2, self._hardware.break_node),
            (3, self._hardware.mend_node),
            (1, self._hardware.delete_node),
            (2, self._hardware.add_again),
            (1, self._hardware.flap_node),
            (2, self.add_budget),
            (2, self.remove_budget),
            (3, self.change_minimum),
            (2, self.delete_group_only),
            (2, self.add_group_again),
            (4, self.lift_gates),
            (9, self._latecomers.create_templated_gang),
            (5, self._latecomers.create_driver),
            (16, self._latecomers.come),
            (2, self._latecomers.end_driver),
            (2, self._latecomers.delete_late_gang),
        ]

    def prepare(self) -> None:
        """Create the namespace and the nodes without waiting."""
        self._api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self._hardware.prepare()

    def act(self) -> None:
        """One random action."""
        weights, actions = zip(*self._actions, strict=True)
        (action,) = self._random.choices(actions, weights)
        try:
            if action() is not False:
                self.done[action.__name__] += 1
        except ApiError as error:
            self.refused[f"{action.__name__}: {error.status} {error.reason}"] += 1
        except (OSError, http.client.HTTPException):
            self.refused[f"{action.__name__}: no answer"] += 1

    def settle(self) -> None:
        """Undo lasting faults: heal and uncordon the nodes, lift gates, create half of the latecomers."""
        self._hardware.mend_all()
        self._spoiled.clear()
        self._try(self._latecomers.all_come)
        for pod in self._pods(lambda pod: bool(pod["spec"].get("schedulingGates"))):
            self._try(partial(self._lift, pod))

    def spares(self, pod: str) -> str:
        """Why a pod of this name must not be evicted; empty if it may be. Every name identifies its workload."""
        return self._spared.get(pod.split("-", maxsplit=1)[0], "")

    # Groups

    def create_gang(self) -> bool:
        """Create a PodGroup and its members, in either order, by a controller or one by one."""
        if not self._room():
            return False
        name = self._name("g")
        size = self._random.choice((1, 2, 2, 3, 3, 4, 5, 6))
        spec = self._group_spec(size)
        members = size + self._random.choice((0, 0, 0, 1, 2))
        roles = [role["name"] for role in spec.get("roles", [])]
        if spec.get("onDegraded") == "Restart":
            self._restarting.add(name)
        group = pod_group(name, **spec)
        steps: list[Callable[[], object]] = [
            lambda: self._api.post(_GROUPS, group),
            lambda: self._create_members(name, members, roles=roles),
        ]
        self._random.shuffle(steps)
        for step in steps:
            step()
        return True

    def create_annotated_gang(self) -> bool:
        """Create members that declare their group only by annotations."""
        if not self._room():
            return False
        size = self._random.randint(2, 4)
        self._create_members(self._name("a"), size, annotations={MINIMUM_ANNOTATION: str(size)})
        return True

    def delete_gang(self) -> bool:
        """Delete members and PodGroup, in either order."""
        if not self._workloads or not self._plenty():
            return False
        self._delete(self._random.choice(sorted(self._workloads)))
        return True

    def create_again(self) -> bool:
        """Delete a workload and create it again at once under its name, while its pods still exist."""
        name = self._any(sorted(self._bodies.keys() & self._workloads.keys()))
        if name is None:
            return False
        kind = self._workloads[name]
        self._api.delete(f"{_KINDS[kind]}/{name}?propagationPolicy=Background")
        self._api.post(_KINDS[kind], self._bodies[name])
        return True

    def delete_group_only(self) -> bool:
        """Delete a PodGroup without its members, whatever is in flight."""
        key = self._any(sorted(self._history.groups))
        if key is None:
            return False
        self._api.delete(f"{_GROUPS}/{key.name}")
        return True

    def add_group_again(self) -> bool:
        """Create a PodGroup for members that have lost theirs."""
        with self._history.lock:
            orphans = [name for name in sorted(self._workloads) if self._orphaned(name)]
        name = self._any(orphans)
        if name is None:
            return False
        self._api.post(_GROUPS, pod_group(name, min_member=self._random.randint(1, 4), maxScheduleTime="5s"))
        return True

    def change_minimum(self) -> bool:
        """Change minMember."""
        key = self._any(sorted(self._history.groups))
        if key is None:
            return False
        self._api.merge(f"{_GROUPS}/{key.name}", {"spec": {"minMember": self._random.randint(1, 6)}})
        return True

    def _group_spec(self, size: int) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "min_member": size,
            "maxScheduleTime": self._random.choice(("3s", "5s", "10s", "30s")),
            "onDegraded": self._random.choice(("Repair", "Repair", "Restart", "Ignore")),
            "placement": {"strategy": self._random.choice(("Pack", "Pack", "Spread"))},
        }
        if self._random.random() < 0.1:
            spec["timeoutPolicy"] = "Fail"
        if self._random.random() < 0.4:
            spec["priority"] = self._random.randint(0, 3)
        if self._random.random() < 0.3:
            spec["maxMember"] = size + self._random.randint(0, 2)
        if size > 2 and self._random.random() < 0.25:
            spec["roles"] = [{"name": "chief", "minMember": 1}, {"name": "worker", "minMember": size - 1}]
        return spec

    def _create_members(
        self, name: str, count: int, *, roles: Iterable[str] = (), annotations: dict[str, str] | None = None
    ) -> None:
        roles = list(roles)
        kind = "" if roles else self._random.choice(("", "StatefulSet", "StatefulSet", "Deployment", "Job"))
        requests = {"cpu": self._random.choice(_CPUS), "memory": self._random.choice(("256Mi", "1Gi"))}
        self._workloads[name] = kind
        if not kind:
            self._spare(name, "nothing would recreate it")
        if kind:
            template = member("ignored", name, requests=requests, annotations=annotations)
            counts = kind == "Job" and self._random.random() >= 0.7
            if counts:
                self._spare(name, "its Job would count that as a failure")
            given_up = kind == "Job" and self._random.random() < 0.3
            body = workload(kind, name, template, count=count, counts_disruption=counts, gives_up=given_up)
            self._bodies[name] = body
            self._api.post(_KINDS[kind], body)
            return
        gated = self._random.randrange(1, count + 1) if self._random.random() < 0.2 else 0
        for number in range(count):
            labels = {"gangsched.io/role": roles[0] if number == 0 else roles[-1]} if roles else None
            spec: dict[str, Any] = {"restartPolicy": "Never"}
            if number < gated:
                spec["schedulingGates"] = [{"name": "soak.gangsched.io/wait"}]
            pod = member(f"{name}-{number}", name, requests=requests, labels=labels, annotations=annotations, **spec)
            self._api.post(_PODS, pod)

    def _spare(self, name: str, why: str) -> None:
        if name not in self._restarting:
            self._spared[name] = why

    def _delete(self, name: str) -> None:
        kind = self._workloads.pop(name)
        if self._random.random() < 0.5:
            self._try(lambda: self._api.delete(f"{_GROUPS}/{name}"))
        if kind:
            self._try(lambda: self._api.delete(f"{_KINDS[kind]}/{name}?propagationPolicy=Background"))
        else:
            selected = f"{_PODS}?labelSelector={GROUP_LABEL}%3D{name}"
            self._try(lambda: self._api.delete(selected, grace_s=0))
        self._try(lambda: self._api.delete(f"{_GROUPS}/{name}"))
        self._try(lambda: self._api.delete(f"{_BUDGETS}/{name}"))

    def _orphaned(self, name: str) -> bool:
        key = Key(NAMESPACE, name)
        return name.startswith("g") and key not in self._history.groups

    # Pods

    def create_plain_pod(self) -> bool:
        """Create a pod of ours without a group."""
        if not self._room():
            return False
        name = self._name("p")
        self._api.post(_PODS, member(name, requests={"cpu": self._random.choice(_CPUS)}, restartPolicy="Never"))
        self._spare(name, "it has no group")
        return True

    def bind_rival(self) -> bool:
        """Create another scheduler's pod, bound at once to a random node on which it fits now."""
        requests = {"cpu": self._random.choice(_CPUS[:4])}
        pod = self._api.post(_PODS, member(self._name("r"), requests=requests, scheduler=RIVAL, restartPolicy="Never"))
        target = self._any(self._hardware.taking(pod))
        if target is None:
            self._delete_pod(pod)
            return False
        key = key_of(pod)
        binding = {"metadata": {"name": key.name, "uid": uid_of(pod)}, "target": {"kind": "Node", "name": target}}
        self._api.post(f"{_PODS}/{key.name}/binding", binding)
        return True

    def end_rivals(self) -> bool:
        """Delete some pods of the other scheduler."""
        rivals = self._pods(lambda pod: pod["spec"].get("schedulerName") == RIVAL)
        for pod in rivals:
            if self._random.random() < 0.5:
                self._delete_pod(pod)
        return bool(rivals)

    def delete_pod(self) -> bool:
        """Delete any pod of ours, at any point of its life."""
        return self._on_one(ours, self._delete_pod)

    def complete_pod(self) -> bool:
        """Let a running pod that may end succeed."""
        return self._on_one(
            lambda pod: phase_of(pod) == "Running" and pod["spec"]["restartPolicy"] == "Never",
            lambda pod: end_pod(self._api, pod, "Succeeded"),
        )

    def fail_pod(self) -> bool:
        """Let a running pod of ours fail."""
        return self._on_one(
            lambda pod: phase_of(pod) == "Running" and ours(pod), lambda pod: end_pod(self._api, pod, "Failed")
        )

    def reject_pod(self) -> bool:
        """Let a kubelet reject a pod of ours that was bound just now."""
        with self._history.lock:
            latest = {bound.uid for bound in self._history.bindings[-5:]}
        return self._on_one(
            lambda pod: ours(pod) and uid_of(pod) in latest and phase_of(pod) == "Running",
            lambda pod: end_pod(self._api, pod, "Failed", reason="OutOfcpu", message="said the soak"),
        )

    def spoil_kubelet(self) -> None:
        """Let a node's kubelet reject every pod."""
        names = sorted(self._history.nodes)
        if names:
            self._spoiled[self._random.choice(names)] = self._random.choice(_REJECTIONS)

    def mend_kubelet(self) -> bool:
        """Let such a kubelet admit pods again."""
        name = self._any(sorted(self._spoiled))
        return name is not None and self._spoiled.pop(name, None) is not None

    def lift_gates(self) -> bool:
        """Remove the scheduling gates from pods."""
        return self._on_one(
            lambda pod: bool(pod["spec"].get("schedulingGates")),
            self._lift,
        )

    def _lift(self, pod: Json) -> None:
        self._api.merge(f"{_PODS}/{key_of(pod).name}", {"spec": {"schedulingGates": None}})

    def _delete_pod(self, pod: Json) -> None:
        self._api.delete(f"{_PODS}/{key_of(pod).name}", grace_s=0)

    # Budgets

    def add_budget(self) -> bool:
        """Create a PodDisruptionBudget that forbids every eviction from a group."""
        name = self._any(sorted((*self._workloads, *self._latecomers.groups)))
        if name is None:
            return False
        selector = {"matchLabels": {GROUP_LABEL: name}}
        spec = {"maxUnavailable": 0, "selector": selector}
        self._api.post(_BUDGETS, {"metadata": {"name": name}, "spec": spec})
        return True

    def remove_budget(self) -> None:
        """Delete all budgets."""
        self._api.delete(_BUDGETS)

    # Helpers

    def _pods(self, wanted: Callable[[Json], bool]) -> list[Json]:
        with self._history.lock:
            found = [pod for pod in self._history.pods.values() if key_of(pod).namespace == NAMESPACE and wanted(pod)]
        return sorted(found, key=key_of)

    def _on_one(self, wanted: Callable[[Json], bool], do: Callable[[Json], object]) -> bool:
        pod = self._any(self._pods(wanted))
        if pod is not None:
            do(pod)
        return pod is not None

    def _any(self, choices: list[Any]) -> Any:
        return self._random.choice(choices) if choices else None

    def _name(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    def _wanted(self) -> float:
        """The requests of live and waiting pods, as a share of all nodes' cores."""
        cores = sum(requests_of(pod)["cpu"] for pod in self._pods(lambda pod: not ended(pod))) / 1000
        return cores / self._hardware.cores

    def _room(self) -> bool:
        return self._wanted() < WANTED[1]

    def _plenty(self) -> bool:
        return self._wanted() >= WANTED[0]

    def _try(self, do: Callable[[], object]) -> None:
        """Try the action; ignore a refusal or a missing answer of the API server."""
        try:
            do()
        except ApiError as error:
            self.refused[f"{error.status} {error.reason}"] += 1
        except (OSError, http.client.HTTPException):
            self.refused["no answer"] += 1
