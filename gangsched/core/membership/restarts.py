"""Keeps capacity reserved for a moment when a scheduled gang loses members that its workload recreates.

A placeholder of the lost member's shape claims the capacity that the member used, so that waiting groups cannot take
it. It lasts for the policy's `restart_hold_s` at most, and only while the workload's object exists, is the same one and
wants the pods: not while it is suspended or being deleted, nor once it has ended. If some members are bound,
placeholders are given up one by one as new members arrive. If all members were lost, they are given up together once
there are enough members for the minimum, counting those that come later by a template; that quorum is then planned
before others, like a repair. A group holds placeholders for at most MOST_S in HOUR_S, and no more than its namespace
may (`core.gang.caps`). None of this survives a restart of the process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer, asked_by
from gangsched.core.declarations.resolution import declared_spec
from gangsched.core.declarations.waves import owed_by, pods_of
from gangsched.core.gang import caps, preempted, runs
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.membership.rechecking import Contain, TakeIn
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.workload import Workload
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify

HOUR_S = 3600.0
MOST_S = 300.0
"""Longest time in seconds that a group may hold placeholders of lost members within HOUR_S; that hour begins with the
first hold."""


_HIGHEST = 1 << 31
"""A priority before which no room is kept for pods that another scheduler has nominated."""


class Held(Struct):
    """What is held for one group: `places` are nodes by placeholder's UID, for a `workload` whose object has this UID.

    `minimum` is what the group was scheduled with. The hold began at `since` and ends at `until` at the latest.
    """

    workload: Workload
    object_uid: str
    minimum: int
    since: float
    until: float
    places: dict[str, str] = field(default_factory=dict)


class Lost(Struct):
    """Members that a group has lost, and the `minimum` that it was scheduled with."""

    minimum: int
    pods: list[Pod] = field(default_factory=list)


class Restarts:
    """The placeholders held by group, and the members that were lost since the last call of `keep`.

    For terminating members, `_leaving` keeps by UID the minimum that their gang was scheduled with.
    """

    def __init__(self, cluster: Cluster, members: Members, policy: Policy) -> None:
        self._cluster = cluster
        self._members = members
        self._policy = policy
        self._held: dict[GroupKey, Held] = {}
        self._lost: dict[GroupKey, Lost] = {}
        self._leaving: dict[str, int] = {}
        self._spent: dict[GroupKey, tuple[float, float]] = {}

    def pod_seen(self, pod: Pod) -> None:
        """Handle a pod that is about to be noted in this form."""
        if pod.terminal:
            ended = self._ends(pod.uid)
            if (
                ended is not None
                and not pod.rejected
                and (pod.phase is PodPhase.FAILED or ended[0].observed.wave is not None)
            ):
                self._lose(*ended)
        elif pod.terminating and pod.uid not in self._leaving:
            gang = self._members.gang_of(pod.uid)
            # It is not a member any more, and the run ends with the last one, but its capacity is not free yet.
            if gang is None or gang.plain or preempted.leaves(gang, pod.uid):
                return
            if pod.uid in gang.observed.pods and pod.workload is not None:
                self._leaving[pod.uid] = gang.record.minimum

    def pod_gone(self, uid: str) -> None:
        """Handle a pod that is about to be noted as gone."""
        ended = self._ends(uid)
        if ended is not None:
            self._lose(*ended)

    def _ends(self, uid: str) -> tuple[Gang, Pod, int] | None:
        """The ending pod's gang, the pod, and the gang's scheduled minimum; None if the pod frees no capacity."""
        least = self._leaving.pop(uid, 0)
        pod = self._cluster.pods.get(uid)
        if pod is None or pod.workload is None or not pod.node or pod.terminal:
            return None
        gang = self._members.gang_of(uid)
        if gang is None or uid not in gang.observed.pods or gang.plain or preempted.leaves(gang, uid):
            return None
        return gang, pod, least or gang.record.minimum

    def _lose(self, gang: Gang, pod: Pod, least: int) -> None:
        if least:
            lost = self._lost.setdefault(gang.key, Lost(least))
            lost.pods.append(pod)

    def forget_lost(self) -> None:
        """Hold nothing for members lost since the last call, as long as nothing is decided yet."""
        self._lost.clear()

    def keep(self, now: float, take_in: TakeIn, contain: Contain) -> None:
        """Reserve placeholders for lost members, and give up those that are no longer wanted."""
        lost, self._lost = self._lost, {}
        for key in (*lost, *self._held):
            take_in(key)
        # One for all groups: when a node is lost, hundreds of groups may lose members in one call.
        snapshot = self._snapshot() if lost else None
        for key, loss in lost.items():
            gang = self._members.gangs.get(key)
            if gang is None or snapshot is None:
                continue
            if not self._contained(key, partial(self._hold, gang, loss, now, snapshot), contain):
                snapshot = self._snapshot()
        for key in list(self._held):
            self._contained(key, partial(self._review, key, now), contain)

    def _snapshot(self) -> Snapshot:
        """The cluster, of which nothing is kept that is reserved for groups."""
        snapshot = Snapshot(self._cluster)
        snapshot.stand_for(Viewer(_HIGHEST, later=frozenset(self._cluster.ledger.reserved)))
        return snapshot

    def next_end(self) -> float:
        """When the next placeholders are given up, in epoch seconds; infinity if none are held."""
        return min((held.until for held in self._held.values()), default=float("inf"))

    def placeholders(self) -> Collection[str]:
        """The UIDs of all placeholders."""
        return {uid for held in self._held.values() for uid in held.places}

    def validate(self) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from (
            f"{uid}: leaves its gang though it is gone" for uid in self._leaving if uid not in self._cluster.pods
        )
        for key, held in self._held.items():
            for uid, node in held.places.items():
                if self._cluster.node_of(uid) != node:
                    yield f"{key}: {uid} is held on {node} but counted on {self._cluster.node_of(uid)}"

    def _contained(self, key: GroupKey, step: Callable[[], None], contain: Contain) -> bool:
        """Run the step. If the gang's logic fails in it, give up everything held for the gang, and return False."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            held = self._held.pop(key, None)
            for uid in held.places if held is not None else ():
                self._cluster.remove_pod(uid)
            contain(key, error)
            return False
        return True

    def _hold(self, gang: Gang, lost: Lost, now: float, snapshot: Snapshot) -> None:
        workload = lost.pods[0].workload
        if workload is None or len({pod.workload.identity for pod in lost.pods if pod.workload is not None}) > 1:
            return
        key, held = gang.key, self._held.get(gang.key)
        until = now + min(self._policy.restart_hold_s, self._left_s(key, held, now))
        owner = self._members.foreign.find(workload.kind, GroupKey(key.namespace, workload.name))
        if owner is None or (workload.uid and workload.uid != owner.uid) or until <= now:
            return
        if held is not None and held.workload.identity != workload.identity:
            return
        if held is None:
            held = Held(workload, owner.uid, lost.minimum, now, until)
        # An upper bound; `_review` gives up at once what is not needed beside the other members.
        number = self._wanted(key, held) - len(held.places)
        mark, asked = snapshot.mark(), []
        for pod in lost.pods[: max(0, number)]:
            place = _placeholder(key, pod)
            member = classify(snapshot, [place])[place.uid]
            row = self._cluster.capacity.rows.get(pod.node)
            if row is not None and snapshot.fits(member, row):
                snapshot.take(row, member, 1)
                asked.append((place, pod.node))
        amounts = asked_by(place for place, _ in asked)
        if not asked or caps.limit(self._cluster, self._policy.namespace_limits, key.namespace, amounts):
            snapshot.undo(mark)
            return
        held.until = until
        self._held[key] = held
        for place, node in asked:
            held.places[place.uid] = node
            self._cluster.set_pod(place)
            self._cluster.assume(place.uid, node)

    def _review(self, key: GroupKey, now: float) -> None:
        held, gang = self._held[key], self._members.gangs.get(key)
        wanted = self._wanted(key, held) if now < held.until else 0
        live = gang.live() if gang is not None else []
        comes_back = False
        if gang is not None and any(pod.node or pod.uid in gang.operations.bindings for pod in live):
            wanted -= len(live) + _done(gang) + gang.lingering()
        elif gang is not None and 0 < wanted <= len(live) + self._to_come(gang, live) and not gang.lingering():
            # All lost members are gone from their nodes: the quorum is planned in this call, before anything else.
            wanted, comes_back = 0, True
        elif gang is not None:
            wanted -= gang.lingering()
        for uid, node in list(held.places.items()):
            if len(held.places) > max(0, wanted) or node not in self._cluster.nodes:
                del held.places[uid]
                self._cluster.remove_pod(uid)
        if not held.places and not comes_back:
            self._end(key, now)
        if gang is not None and gang.operations.comes_back is not comes_back:
            gang.operations.comes_back = comes_back
            self._members.dirty.note(key)

    def _wanted(self, key: GroupKey, held: Held) -> int:
        """Number of members that the workload wants, of those that the group was scheduled with."""
        owner = self._members.foreign.find(held.workload.kind, GroupKey(key.namespace, held.workload.name))
        if owner is None or (facts := owner.workload) is None or owner.uid != held.object_uid or facts.idle:
            return 0
        gang = self._members.gangs.get(key)
        pods = gang.observed.pods.values() if gang is not None else ()
        wave = owed_by(owner, pods_of(held.workload, pods), foreign=self._members.foreign)
        if wave is None:
            return min(held.minimum, facts.size)
        return min(held.minimum, facts.size, wave.alive + (_done(gang) if gang is not None else 0))

    def _to_come(self, gang: Gang, live: Sequence[Pod]) -> int:
        """Number of members that are planned by a template, because they are created only once these are bound.

        It is 0 while members of roles without a template are missing.
        """
        spec = declared_spec(gang.key, gang.observed.group, live, self._members.foreign) if live else None
        if spec is None:
            return 0
        by_role = Counter(map(role_of, live))
        missing = {role: max(0, role.min_member - by_role[role.name]) for role in spec.roles}
        return 0 if any(missing[role] for role in missing if role.template is None) else sum(missing.values())

    def _left_s(self, key: GroupKey, held: Held | None, now: float) -> float:
        """Number of seconds from now for which the group may still hold placeholders."""
        began, spent_s = self._spent.get(key, (now, 0.0))
        if now >= began + HOUR_S:
            began, spent_s = now, 0.0
        return MOST_S - spent_s - (now - held.since if held is not None else 0.0)

    def _end(self, key: GroupKey, now: float) -> None:
        held = self._held.pop(key)
        self._spent = {other: spent for other, spent in self._spent.items() if now < spent[0] + HOUR_S}
        began, spent_s = self._spent.get(key, (held.since, 0.0))
        self._spent[key] = (began, spent_s + min(now, held.until) - held.since)


def _done(gang: Gang) -> int:
    """Number of members that have succeeded and count towards the minimum."""
    return runs.done(gang).total() if gang.observed.wave is None else 0


def _placeholder(key: GroupKey, pod: Pod) -> Pod:
    """The placeholder that claims the pod's capacity: it has the pod's shape, without rules about other pods."""
    declaration = Declaration(group=key.name, role=role_of(pod))
    shape = replace(pod.shape, affinity=(), anti_affinity=(), spread=())
    return Pod(f"kept/{key}/{pod.uid}", key.namespace, "", shape, created=0.0, scheduler="", declaration=declaration)
