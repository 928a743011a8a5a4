"""`python -m tests.faults.starving`: gangs that need every node, in an endless stream of small Jobs that fill each gap.

Two operators serve the cluster, and the one that leads is killed while places are reserved for a gang, three times in a
run. The Jobs have `activeDeadlineSeconds`, so that it is known when their pods end at the latest. Every other gang has
a higher priority than the Jobs; those that wait when one of the rest comes are before it.

At the end each gang is judged. It was bound no later than the start that was written first, but for the time without a
leader. Its start was never moved to a later time, and it was whole or unbound whenever somebody looked. A gang that
others are before may start later, but no later than the last of those ends. Nobody was evicted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from gangsched.api.times import parse_time
from testbed import crds
from testbed.api import Json, unless_gone
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import member, pod_group, pod_template
from tests.faults.command import main

NODES, CPUS = 3, 4
LIMITS_S = (8, 25)
"""The limits of Jobs, which count from their creation."""
WAITING = 6
"""So many pods of Jobs wait at any time."""
RUNS_S, PAUSE_S = 3.0, 2.0
"""How long a gang runs, and how long after its end the next one comes."""
KILLS = 3
PASS_S = 5.0
"""A gang may be bound so much later than the start that was written first: the ends of pods and a pass."""
OUTAGE_S = 25.0
"""How long it takes at most until a standby leads, and has read the cluster."""
_SETTINGS = {"reservation": {"starvationAge": "3s"}}
_NAMESPACE = "starving"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_GROUPS = f"/apis/gangsched.io/v1alpha1/namespaces/{_NAMESPACE}/podgroups"
_JOBS = f"/apis/batch/v1/namespaces/{_NAMESPACE}/jobs"
_TICK_S = 0.2


@dataclass(kw_only=True)
class Starved:
    """What has become of a gang: times in epoch seconds, 0.0 if it has not happened. `starts` are those written."""

    name: str
    came: float
    is_first: bool
    starts: list[float] = field(default_factory=list)
    bound: float = 0.0
    killed: bool = False
    partial: bool = False

    @property
    def latest(self) -> float:
        """When it must be bound; it has a start."""
        outage_s = OUTAGE_S if self.killed else 0.0
        return max(self.starts[0], 0.0 if self.is_first else self.came + LIMITS_S[1]) + PASS_S + outage_s

    def bound_of(self, pods: Iterable[Json]) -> int:
        """How many of these pods are its members and bound."""
        names = {f"{self.name}-{at}" for at in range(NODES)}
        return sum(bool(pod["spec"].get("nodeName")) for pod in pods if pod["metadata"]["name"] in names)

    def wrong(self, ended: float) -> Iterator[str]:
        """The violations, at the end of the run."""
        if self.partial:
            yield f"{self.name} was bound in part"
        if not self.starts:
            return
        if (self.bound or ended) > self.latest:
            late = f"{(self.bound or ended) - self.starts[0]:.1f} s after its start"
            yield f"{self.name} was bound {late}" if self.bound else f"{self.name} was not bound {late}"
        if self.is_first and any(later > start for start, later in zip(self.starts, self.starts[1:], strict=False)):
            yield f"the start of {self.name} was moved to a later time: {self.starts}"


@dataclass(kw_only=True)
class Findings:
    """What has happened to all gangs; `small` counts pods of Jobs that were bound, `kills` the leaders killed."""

    gangs: list[Starved] = field(default_factory=list)
    small: set[str] = field(default_factory=set)
    kills: int = 0
    evictions: int = 0
    backfilled: int = 0
    moved: list[str] = field(default_factory=list)
    ended: float = 0.0

    def wrong(self) -> list[str]:
        """The violations; empty if there are none."""
        found = [text for gang in self.gangs for text in gang.wrong(self.ended)]
        return found + ([f"{self.evictions} pods were evicted"] if self.evictions else [])

    def report(self) -> dict[str, object]:
        """The figures by name."""
        bound = [gang for gang in self.gangs if gang.bound]
        early = [gang.starts[0] - gang.bound for gang in bound if gang.starts and not gang.killed]
        return {
            "gangs": len(self.gangs),
            "gangs_bound": len(bound),
            "gangs_with_a_reservation": sum(bool(gang.starts) for gang in self.gangs),
            "longest_wait": max((gang.bound - gang.came for gang in bound), default=0.0),
            "least_time_before_the_start": min(early, default=0.0),
            "pods_of_jobs_bound": len(self.small),
            "backfilled": self.backfilled,
            "leaders_killed": self.kills,
            "evictions": self.evictions,
            "told_of_moves": self.moved,
            "violations": self.wrong(),
        }


class Starving:
    """One run on a control plane with the Job controller."""

    def __init__(self, control_plane: ControlPlane, config: Path, *, duration_s: float, seed: int) -> None:
        self._control_plane = control_plane
        self._api = control_plane.api
        self._config = config
        self._duration_s = duration_s
        self._random = Random(seed)
        self._found = Findings()
        self._operators: list[Operator] = []
        self._jobs = 0

    def run(self) -> Findings:
        """Let Jobs and gangs come, kill leaders, and judge what happened to the gangs."""
        self._api.post("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        for at in range(NODES):
            self._control_plane.add_node(f"n{at}", cpu=str(CPUS))
        with ExitStack() as stack:
            arguments = ("--config", str(self._config))
            self._operators = [Operator(self._control_plane, *arguments, leader_elect=True) for _ in range(2)]
            for operator in self._operators:
                stack.enter_context(operator)
            self._load()
        entries = self._control_plane.audited(naming=f"/namespaces/{_NAMESPACE}/pods")
        self._found.evictions = sum(entry["objectRef"].get("subresource") == "eviction" for entry in entries)
        events = self._api.get(f"/apis/events.k8s.io/v1/namespaces/{_NAMESPACE}/events")["items"]
        self._found.backfilled = sum(event["reason"] == "Backfilled" for event in events)
        self._found.moved = [
            f"{event['regarding']['name']}: {event['note']}"
            for event in events
            if event["reason"] == "ReservationMoved"
        ]
        return self._found

    def _load(self) -> None:
        began = time.time()
        kills = [began + self._duration_s * (at + 1) / (KILLS + 1) for at in range(KILLS)]
        gang: Starved | None = None
        comes, leaves = began, 0.0
        while (now := time.time()) < began + self._duration_s or (gang is not None and not gang.bound and gang.starts):
            pods = self._api.get(_PODS)["items"]
            self._stream(pods)
            if gang is None and now >= comes:
                gang = self._come(now)
            elif gang is not None and not gang.bound:
                self._look(gang, pods, now)
                leaves = now + RUNS_S
                if kills and now >= kills[0] and gang.starts and not gang.bound:
                    kills.pop(0)
                    gang.killed = True
                    self._kill()
                if gang.starts and now > gang.latest:
                    break
            elif gang is not None and now >= leaves:
                self._go(gang)
                gang, comes = None, now + PAUSE_S
            time.sleep(_TICK_S)
        self._found.ended = time.time()

    def _stream(self, pods: list[Json]) -> None:
        """Let Jobs come until enough of their pods wait."""
        of_jobs = [pod for pod in pods if pod["metadata"]["name"].startswith("job-")]
        self._found.small |= {pod["metadata"]["uid"] for pod in of_jobs if pod["spec"].get("nodeName")}
        waiting = sum(not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] for pod in of_jobs)
        for _ in range(WAITING - waiting):
            self._jobs += 1
            template = pod_template("", restartPolicy="Never")
            container = template["spec"]["containers"][0]
            container["resources"] = {"requests": {"cpu": self._random.choice("112")}}
            limit = self._random.randint(*LIMITS_S)
            spec = {"template": template, "activeDeadlineSeconds": limit, "ttlSecondsAfterFinished": 0}
            self._api.post(_JOBS, {"metadata": {"name": f"job-{self._jobs}"}, "spec": spec})

    def _come(self, now: float) -> Starved:
        number = len(self._found.gangs)
        gang = Starved(name=f"gang-{number}", came=now, is_first=number % 2 == 0)
        self._found.gangs.append(gang)
        self._api.post(_GROUPS, pod_group(gang.name, min_member=NODES, priority=10 if gang.is_first else 0))
        for at in range(NODES):
            self._api.post(_PODS, member(f"{gang.name}-{at}", gang.name, requests={"cpu": str(CPUS)}))
        return gang

    def _look(self, gang: Starved, pods: list[Json], now: float) -> None:
        """Note its start, and whether it is bound."""
        status = self._api.get(f"{_GROUPS}/{gang.name}").get("status", {})
        start = (status.get("reservation") or {}).get("start")
        if start and (at := parse_time(start)) not in gang.starts[-1:]:
            gang.starts.append(at)
        bound = gang.bound_of(pods)
        if bound == NODES:
            gang.bound = now
        # The list may have been read between its bindings.
        gang.partial |= 0 < bound < NODES and not self._is_bound_soon(gang)

    def _is_bound_soon(self, gang: Starved) -> bool:
        deadline = time.time() + PASS_S + OUTAGE_S
        while time.time() < deadline:
            if gang.bound_of(self._api.get(_PODS)["items"]) == NODES:
                return True
            time.sleep(_TICK_S)
        return False

    def _go(self, gang: Starved) -> None:
        for at in range(NODES):
            with unless_gone():
                self._api.delete(f"{_PODS}/{gang.name}-{at}", grace_s=0)
        self._api.delete(f"{_GROUPS}/{gang.name}")

    def _kill(self) -> None:
        """Kill the operator that leads, and start it again as the standby."""
        leader = max(self._operators, key=lambda operator: operator.metric("gangsched_leader"))
        leader.kill()
        self._found.kills += 1
        leader.launch()


def play(*, duration_s: float, seed: int) -> Findings:
    """One run on a control plane of its own."""
    with ControlPlane(audit=True) as control_plane, tempfile.TemporaryDirectory() as folder:
        crds.install(control_plane)
        config = Path(folder, "config.json")
        config.write_text(json.dumps(_SETTINGS))
        return Starving(control_plane, config, duration_s=duration_s, seed=seed).run()


if __name__ == "__main__":
    sys.exit(main(play, name="starving", what="Gangs that need every node, and many small Jobs.", lasts_s=600))
