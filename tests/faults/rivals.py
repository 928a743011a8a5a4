"""`python -m tests.faults.rivals`: gangsched beside kube-scheduler, both with priorities, on nodes that are too few.

Groups and pods of three priorities come and go for both schedulers, and controllers create again whatever is evicted.
Pods of the lowest priority take some time to end, so that room comes free piece by piece, and either scheduler may take
what the other one has made. At the end the requests and Events are judged: no
group is asked to leave again and again for another one that loses the room to kube-scheduler each time, evictions get
no more frequent, and every group is whole or unbound.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from gangsched.api.times import parse_time
from gangsched.core.contention.pace import PASSED_S
from testbed import crds
from testbed.api import Json, unless_gone
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import member, pod_group, pod_template
from tests.faults.command import main

CLASSES = {"low": 10, "mid": 100, "high": 1000}
NODES, CPUS = 6, 8
GANGS, MEMBERS = 5, 4
"""Groups of the lowest priority, which a StatefulSet each creates again."""
SIZES, LIVES_S, ARRIVES_S = (2, 6), (8.0, 25.0), (1.0, 5.0)
"""Other groups: their sizes, how long they stay, and the time between two."""
SCALES = {"low": (2, 10), "mid": (0, 8), "high": (0, 4)}
"""The replicas of kube-scheduler's Deployments of each priority, which change now and then."""
GRACES_S = (0.2, 3.0)
"""How long pods of the lowest priority terminate."""
REST_S = 15.0
LONG_S = 300.0
"""From so many seconds on a run tells whether evictions get more frequent."""
GROWTH, SLACK = 1.5, 6.0
"""Evictions in the last half of a run: at most so many times those of the first half, and so many more."""
_NAMESPACE = "rivals"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_GROUPS = f"/apis/gangsched.io/v1alpha1/namespaces/{_NAMESPACE}/podgroups"
_APPS = f"/apis/apps/v1/namespaces/{_NAMESPACE}"
_EVENTS = f"/apis/events.k8s.io/v1/namespaces/{_NAMESPACE}/events"
_HELD = "example.com/grace"
_TICK_S = 0.2
_FIRST_REFUSAL = 300


