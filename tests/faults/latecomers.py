"""Groups whose members arrive late: a chief whose workers follow, and Spark drivers that create executors.

Their number, time and size are random: some never come, and some ask for more than the template says. A lost member is
replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from testbed.api import Api
from testbed.workloads import member, pod_group
from tests.faults.history import History
from tests.faults.kubelet import end_pod
from tests.faults.objects import GROUP_LABEL, SPARK_APP_LABEL, Json, Key, group_of, live, phase_of, role_of, uid_of
from tests.faults.workloads import WORKLOADS, workload

_TEMPLATES = ("500m", "1", "2")
_MEMORY = "256Mi"
_LARGER = "3"
_AT_ONCE = (1, 1, 2, 3, 6)


@dataclass(frozen=True, kw_only=True)
class _Late:
    """A group whose first member is created by `chief` (a kind, or none), and how many others come.

    They have the template's size, except a share of `odd`. `app`: the Spark application.
    """

    app: bool
    chief: str
    come: int
    cpu: str
    odd: float


class Latecomers:
    """Each public method is one random action; False: there was nothing to do.

    `room` says whether something may be created, `plenty` whether something may be deleted; `name` makes up a name with
    a prefix, and `spare` records why pods, identified by the part of the name before the dash, must not be evicted.
    """

    def __init__(
        self,
        api: Api,
        history: History,
        random: Random,
        *,
        namespace: str,
        name: Callable[[str], str],
        room: Callable[[], bool],
        plenty: Callable[[], bool],
        spare: Callable[[str, str], None],
    ) -> None:
        self.groups: dict[str, _Late] = {}
        self._api = api
        self._history = history
        self._random = random
        self._namespace = namespace
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._sets = WORKLOADS["StatefulSet"].format(namespace=namespace)
        self._podgroups = f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"
        self._name = name
        self._room = room
        self._plenty = plenty
        self._spare = spare
        self._made = 0

    def create_templated_gang(self) -> bool:
        """A PodGroup with a template for its workers, and its chief."""
        if not self._room():
            return False
        name, workers = self._name("t"), self._random.choice((1, 2, 3, 3, 4, 5))
        cpu = self._random.choice(_TEMPLATES)
        beyond = self._random.choice((0, 0, 1))
        template = {"requests": {"cpu": cpu, "memory": _MEMORY}}
        spec: dict[str, Any] = {
            "min_member": 1 + workers,
            "maxScheduleTime": self._random.choice(("3s", "5s", "10s", "30s")),
            "onDegraded": self._random.choice(("Repair", "Repair", "Restart", "Ignore")),
            "timeoutPolicy": self._random.choice(("Retry", "Retry", "Fail")),
            "roles": [
                {"name": "chief", "minMember": 1},
                {"name": "worker", "minMember": workers - beyond, "template": template},
            ],
        }
        if self._random.random() < 0.4:
            spec["priority"] = self._random.randint(0, 3)
        chief = "" if self._random.random() < 0.5 else "StatefulSet"
        self.groups[name] = self._late(app=False, chief=chief, workers=workers, cpu=cpu)
        if spec["onDegraded"] != "Restart":
            self._spare(f"{name}w", "nothing would recreate it")
            if not chief:
                self._spare(name, "nothing would recreate it")
        steps: list[Callable[[], object]] = [
            lambda: self._api.post(self._podgroups, pod_group(name, **spec)),
            lambda: self._create_chief(name, chief),
        ]
        self._random.shuffle(steps)
        for step in steps:
            step()
        return True

    def create_driver(self) -> bool:
        """A Spark driver as users of palantir's scheduler declare it."""
        if not self._room():
            return False
        name, executors = self._name("s"), self._random.choice((0, 1, 2, 2, 3, 4))
        cpu = self._random.choice(_TEMPLATES)
        annotations = {"spark-executor-cpu": cpu, "spark-executor-mem": _MEMORY, "spark-executor-count": str(executors)}
        self._spare(name, "nothing would recreate it")
        self.groups[name] = self._late(app=True, chief="", workers=executors, cpu=cpu)
        labels = {SPARK_APP_LABEL: name, "spark-role": "driver"}
        requests = {"cpu": self._random.choice(_TEMPLATES), "memory": _MEMORY}
        driver = member(
            f"{name}-driver", requests=requests, labels=labels, annotations=annotations, restartPolicy="Never"
        )
        self._api.post(self._pods, driver)
        return True

    def come(self) -> bool:
        """Create some of a group's missing members; executors only once their driver runs."""
        name = self._any([name for name in sorted(self.groups) if self._missing(name)])
        if name is None:
            return False
        self._create(name, self._random.choice(_AT_ONCE))
        return True

    def end_driver(self) -> bool:
        """Let a running driver or chief succeed or fail."""
        pod = self._any([pod for name in sorted(self.groups) for pod in self._members(name) if _leads(pod)])
        if pod is None or phase_of(pod) != "Running" or pod["spec"]["restartPolicy"] != "Never":
            return False
        end_pod(self._api, pod, self._random.choice(("Succeeded", "Failed")))
        return True

    def delete_late_gang(self) -> bool:
        """Delete a whole group, or a driver together with its executors and its PodGroup."""
        name = self._any(sorted(self.groups))
        if name is None or not self._plenty():
            return False
        late = self.groups.pop(name)
        if late.app:
            self._api.delete(f"{self._pods}/{name}-driver", grace_s=0)
            return True
        if late.chief:
            self._api.delete(f"{self._sets}/{name}?propagationPolicy=Background")
        self._api.delete(f"{self._pods}?labelSelector={GROUP_LABEL}%3D{name}", grace_s=0)
        self._api.delete(f"{self._podgroups}/{name}")
        return True

    def all_come(self) -> None:
        """Create the missing members of every second group."""
        for name in sorted(self.groups)[::2]:
            self._create(name, self._missing(name))

    def _late(self, *, app: bool, chief: str, workers: int, cpu: str) -> _Late:
        come = self._random.choice((0, workers // 2, workers, workers, workers, workers + 1))
        return _Late(app=app, chief=chief, come=come, cpu=cpu, odd=self._random.choice((0.0, 0.0, 0.3)))

    def _create_chief(self, name: str, kind: str) -> None:
        requests = {"cpu": self._random.choice(_TEMPLATES), "memory": _MEMORY}
        labels = {"gangsched.io/role": "chief"}
        if not kind:
            pod = member(f"{name}-0", name, requests=requests, labels=labels, restartPolicy="Never")
            self._api.post(self._pods, pod)
            return
        pod = member("ignored", name, requests=requests, labels=labels)
        self._api.post(self._sets, workload(kind, name, pod, count=1))

    def _create(self, name: str, most: int) -> None:
        late = self.groups[name]
        for _ in range(min(most, self._missing(name))):
            self._made += 1
            requests = {"cpu": _LARGER if self._random.random() < late.odd else late.cpu, "memory": _MEMORY}
            if late.app:
                driver = next((pod for pod in self._members(name) if role_of(pod) == "driver"), None)
                if driver is None:
                    return  # it has ended since the check, and creates no more executors
                labels = {SPARK_APP_LABEL: name, "spark-role": "executor"}
                pod = member(f"{name}e-{self._made}", requests=requests, labels=labels, restartPolicy="Never")
                meta = driver["metadata"]
                owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": uid_of(driver)}
                pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
            else:
                labels = {"gangsched.io/role": "worker"}
                pod = member(f"{name}w-{self._made}", name, requests=requests, labels=labels, restartPolicy="Never")
            self._api.post(self._pods, pod)

    def _missing(self, name: str) -> int:
        """How many members would come now."""
        late, there = self.groups[name], self._members(name)
        leading = [pod for pod in there if _leads(pod)]
        if not leading or (late.app and phase_of(leading[0]) != "Running"):
            return 0
        return max(0, late.come - (len(there) - len(leading)))

    def _members(self, name: str) -> list[Json]:
        key = Key(self._namespace, name)
        with self._history.lock:
            found = [pod for pod in self._history.pods.values() if group_of(pod) == key and live(pod)]
        return sorted(found, key=uid_of)

    def _any(self, choices: list[Any]) -> Any:
        return self._random.choice(choices) if choices else None


def _leads(pod: Json) -> bool:
    return role_of(pod) in ("chief", "driver")
