"""Finds out why a group waits: the core decides on a copy of the cluster, and nothing is written."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

import numpy as np
from msgspec.structs import replace

from gangsched.config.dialects import DIALECTS
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.machine import Machine
from gangsched.core.membership.installations import group_of
from gangsched.core.objects.declaration import OWN_DIALECT, OWN_KEYS, GroupKey
from gangsched.core.objects.events import Event, ForeignGroupsReplaced, GroupsReplaced
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome, Phase
from gangsched.core.objects.wording import number_of
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.status.explanation import missing_parts
from gangsched.core.status.holders import Held, Share, accepting_rows, scarcest
from gangsched.core.status.remedies import remedies
from gangsched.views.decided_copy import decided
from gangsched.views.diagnosed import Diagnosis, PodShares, Shortfall, from_elsewhere
from gangsched.views.findings import FITS, Findings, is_sent
from gangsched.views.nodegroups import NodeGroup, node_groups
from gangsched.views.undeclared_phase import UNREAD

_UNBOUND = (
    "a running operator that serves this namespace and schedulerName, if this does not change: see its log, /readyz "
    "and --namespace"
)
TRIED = 5
"""Maximum number of holders of a scarce resource that are removed from the copy to see whether the group then fits."""


def from_cluster(events: Sequence[Event], key: GroupKey, *, policy: Policy, now: float) -> Diagnosis | None:
    """Diagnose the group, or that of the member or workload, of this name; None if there is none.

    Back-offs are ignored: the copy tries at once what the operator tries when they end.
    """
    machine = decided(map(without_back_offs, events), policy=policy, now=now)
    gang_key = min((candidate for candidate in machine.gangs if candidate[:2] == key[:2]), default=None) or _group_of(
        machine, key
    )
    if gang_key is None:
        elsewhere = machine.elsewhere(key.namespace, key.name)
        return from_elsewhere(elsewhere, policy) if elsewhere is not None else None
    foreign = [event for event in events if isinstance(event, ForeignGroupsReplaced)]
    others = [(event.dialect, group.key) for event in foreign for group in event.groups]
    return _Examination(machine, gang_key, others).diagnose()


def _shares(shares: Sequence[Share]) -> PodShares:
    return PodShares([f"{pod.namespace}/{pod.name}" for pod, _ in shares], sum(amount for _, amount in shares))


def _group_of(machine: Machine, key: GroupKey) -> GroupKey | None:
    """The group whose member, or whose members' workload, has this name; None if there is none."""
    own = (gang for gang in machine.gangs.values() if gang.key.namespace == key.namespace)
    return next(
        (gang.key for gang in own if any(key.name in _names_of(pod) for pod in gang.observed.pods.values())), None
    )


def _names_of(pod: Pod) -> Sequence[str]:
    return (pod.name, pod.workload.name) if pod.workload is not None else (pod.name,)


def without_back_offs(event: Event) -> Event:
    """The event, with PodGroups that have no back-off."""
    if not isinstance(event, GroupsReplaced):
        return event
    return GroupsReplaced(tuple(map(_without_back_off, event.groups)))


def _without_back_off(group: Group) -> Group:
    record = group.status.record
    if record is None or not record.retry_at:
        return group
    return replace(group, status=replace(group.status, record=replace(record, retry_at=0.0)))


