"""The API server's events in order: every binding with the pods then on the node, and every partly bound group.

Pods, nodes and PodGroups arrive from watches that begin with a list and resume where they were interrupted, so within
one kind nothing is missing and the order is that of the API server's writes. If a version has expired and a list must
fill the gap (`gaps`), bindings inside the gap are not judged.

A group is partial from the moment the watch shows the first of a quorum bound until it shows either the minimum or none
bound. `CountedClock` measures this time; it stops while no leader runs or the API server does not answer. Once a group
was whole in its run, later losses are Degraded and not counted here. A status of Scheduled is believed only if that
many members were seen bound, though not necessarily at the same time: gangsched may have learned of a loss late, while
a watch was silent. The exceptions of rule 1 are not counted while the status reports them. A group without a PodGroup
cannot report them; there, bound members that no controller would recreate are enough. Bound members whose PodGroup was
deleted (rule 10), or failed because the others did not come (rule 11), stay and are no longer part of a quorum.

For a group with templates, the reservations in its status count beside the bound members, and once it reports that the
others did not come in time the bound ones may stay (rule 11). The time that reservations outlive the last live member
is measured in the same way (`deserted`, rule 12).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.api.times import parse_time
from tests.faults.demands import Demand, demand_of, made, maker_of, owed_by, ran_out, reserved, templated, vacant
from tests.faults.objects import (
    EXCUSED,
    Json,
    Key,
    begun,
    degraded,
    ended,
    group_of,
    key_of,
    live,
    node_of,
    ours,
    phase_of,
    present,
    recreated,
    requests_of,
    role_of,
    uid_of,
)

_MINIMUM_HOLDS_S = 10.0
"""Seconds after a change in which the previous minimum may still be the one used to decide a quorum (rule 9)."""
_CLOCK_SKEW_S = 1.0
_UNSEEN_S = 5.0
"""Seconds without a live member that gangsched may miss if its watch was interrupted: a list then shows new members in
place of the old ones, as if the run had continued."""
_UNHEARD_S = 75.0
"""Seconds for which gangsched may not know of a loss: it restarts a silent watch after 70 s."""


class CountedClock:
    """A clock in seconds that can be stopped; initially it is stopped."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._passed = 0.0
        self._since: float | None = None

    def run(self, running: bool) -> None:  # noqa: FBT001 - a switch
        """Start or stop the clock."""
        if running and self._since is None:
            self._since = self._monotonic()
        elif not running and self._since is not None:
            self._passed += self._monotonic() - self._since
            self._since = None

    def now(self) -> float:
        """The seconds so far."""
        return self._passed + (self._monotonic() - self._since if self._since is not None else 0.0)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A pod was seen to have a node. `beside` are the pods that held resources there at that moment, by UID.

    `at` is when the watch delivered it, in epoch seconds, never before it happened. `gap`: it was found in a list, so
    the pods beside it at its binding are unknown.
    """

    uid: str
    key: Key
    node: str
    at: float
    ours: bool
    requests: Mapping[str, int]
    beside: tuple[str, ...]
    gap: bool


@dataclass(kw_only=True)
class Episode:
    """An interval in which a group was partial, in counted seconds; at most `most` members were bound at once."""

    key: Key
    began: float
    minimum: int
    most: int
    seconds: float = 0.0
    open: bool = True

    def __str__(self) -> str:
        state = "and still is" if self.open else "until it was whole, unbound, gone or shown as an exception"
        return f"{self.key} had at most {self.most} of {self.minimum} bound for {self.seconds:.1f} s {state}"


@dataclass(kw_only=True)
class Desertion:
    """An interval in which `places` were reserved for a group without a live member, in counted seconds."""

    key: Key
    began: float
    places: int
    seconds: float = 0.0
    open: bool = True

    def __str__(self) -> str:
        return f"{self.key} had {self.places} places held for {self.seconds:.1f} s though none of its members lived"


@dataclass(kw_only=True)
class _Run:
    group_uid: str
    began: float
    past: frozenset[str]
    whole: bool = False
    quorum_at: float = 0.0
    goes_on_from: float = 0.0
    owed: int | None = None
    makers: set[str] = field(default_factory=set)
    demands: list[tuple[float, Demand]] = field(default_factory=list)
    bound: Mapping[str, str] = field(default_factory=dict)
    lost: list[tuple[float, str]] = field(default_factory=list)
    episode: Episode | None = None


class History:
    """The latest version of every object, and the history derived from them. Thread-safe.

    `changed_specs` is when a PodGroup's spec was last seen to change, in epoch seconds.
    `stayed` are pods, by UID, that were bound when the PodGroup that they named was deleted, or failed because other
    members had not come.
    """

    def __init__(
        self,
        clock: CountedClock,
        *,
        wall: Callable[[], float] = time.time,
        on_bound: Callable[[Json], None] = lambda _: None,
    ) -> None:
        self.lock = threading.RLock()
        self.pods: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.groups: dict[Key, Json] = {}
        self.jobs: dict[str, Json] = {}
        self.bindings: list[Bound] = []
        self.episodes: list[Episode] = []
        self.desertions: list[Desertion] = []
        self.stayed: set[str] = set()
        self.changed_specs: dict[Key, float] = {}
        self.groups_with_places: set[Key] = set()
        self.groups_ran_out: set[Key] = set()
        self.groups_seen: set[Key] = set()
        self.allocatables: dict[str, Json] = {}
        self.gaps = 0
        self.changed_at = wall()
        self._clock = clock
        self._wall = wall
        self._on_bound = on_bound
        self._on_node: dict[str, dict[str, None]] = {}
        self._members: dict[Key, dict[str, None]] = {}
        self._runs: dict[Key, _Run] = {}
        self._ended: dict[Key, tuple[float, _Run]] = {}

    # Events from the watches

    def pods_replaced(self, pods: Sequence[Json]) -> None:
        """These are all the pods there are."""
        with self.lock:
            gap = bool(self.pods)
            self.gaps += gap
            there = {uid_of(pod) for pod in pods}
            for uid in self.pods.keys() - there:
                self.pod_gone(self.pods[uid])
            for pod in pods:
                self.pod_seen(pod, gap=gap)

    def pod_seen(self, pod: Json, *, gap: bool = False) -> None:
        """A pod was created or changed."""
        with self.lock:
            uid, node = uid_of(pod), node_of(pod)
            before = self.pods.get(uid)
            self.pods[uid] = pod
            if node and (before is None or not node_of(before)):
                self._note_bound(pod, gap=gap)
            if node and ended(pod):
                self._on_node.get(node, {}).pop(uid, None)
            self._note_member(pod)

    def pod_gone(self, pod: Json) -> None:
        """A pod no longer exists."""
        with self.lock:
            known = self.pods.pop(uid_of(pod), None)
            self._on_node.get(node_of(pod), {}).pop(uid_of(pod), None)
            if known is not None and (key := group_of(known)) is not None:
                self._members.get(key, {}).pop(uid_of(pod), None)
                self._judge(key)
            self.changed_at = self._wall()

    def nodes_replaced(self, nodes: Sequence[Json]) -> None:
        """These are all the nodes there are."""
        with self.lock:
            self.nodes = {}
            for node in nodes:
                self.node_seen(node)

    def node_seen(self, node: Json) -> None:
        """A node was created or changed; nodes of one name always have the same allocatable."""
        with self.lock:
            self.nodes[node["metadata"]["name"]] = node
            self.allocatables[node["metadata"]["name"]] = node

    def node_gone(self, node: Json) -> None:
        """A node no longer exists."""
        with self.lock:
            self.nodes.pop(node["metadata"]["name"], None)

    def groups_replaced(self, groups: Sequence[Json]) -> None:
        """These are all the PodGroups there are."""
        with self.lock:
            for key in self.groups.keys() - {key_of(group) for group in groups}:
                self.group_gone(self.groups[key])
            for group in groups:
                self.group_seen(group)

    def group_seen(self, group: Json) -> None:
        """A PodGroup was created or changed."""
        with self.lock:
            old = self.groups.get(key_of(group))
            if old is not None and old["metadata"].get("generation") != group["metadata"].get("generation"):
                self.changed_specs[key_of(group)] = self._wall()
            self.groups[key_of(group)] = group
            if vacant(group):
                self.groups_with_places.add(key_of(group))
            if ran_out(group):
                self.groups_ran_out.add(key_of(group))
                if phase_of(group) == "Failed":
                    self._note_stayed(group)
            self._judge(key_of(group))
            self.changed_at = self._wall()

    def group_gone(self, group: Json) -> None:
        """A PodGroup no longer exists."""
        with self.lock:
            self.groups.pop(key_of(group), None)
            self._note_stayed(group)
            self._judge(key_of(group))
            self.changed_at = self._wall()

    def jobs_replaced(self, jobs: Sequence[Json]) -> None:
        """These are all the Jobs there are."""
        with self.lock:
            self.jobs = {}
            for job in jobs:
                self.job_seen(job)

    def job_seen(self, job: Json) -> None:
        """A Job was created or changed; its pods have the same labels."""
        with self.lock:
            self.jobs[uid_of(job)] = job
            if (key := group_of(job)) is not None:
                self._judge(key)

    def job_gone(self, job: Json) -> None:
        """A Job no longer exists."""
        with self.lock:
            self.jobs.pop(uid_of(job), None)

    # Questions

    def owed(self, key: Key) -> int | None:
        """How many members the group's Job could have bound in the present run; None if no Job decides that."""
        with self.lock:
            return self._runs[key].owed if key in self._runs else None

    def was_whole(self, key: Key) -> bool:
        """Whether the group has had its minimum bound in its present run."""
        with self.lock:
            return key in self._runs and self._runs[key].whole

    def partial(self) -> list[Episode]:
        """Every interval in which a group was partial, including open ones, longest first."""
        with self.lock:
            for episode in self.episodes:
                if episode.open:
                    episode.seconds = self._clock.now() - episode.began
            return sorted(self.episodes, key=lambda episode: -episode.seconds)

    def deserted(self) -> list[Desertion]:
        """Every interval in which places were reserved without a live member, including open ones, longest first."""
        with self.lock:
            for desertion in self.desertions:
                if desertion.open:
                    desertion.seconds = self._clock.now() - desertion.began
            return sorted(self.desertions, key=lambda desertion: -desertion.seconds)

    # Inside

    def _note_stayed(self, group: Json) -> None:
        self.stayed |= {uid for uid in self._members.get(key_of(group), ()) if node_of(self.pods[uid])}

    def _note_bound(self, pod: Json, *, gap: bool) -> None:
        there = self._on_node.setdefault(node_of(pod), {})
        self.bindings.append(
            Bound(
                uid=uid_of(pod),
                key=key_of(pod),
                node=node_of(pod),
                at=self._wall(),
                ours=ours(pod),
                requests=requests_of(pod),
                beside=tuple(there),
                gap=gap,
            )
        )
        there[uid_of(pod)] = None
        self._on_bound(pod)

    def _note_member(self, pod: Json) -> None:
        self.changed_at = self._wall()
        key = group_of(pod)
        if key is None or not ours(pod):
            return
        self.groups_seen.add(key)
        self._members.setdefault(key, {})[uid_of(pod)] = None
        self._judge(key)

    def _judge(self, key: Key) -> None:
        """Bring the group's run up to date and open or close its episode."""
        group = self.groups.get(key)
        pods = present(self.pods[uid] for uid in self._members.get(key, ()))
        alive = [pod for pod in pods if live(pod)]
        self._judge_desertion(key, 0 if alive else vacant(group))
        group_uid = uid_of(group) if group is not None else ""
        run = self._runs.get(key)
        if run is not None and not run.group_uid and group is not None and made(group):
            # The group now has a PodGroup to record its reservations in; its run continues.
            run.group_uid = group_uid
        makers = {maker_of(pod) for pod in alive}
        others = run is not None and bool(run.makers) and not makers & run.makers
        if run is not None and (not alive or run.group_uid != group_uid or others):
            self._close(run)
            self._ended[key] = self._wall(), self._runs.pop(key)
            run = None
        demand = demand_of(group, alive)
        if not alive or demand is None:
            if run is not None:
                self._close(run)
            return
        if run is None:
            past = frozenset(uid_of(pod) for pod in pods if ended(pod))
            run = self._runs[key] = _Run(group_uid=group_uid, began=self._wall(), past=past)
            ended_at, before = self._ended.pop(key, (0.0, run))
            if before.whole and before.group_uid == group_uid and run.began - ended_at <= _UNSEEN_S:
                run.goes_on_from = before.goes_on_from or before.began
        run.makers |= makers
        self._judge_run(run, key, group, pods, demand)

    def _judge_run(self, run: _Run, key: Key, group: Json | None, pods: Sequence[Json], demand: Demand) -> None:
        now = self._wall()
        bound = [pod for pod in pods if live(pod) and node_of(pod)]
        done = [pod for pod in pods if phase_of(pod) == "Succeeded" and uid_of(pod) not in run.past]
        run.owed = owed_by(self.jobs, pods, len(done), minimum=demand.minimum)
        demand = demand if run.owed is None else demand.at_most(run.owed)
        if not run.demands or run.demands[-1][1] != demand:
            run.demands.append((now, demand))
        there = Counter(map(role_of, [*bound, *done]))
        seen = {uid_of(pod): role_of(pod) for pod in (*bound, *done)}
        run.lost += [(now, run.bound[uid]) for uid in run.bound.keys() - seen.keys()]
        run.bound = seen
        unheard = Counter(role for at, role in run.lost if now - at <= _UNHEARD_S)
        of_a_quorum = any(begun(pod, group) and uid_of(pod) not in self.stayed for pod in bound)
        under_way = of_a_quorum or (group is not None and phase_of(group) == "Reserved")
        run.quorum_at = (run.quorum_at or now) if under_way else 0.0
        run.whole = run.whole or self._enough(run, there, now)
        run.whole = run.whole or (_said_scheduled(group, run.began) and self._enough(run, there + unheard, now))
        run.whole = run.whole or (bool(run.goes_on_from) and _said_scheduled(group, run.goes_on_from))
        covered = templated(group) and self._enough(run, there + reserved(group, bound), now)
        left = degraded(group) in EXCUSED or (group is None and not any(map(recreated, bound)))
        if run.whole or covered or not of_a_quorum or left or ran_out(group):
            self._close(run)
            return
        if run.episode is None:
            run.episode = Episode(key=key, began=self._clock.now(), minimum=demand.minimum, most=0)
            self.episodes.append(run.episode)
        run.episode.most = max(run.episode.most, len(bound))

    def _judge_desertion(self, key: Key, places: int) -> None:
        desertion = next((each for each in self.desertions if each.open and each.key == key), None)
        if desertion is None and places:
            self.desertions.append(Desertion(key=key, began=self._clock.now(), places=places))
        elif desertion is not None and not places:
            desertion.seconds = self._clock.now() - desertion.began
            desertion.open = False

    def _enough(self, run: _Run, roles: Counter[str], now: float) -> bool:
        """Whether these are a quorum under the present minimum or a recent one.

        A quorum under way, which is reserved or of which a member is bound, ends under the minimum with which it began
        (rule 9), also if a rollback has left members in place or another process leads meanwhile.
        """
        until = now
        began = run.quorum_at or now
        for since, demand in reversed(run.demands):
            is_recent = until >= now - _MINIMUM_HOLDS_S
            may_have_decided = since <= began and until >= began - _MINIMUM_HOLDS_S
            if (is_recent or may_have_decided) and demand.met_by(roles):
                return True
            until = since
        return False

    def _close(self, run: _Run) -> None:
        if run.episode is not None:
            run.episode.seconds = self._clock.now() - run.episode.began
            run.episode.open = False
            run.episode = None


def _said_scheduled(group: Json | None, began: float) -> bool:
    """Whether the PodGroup's status says that the run that began at `began`, not an earlier one, was scheduled."""
    told = str(group.get("status", {}).get("scheduledTime") or "") if group is not None else ""
    return bool(told) and parse_time(told) >= began - _CLOCK_SKEW_S