@dataclass(kw_only=True)
class Findings:
    """What has happened: times in epoch seconds, `lost` how often a group left in vain for another, by both names."""

    began: float
    ended: float
    evicted: list[float] = field(default_factory=list)
    deleted: list[float] = field(default_factory=list)
    bound: Counter[str] = field(default_factory=Counter)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    endings: dict[str, float] = field(default_factory=dict)
    partial: list[str] = field(default_factory=list)

    def per_minute(self, times: Iterable[float]) -> list[int]:
        """How many of these there were in each minute."""
        counted = Counter(int((at - self.began) // 60) for at in times)
        return [counted[minute] for minute in range(int((self.ended - self.began) // 60) + 1)]

    def wrong(self) -> list[str]:
        """The violations; empty if there are none."""
        found = [
            f"{victim} left {times} times for {holder}, which lost the room to kube-scheduler each time"
            for (victim, holder), times in self.lost.items()
            if times > 1
        ]
        middle = (self.began + self.ended) / 2
        early, late = (sum((at > middle) is after for at in self.evicted) for after in (False, True))
        # At the beginning there is still room, so that a short run says nothing about it.
        if self.ended - self.began >= LONG_S and late > GROWTH * early + SLACK:
            found.append(f"evictions get more frequent: {early} in the first half, {late} in the second")
        return found + [f"{name} is bound in part" for name in self.partial]

    def report(self) -> dict[str, object]:
        """The figures by name."""
        victims: Counter[str] = Counter()
        for (victim, _), times in self.lost.items():
            victims[victim] += times
        return {
            "seconds": self.ended - self.began,
            "bindings": self.bound,
            "evictions": len(self.evicted),
            "evictions_per_minute": self.per_minute(self.evicted),
            "deletions_by_kube_scheduler": len(self.deleted),
            "deletions_per_minute": self.per_minute(self.deleted),
            "plans": self.endings,
            "left_in_vain": victims,
            "most_often_in_vain_for_one_group": max(self.lost.values(), default=0),
            "violations": self.wrong(),
        }


class Rivals:
    """One run on a control plane with both schedulers."""

    def __init__(self, control_plane: ControlPlane, *, duration_s: float, seed: int) -> None:
        self._control_plane = control_plane
        self._api = control_plane.api
        self._duration_s = duration_s
        self._random = Random(seed)
        self._leaves_at: dict[str, float] = {}
        self._sizes: dict[str, int] = {}
        self._ends_at: dict[str, float] = {}

    def run(self) -> Findings:
        """Let both schedulers work, and judge what they did."""
        self._prepare()
        with Operator(self._control_plane) as operator:
            began = time.time()
            self._load(began + self._duration_s)
            ended = time.time()
            found = Findings(began=began, ended=ended)
            found.partial = self._partial_at_rest()
            found.endings = endings(operator)
        self._judge(found)
        return found

    # Load

    def _prepare(self) -> None:
        for name, value in CLASSES.items():
            self._api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        self._api.post("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        for at in range(NODES):
            self._control_plane.add_node(f"n{at}", cpu=str(CPUS))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with unless_gone():
                self._api.get(f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/default")
                break
            time.sleep(_TICK_S)
        for at in range(GANGS):
            name = f"batch-{at}"
            self._sizes[name] = MEMBERS
            self._api.post(_GROUPS, pod_group(name, min_member=MEMBERS, priorityClassName="low"))
            template = pod_template(name, priorityClassName="low")
            template["metadata"]["finalizers"] = [_HELD]
            self._create("statefulsets", name, MEMBERS, template)
        for name in CLASSES:
            template = pod_template("", priorityClassName=name, schedulerName="default-scheduler")
            self._create("deployments", f"web-{name}", SCALES[name][0], template)

    def _create(self, kind: str, name: str, replicas: int, template: Json) -> None:
        labels = template["metadata"]["labels"] | {"app": name}
        template["metadata"]["labels"] = labels
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        more = {"serviceName": name, "podManagementPolicy": "Parallel"} if kind == "statefulsets" else {}
        self._api.post(f"{_APPS}/{kind}", {"metadata": {"name": name}, "spec": spec | more})

    def _load(self, until: float) -> None:
        next_group, next_scale, number = 0.0, 0.0, 0
        while (now := time.time()) < until:
            if now >= next_group:
                number += 1
                self._arrive(f"urgent-{number}", now)
                next_group = now + self._random.uniform(*ARRIVES_S)
            if now >= next_scale:
                name = self._random.choice([*SCALES])
                scale = {"spec": {"replicas": self._random.randint(*SCALES[name])}}
                self._api.merge(f"{_APPS}/deployments/web-{name}", scale)
                next_scale = now + self._random.uniform(*ARRIVES_S)
            for group in [group for group, at in self._leaves_at.items() if at <= now]:
                self._leave(group)
            self._end_terminating(now)
            time.sleep(_TICK_S)

    def _end_terminating(self, now: float) -> None:
        """Let pods end that have terminated for long enough."""
        there = [pod["metadata"] for pod in self._api.get(_PODS)["items"] if "deletionTimestamp" in pod["metadata"]]
        for meta in there:
            ends = self._ends_at.setdefault(meta["uid"], now + self._random.uniform(*GRACES_S))
            if ends <= now:
                with unless_gone():
                    self._api.merge(f"{_PODS}/{meta['name']}", {"metadata": {"finalizers": None}})

    def _arrive(self, name: str, now: float) -> None:
        size, cpu = self._random.randint(*SIZES), self._random.choice("112")
        priority = self._random.choice(("mid", "mid", "high"))
        self._api.post(_GROUPS, pod_group(name, min_member=size, priorityClassName=priority))
        for at in range(size):
            self._api.post(_PODS, member(f"{name}-{at}", name, requests={"cpu": cpu}, priorityClassName=priority))
        self._leaves_at[name] = now + self._random.uniform(*LIVES_S)
        self._sizes[name] = size

    def _leave(self, name: str) -> None:
        for at in range(self._sizes.pop(name)):
            with unless_gone():
                self._api.delete(f"{_PODS}/{name}-{at}", grace_s=0)
        self._api.delete(f"{_GROUPS}/{name}")
        del self._leaves_at[name]

    # Judgement

    def _partial_at_rest(self) -> list[str]:
        """The groups of controllers that stay bound in part though nobody comes any more.

        Of other groups kube-scheduler may have preempted members, which nobody creates again.
        """
        for name in SCALES:
            self._api.merge(f"{_APPS}/deployments/web-{name}", {"spec": {"replicas": 0}})
        found: list[str] = []
        deadline = time.monotonic() + 4 * REST_S
        while time.monotonic() < deadline:
            time.sleep(1)
            self._end_terminating(time.time())
            pods = self._api.get(_PODS)["items"]
            bound = Counter(
                pod["metadata"]["labels"].get("gangsched.io/pod-group")
                for pod in pods
                if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
            )
            found = [name for name in self._sizes.keys() - self._leaves_at.keys() if 0 < bound[name] < MEMBERS]
            if not found:
                break
        return found

    def _judge(self, found: Findings) -> None:
        entries = self._control_plane.audited(naming=f"/namespaces/{_NAMESPACE}/pods")
        for entry in entries:
            if entry.get("stage") != "ResponseComplete" or entry["responseStatus"]["code"] >= _FIRST_REFUSAL:
                continue
            at, agent = parse_time(entry["requestReceivedTimestamp"]), entry.get("userAgent", "").split("/")[0]
            what = (agent, entry["verb"], entry["objectRef"].get("subresource", ""))
            if at > found.ended:
                continue
            match what:
                case ("gangsched", "create", "eviction"):
                    found.evicted.append(at)
                case ("kube-scheduler", "delete", ""):
                    found.deleted.append(at)
                case (("gangsched" | "kube-scheduler"), "create", "binding"):
                    found.bound[agent] += 1
        found.lost = lost(self._api.get(_EVENTS)["items"])


def lost(events: Sequence[Json]) -> Counter[tuple[str, str]]:
    """How often each group or pod has left for a group that lost the room to another scheduler, by both names.

    The Events say so: whoever was told to leave for it since its last plan that was lost has left in vain, once also if
    an earlier plan has ended otherwise, such as because a group before it in the order took the room. Who is told again
    only once nobody passes over him any more (docs/preemption.md) has left in vain for the first time again.
    """
    told = sorted(
        (parse_time(event["eventTime"]), event["reason"], event["regarding"]["name"], event["note"])
        for event in events
        if event["reason"] in ("Preempted", "RoomLost")
    )
    waiting: defaultdict[str, dict[str, float]] = defaultdict(dict)
    lost_at: dict[tuple[str, str], float] = {}
    times: Counter[tuple[str, str]] = Counter()
    for at, reason, name, note in told:
        if reason == "Preempted":
            waiting[note.partition("the group ")[2].partition(" ")[0]].setdefault(name, at)
            continue
        for victim, told_at in waiting.pop(name, {}).items():
            pair = victim, name
            if told_at - lost_at.get(pair, told_at) >= PASSED_S:
                times[pair] = 0
            times[pair] += 1
            lost_at[pair] = at
    return times


def endings(operator: Operator) -> dict[str, float]:
    """How many plans have ended in each way."""
    prefix = "gangsched_plans_ended_total{"
    rows = [row.removeprefix(prefix) for row in operator.get("/metrics")[1].splitlines() if row.startswith(prefix)]
    return {row.partition('"')[2].partition('"')[0]: float(row.rpartition(" ")[2]) for row in rows}


def play(*, duration_s: float, seed: int) -> Findings:
    """One run on a control plane of its own."""
    with ControlPlane(scheduler=True, audit=True) as control_plane:
        crds.install(control_plane)
        return Rivals(control_plane, duration_s=duration_s, seed=seed).run()


if __name__ == "__main__":
    sys.exit(main(play, name="rivals", what="gangsched beside kube-scheduler, both with priorities.", lasts_s=1800))