class _Examination:
    def __init__(self, machine: Machine, key: GroupKey, foreign: Sequence[tuple[str, GroupKey]]) -> None:
        self._foreign = foreign
        self._cluster: Cluster = machine.cluster
        self._gangs = list(machine.gangs.values())
        self._gang: Gang = machine.gangs[key]
        self._assessment: Assessment = machine.assessments[key]
        self._findings = Findings(machine)
        self._machine = machine

    def diagnose(self) -> Diagnosis:
        finding, terms = self._findings.on_copy(self._gang.key), self._assessment.terms
        diagnosis = Diagnosis(
            key=finding.key,
            phase=finding.phase,
            reason=finding.reason,
            message=finding.message,
            # A bound quorum satisfies the minimum of its time; explained is the one that holds now.
            minimum=max(finding.minimum, terms.spec.minimum) if terms.minimum_known else 0,
            members=finding.members,
            bound=len(finding.placements),
            source=finding.source,
        )
        if finding.reason in UNREAD:
            return diagnosis
        if is_sent(self._gang):
            look = (_UNBOUND,) if finding.message == FITS else ()
            return dataclasses.replace(diagnosis, besides=finding.besides, helps=look)
        refusal = self._gang.wait.refusal
        shortfall = None if refusal is None else self._shortfall(refusal)
        helps = self._completing() if refusal is None or shortfall is None else self._helping(refusal, shortfall)
        starts = self._machine.forecasting.all(self._machine.called) if shortfall is not None else {}
        return dataclasses.replace(
            diagnosis,
            besides=finding.besides,
            shortfall=shortfall,
            helps=tuple(helps),
            demand=refusal.demand if refusal is not None else (),
            preemption=self._machine.preemption_of(finding.key),
            starts=starts.get(finding.key),
            place=terms.priority + self._assessment.aged,
            aged=self._assessment.aged,
        )

    def _completing(self) -> Iterator[str]:
        """What would make an incomplete group complete."""
        gang, assessment = self._gang, self._assessment
        hindrance = assessment.terms.hindrance
        if hindrance is not None and hindrance.reason is Reason.POD_GROUP_NOT_FOUND:
            yield from self._misnamed()
        scheduled = gang.record.scheduled_at and gang.record.outcome is not Outcome.UNDECIDED
        suspended = gang.observed.group is not None and gang.observed.group.status.phase == Phase.SUSPENDED
        if assessment.facts.complete or scheduled or suspended or hindrance is not None:
            return
        if missing := missing_parts(assessment):
            yield missing
        elif assessment.missing:
            yield f"{number_of(assessment.missing, 'more member')}, with {assessment.terms.keys.group}: {gang.key.name}"
            if len(assessment.census.live) and not assessment.terms.spec.roles:
                yield f"a minimum of {len(assessment.census.live)}, as many as exist"
        for role, number in sorted(assessment.missing_roles.items()) if not missing else ():
            yield f"{number_of(number, 'more member')} of role {role}"
        if gated := sum(pod.gated for pod in gang.observed.pods.values()):
            yield f"removing the scheduling gates of {number_of(gated, 'member')}, which do not count until then"
        if gang.observed.foreign_pods:
            other = ", ".join(sorted({pod.scheduler for pod in gang.observed.foreign_pods.values()}))
            pods = number_of(len(gang.observed.foreign_pods), "pod")
            yield f"another schedulerName: {pods} of {other} named the group without effect"

    def _misnamed(self) -> Iterator[str]:
        """PodGroups that may be meant: of a similar name, or of this name in another namespace or API group."""
        namespace, name, _ = self._gang.key
        declared = [gang.key for gang in self._gangs if gang.observed.group is not None]
        near = get_close_matches(name, [key.name for key in declared if key.namespace == namespace])
        if near:
            yield f"the right name in the pods' label: there is a PodGroup {' and '.join(near)}"
        for key in declared:
            if key.name == name and key.namespace != namespace:
                yield f"a PodGroup in the pods' own namespace {namespace}: {key} counts only for pods of its own"
        for dialect, key in self._foreign:
            if (key.namespace, key.name) == (namespace, name) and dialect in DIALECTS and dialect != OWN_DIALECT:
                own = DIALECTS[dialect].group[0]
                yield (
                    f"{own} in place of {OWN_KEYS.group}, because the PodGroup {name} that exists is one of {dialect}; "
                    "or a PodGroup of gangsched.io"
                )

    # A refusal

    def _shortfall(self, refusal: Refusal) -> Shortfall:
        resource = scarcest(refusal)
        holders = self._held(resource, refusal) if resource else []
        otherwise = self._findings.held(refusal) if resource else Held()
        return Shortfall(
            wanted=refusal.wanted,
            fits=refusal.fits,
            nodes=refusal.nodes,
            lacks=() if refusal.unlabelled else refusal.short,
            gaps=refusal.gaps,
            resource=resource,
            held=holders,
            ahead=self._findings.ahead(self._gang.key),
            groups=self._groups(refusal),
            kept_for=_shares(otherwise.kept_from(self._assessment.terms.priority)),
            stuck=_shares(otherwise.stuck),
        )

    def _groups(self, refusal: Refusal) -> Sequence[NodeGroup]:
        ask = self._assessment.want.quorum
        if ask is None or refusal.start is not None:
            return ()
        return node_groups(self._cluster, refusal, ask, self._assessment.terms.priority)

    def _held(self, resource: str, refusal: Refusal) -> list[tuple[GroupKey, int]]:
        by_holder: Counter[GroupKey] = Counter()
        for pod in self._on_accepting_nodes(refusal):
            if amount := dict(pod.shape.requests).get(resource, 0):
                by_holder[group_of(pod)] += amount
        by_holder.pop(self._gang.key, None)
        return sorted(by_holder.items(), key=lambda item: (-item[1], item[0]))

    def _on_accepting_nodes(self, refusal: Refusal) -> Iterator[Pod]:
        names = self._cluster.capacity.names
        for row in np.flatnonzero(accepting_rows(self._cluster, refusal)).tolist():
            for uid in self._cluster.on_node.get(names[row], ()):
                yield self._cluster.pods[uid]

    def _helping(self, refusal: Refusal, shortfall: Shortfall) -> Iterator[str]:
        ask = self._assessment.want.quorum
        if ask is not None and not refusal.never and not refusal.paused:
            quorum = replace(ask, start=refusal.start)
            yield from self._ends([holder for holder, _ in shortfall.held[:TRIED]], quorum)
        yield from remedies(refusal, self._assessment)

    def _ends(self, holders: Sequence[GroupKey], ask: Ask) -> Iterator[str]:
        """The holders whose end would suffice: each single one, else the smallest number of the largest together."""
        enough = [holder for holder in holders if self._would_fit(ask, [holder])]
        for holder in enough:
            yield f"the end of {holder}: the group fits then"
        if enough:
            return
        for number in range(2, len(holders) + 1):
            if self._would_fit(ask, holders[:number]):
                yield f"the end of {' and '.join(map(str, holders[:number]))} together: the group fits then"
                return

    def _would_fit(self, ask: Ask, without: Sequence[GroupKey]) -> bool:
        """Whether the quorum fits on the copy without these holders, which are restored afterwards."""
        cluster = self._cluster
        left_out = [
            (pod, cluster.node_of(pod.uid))
            for pod in list(cluster.pods.values())
            if group_of(pod) in without and cluster.node_of(pod.uid)
        ]
        for pod, _ in left_out:
            cluster.remove_pod(pod.uid)
        outcome = place(Snapshot(cluster), ask)
        for pod, node in left_out:
            cluster.set_pod(pod)
            if not pod.node:
                cluster.assume(pod.uid, node)
        return isinstance(outcome, Placement)
