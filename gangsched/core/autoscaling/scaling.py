"""Demand objects for palantir's autoscaler: one for each instance group that must grow for a waiting group.

Wanted objects are compared with observed ones whenever anything that either depends on has changed. A new object is
written once the refusal has lasted as long as a status waits for it, changed content after the interval for changed
numbers, and an object that no group wants any more is deleted at once. A write that the watch does not show is repeated
at growing intervals: it may have been lost, or the name may be taken by another owner's object, which is never
overwritten. Nothing is compared while Demand objects are not served.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.labels import names_of
from gangsched.core.declarations.terms import asked_for
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand, SeenDemand
from gangsched.core.objects.duration import doubled
from gangsched.core.objects.effects import DropDemand, Effect, PutDemand
from gangsched.core.objects.events import DemandFact, DemandGone, DemandSeen, DemandsHidden, DemandsReplaced, Event
from gangsched.core.objects.pod import Pod, by_age
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.core.planning import expansion
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.agenda import Agenda, Due
from gangsched.core.status.conditions import NO_ROOM

LONGEST_RETRY_S = 3600.0
"""The longest pause, in seconds, before a write that the watch does not show is repeated."""
_NEVER = float("-inf")
_LONGEST_NAME = 253
_DIGITS = 8


class _Wanted(Struct, frozen=True):
    """The objects that a gang wants, and what they were derived from."""

    refusal: Refusal
    owner_uid: str
    objects: tuple[DemandObject, ...]


class _Sent(Struct):
    """The last write to a name: `dropped` is the UID of a deleted object; `unseen` writes were not observed yet."""

    dropped: str
    at: float
    unseen: int


class Scaling:
    """Keeps the Demand objects consistent with the groups that wait for room."""

    def __init__(self, cluster: Cluster, policy: Policy, agenda: Agenda) -> None:
        self._cluster = cluster
        self._policy = policy
        self._agenda = agenda
        self._served = False
        self._all = False
        self._seen: dict[DemandKey, SeenDemand] = {}
        self._wanted: dict[GroupKey, _Wanted] = {}
        self._holder: dict[DemandKey, GroupKey] = {}
        self._sent: dict[DemandKey, _Sent] = {}
        self._touched: dict[GroupKey, None] = {}
        self._unwanted: dict[DemandKey, None] = {}

    def note(self, event: DemandFact) -> None:
        """A Demand object of ours was added, changed or removed, or Demand objects are no longer served."""
        match event:
            case DemandSeen(seen):
                self._see(seen.demand.key, seen)
            case DemandGone(key):
                self._see(key, None)
            case DemandsReplaced(demands):
                self._all = self._all or not self._served
                self._served = True
                listed = {seen.demand.key: seen for seen in demands}
                for key in [*(key for key in self._seen if key not in listed), *listed]:
                    self._see(key, listed.get(key))
            case DemandsHidden():
                self._served = False
                for known in (self._seen, self._wanted, self._holder, self._sent, self._touched, self._unwanted):
                    known.clear()

    def facts(self) -> list[Event]:
        """The observed objects, as events for a successor."""
        return [DemandsReplaced(tuple(self._seen.values()))] if self._served else []

    def _see(self, key: DemandKey, seen: SeenDemand | None) -> None:
        if seen is not None:
            self._seen[key] = seen
        else:
            self._seen.pop(key, None)
        if key in self._holder:
            self._touched[self._holder[key]] = None
        else:
            self._unwanted[key] = None

    def decide(
        self,
        changed: Iterable[GroupKey],
        gangs: Mapping[GroupKey, Gang],
        assessments: Mapping[GroupKey, Assessment],
        *,
        contain: Callable[[GroupKey, Exception], object],
        now: float,
    ) -> list[Effect]:
        """The writes that are due for these gangs, and for the objects that have changed.

        `contain` is called with a gang whose demand cannot be determined because of a bug.
        """
        if not self._served:
            return []
        keys = [*gangs] if self._all else [*dict.fromkeys((*changed, *self._touched))]
        self._all = False
        self._touched.clear()
        effects: list[Effect] = []
        for key in keys:
            gang = gangs.get(key)
            wanted = None
            if gang is not None and key in assessments:
                try:
                    wanted = self._want(gang, assessments[key])
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    contain(key, error)
            self._exchange(key, wanted)
            if gang is not None and wanted is not None:
                effects += self._put(gang, wanted.objects, now)
        effects += self._drop(now)
        return effects

    def _want(self, gang: Gang, assessment: Assessment) -> _Wanted | None:
        """What the gang wants now; None unless it was refused and waits for room."""
        refusal = gang.wait.refusal
        owner = min(assessment.census.live, key=by_age, default=None)
        if refusal is None or owner is None or gang.plain or gang.reason not in NO_ROOM:
            return None
        old = self._wanted.get(gang.key)
        if old is not None and old.refusal is refusal and old.owner_uid == owner.uid:
            return old
        quorum = assessment.want.quorum
        members = quorum.members if quorum is not None else assessment.census.waiting
        pools = pool_demands(refusal, self._policy.fifo.label, members=members)
        objects = []
        for pool in pools:
            name = demand_name(owner.name, pool.instance_group if pools[1:] else "")
            objects.append(DemandObject(DemandKey(gang.key.namespace, name), owner.name, owner.uid, pool))
        return _Wanted(refusal, owner.uid, tuple(objects))

    def _exchange(self, key: GroupKey, wanted: _Wanted | None) -> None:
        """Store what the gang wants, and note the objects that it no longer wants."""
        old = self._wanted.pop(key, None)
        if wanted is not None:
            self._wanted[key] = wanted
        if old is wanted:
            return
        kept = {demand.key for demand in wanted.objects} if wanted is not None else set()
        for demand in old.objects if old is not None else ():
            if demand.key not in kept and self._holder.get(demand.key) == key:
                del self._holder[demand.key]
                self._unwanted[demand.key] = None

    def _put(self, gang: Gang, objects: Sequence[DemandObject], now: float) -> list[Effect]:
        effects: list[Effect] = []
        for wanted in objects:
            if self._holder.setdefault(wanted.key, gang.key) != gang.key:
                # The name is taken by another gang's object.
                continue
            seen, last = self._seen.get(wanted.key), self._sent.get(wanted.key)
            if seen is not None and seen.demand == wanted:
                # An object that a former leader wrote is ours from now on.
                self._sent.setdefault(wanted.key, _Sent("", _NEVER, 0)).unseen = 0
                continue
            due = gang.reason_since + self._policy.fold_s
            tries = last.unseen + 1 if last is not None else 1
            if last is not None:
                due = max(due, last.at + self._pause_s(last.unseen))
            if now >= due:
                effects.append(PutDemand(wanted, seen.uid if seen is not None else ""))
                self._sent[wanted.key] = _Sent("", now, tries)
                due = now + self._pause_s(tries)
            self._agenda.hasten(Due.RECONCILE, gang.key, due)
        return effects

    def _drop(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for key in list(self._unwanted):
            seen, last = self._seen.get(key), self._sent.get(key)
            if key in self._holder or seen is None or not self._ours(seen):
                del self._unwanted[key]
                if seen is None and key not in self._holder:
                    self._sent.pop(key, None)
                continue
            tries = last.unseen if last is not None and last.dropped == seen.uid else 0
            due = last.at + self._pause_s(tries) if last is not None and tries else now
            if now >= due:
                effects.append(DropDemand(key, seen.uid))
                self._sent[key] = _Sent(seen.uid, now, tries + 1)
                due = now + self._pause_s(tries + 1)
            # No gang has this key: the deadline only causes another call.
            self._agenda.hasten(Due.RECONCILE, GroupKey(*key, pod_uid=seen.uid), due)
        return effects

    def validate(self, gangs: Container[GroupKey]) -> list[str]:
        """A sentence for each entry of a gang or an object that is gone."""
        wrong = [f"{key}: wants an object though gone" for key in self._wanted if key not in gangs]
        for key, holder in self._holder.items():
            wanted = self._wanted.get(holder)
            if wanted is None or key not in {demand.key for demand in wanted.objects}:
                wrong.append(f"{key}: held for {holder}, which does not want it")
        known = self._holder.keys() | self._seen.keys() | self._unwanted.keys()
        left = self._sent.keys() - known
        return wrong + [f"{key}: a write of it is remembered, and it is neither wanted nor there" for key in left]

    def _ours(self, seen: SeenDemand) -> bool:
        """Whether we may delete it: another installation may have written it for its own pods.

        An object whose pod is gone, and which no gang of ours has wanted, is deleted with the pod.
        """
        demand = seen.demand
        if demand.key in self._sent:
            return True
        owner = self._cluster.pods.get(demand.owner_uid)
        if owner is None or self._policy.namespace not in ("", owner.namespace):
            return False
        return owner.scheduler in self._policy.scheduler_names

    def _pause_s(self, tries: int) -> float:
        return doubled(self._policy.message_interval_s, max(tries, 1), longest=LONGEST_RETRY_S)


def demand_name(owner: str, instance_group: str) -> str:
    """The name of the Demand object for the pod, and for the instance group if that is not empty.

    The name of an instance group may be any text, so a digest distinguishes names that would otherwise be equal.
    """
    name = f"demand-{owner}"
    exact = True
    if instance_group:
        plain = re.sub(r"[^a-z0-9]+", "-", instance_group.lower()).strip("-")
        exact = plain == instance_group
        name = f"{name}-{plain}" if plain else name
    if exact and len(name) <= _LONGEST_NAME:
        return name
    digest = sha256(f"{owner}/{instance_group}".encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LONGEST_NAME - _DIGITS - 1].rstrip('-.')}-{digest}"


_ZONE = names_of("topology.kubernetes.io/zone")


def pool_demands(refusal: Refusal, label: str, *, members: Sequence[Pod]) -> tuple[PoolDemand, ...]:
    """What the instance groups of this node label must add, by name; empty if that would not make the group fit.

    It would not if a member asks for none of them, if no new node helps, or if all members must be on one node, which
    Demand objects cannot express. `members` are the refused ones, in the order of trying; the units name some of them.
    """
    by_group: dict[str, dict[MemberClass, int]] = {}
    for member, count in refusal.missing.items():
        by_group.setdefault(asked_for(member.shape, label), {})[member] = count
    if not refusal.demand or "" in by_group or any(key == expansion.HOSTNAME for key, _ in refusal.within):
        return ()
    zones = [value or "" for key, value in refusal.within if key in _ZONE]
    return tuple(
        PoolDemand(
            instance_group=name,
            units=_units(missing, members),
            single_zone=bool(zones),
            zone=zones[-1] if zones else "",
        )
        for name, missing in sorted(by_group.items())
    )


def _units(missing: Mapping[MemberClass, int], members: Sequence[Pod]) -> tuple[DemandUnit, ...]:
    """The members by equal requests; the last unit also has the names of members whose requests no unit has."""
    names = _names(missing, members)
    wanted = expansion.demand(missing, ())
    units = [DemandUnit(unit.count, unit.requests, tuple(sorted(names.pop(unit.requests, ())))) for unit in wanted]
    if names and units:
        last = units[-1]
        rest = (name for others in names.values() for name in others)
        units[-1] = DemandUnit(last.count, last.requests, tuple(sorted((*last.pods, *rest))))
    return tuple(units)


def _names(missing: Mapping[MemberClass, int], members: Sequence[Pod]) -> dict[Amounts, list[str]]:
    """The names of missing pods, by their requests: of equal pods the last tried; placeholders count as the last."""
    counts: Counter[Shape] = Counter()
    for member, count in missing.items():
        counts[member.shape] += count
    by_requests: dict[Amounts, list[str]] = {}
    for shape, count in counts.items():
        alike = sorted((pod for pod in members if pod.shape == shape), key=lambda pod: not pod.name)
        names = [pod.name for pod in alike[-count:] if pod.name]
        if names:
            by_requests.setdefault(shape.requests, []).extend(names)
    return by_requests
