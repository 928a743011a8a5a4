"""Runs the core for a `World`, with a simulated clock and an executor in memory.

Every binding of a pod or a volume succeeds and is observed at once, every requested volume is provisioned, and every
device is allocated. Evictions are answered as `eviction_api` says, and terminating pods are gone at their
deletionTimestamps. Pods without a group end at their activeDeadlineSeconds. Nothing else changes: other bound pods do
not end, and no pod is created again. The clock jumps from one deadline to the next, where nothing changes at growing
intervals, until the longest maxScheduleTime has passed, also since the last pod was gone, and since a plan may have
been given up.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.devices import DeviceKind, ResourceClaim
from gangsched.core.objects.effects import (
    BindPod,
    Effect,
    EmitEvent,
    EvictPod,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    Prebind,
)
from gangsched.core.objects.events import (
    BudgetsHidden,
    BudgetsReplaced,
    DeviceObjectSeen,
    DeviceObjectsReplaced,
    Event,
    ForeignGroupSeen,
    GroupSeen,
    GroupsReplaced,
    NamespacesReplaced,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    StorageReplaced,
    StorageSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.faults import SetAside
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode, UseDevices, reserved
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import PodBound, PodEvicted, StatusWritten
from gangsched.core.objects.volumes import StorageKind, Volume, VolumeClaim
from gangsched.core.status.holders import stuck_since
from gangsched.views.findings import Finding, Findings
from gangsched.whatif.departures import Departures, Leaving
from gangsched.whatif.eviction_api import Evictions
from gangsched.whatif.world.contents import World

_PAUSE = 0.1
"""How long to pause between tries that change nothing, as a share of the time for which they have changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The state of one group `at` seconds after the start. `placed` are the members bound then, with their nodes.

    `leaving` are its members that begin to leave then for another group, `victims` those of others that do for it.
    """

    at: float
    finding: Finding
    placed: Mapping[str, str]
    leaving: Leaving | None = None
    victims: Sequence[Leaving] = ()

    @property
    def nodes(self) -> dict[str, int]:
        """The number of members bound to each node, ordered by node name."""
        return dict(sorted(Counter(self.placed.values()).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The decisions in order, and the final state of every group, and of the pods without one that still wait.

    `elsewhere` are the groups that belong to a schedulerName that is not served, with that name. `group_of` is the
    group of each pod, by its UID. `told` are the sentences of Events about fields that are not honoured.
    """

    decisions: Sequence[Decision]
    groups: Sequence[Finding]
    waiting_pods: Sequence[Finding]
    elsewhere: Mapping[GroupKey, str]
    group_of: Mapping[str, GroupKey]
    told: Sequence[str]


def simulate(world: World, policy: Policy, *, today: float | None = None) -> Outcome:
    """Let the core decide about everything in the world until nothing more happens.

    `today`, in epoch seconds, is when the question is asked; by default the world's start. Terminating pods that should
    long be gone by then are stuck.
    """
    world = dataclasses.replace(world, pods=[_as_of(pod, today or world.start, world.start) for pod in world.pods])
    return _Simulation(world, policy).run()


def _as_of(pod: Pod, today: float, start: float) -> Pod:
    """The pod on the simulated clock. One that should be gone already, but is not stuck yet, does not become so."""
    if pod.gone_by and pod.gone_by <= today and stuck_since(pod, today) is None:
        return replace(pod, gone_by=0.0)
    return replace(pod, gone_by=pod.gone_by - today + start) if pod.gone_by else pod


class _Simulation:
    def __init__(self, world: World, policy: Policy) -> None:
        self._machine = Machine(policy, reconcile_pause_s_per_pod=0.0)
        self._policy = policy
        self._start = self._now = world.start
        self._groups = world.groups
        self._pods = {pod.uid: pod for pod in world.pods}
        self._storage = {kind: dict(objects) for kind, objects in world.storage.items()}
        self._devices = {kind: dict(objects) for kind, objects in world.devices.items()}
        self._successors = dict(world.successors)
        self._follows = world.follows
        self._labels = {node.name: dict(node.labels) for node in world.nodes}
        self._inbox: list[Event] = [
            NamespacesReplaced(tuple(world.namespaces.values())),
            PriorityClassesReplaced(tuple(world.priority_classes.items())),
            BudgetsHidden(world.budgets_hidden)
            if world.budgets_hidden
            else BudgetsReplaced(tuple(world.budgets.values())),
            NodesReplaced(tuple(world.nodes)),
            *(StorageReplaced(kind, tuple(objects.values())) for kind, objects in world.storage.items()),
            *(DeviceObjectsReplaced(kind, tuple(objects.values())) for kind, objects in world.devices.items()),
            GroupsReplaced(tuple(world.groups)),
            *map(ForeignGroupSeen, world.foreign),
            PodsReplaced(tuple(world.pods)),
            Synced(),
        ]
        self._evictions = Evictions(world.budgets.values())
        for pod in world.pods:
            if pod.terminating and pod.gone_by > self._start:
                self._evictions.await_end(pod.uid, pod.gone_by)
            elif pod.node:
                self._await_limit(pod, pod.lifetime.start or pod.bound_at or self._start)
        self._end = self._news_at = self._start
        self._departures = Departures(self._machine)
        self._preempted: dict[GroupKey, Finding] = {}
        self._decisions: list[Decision] = []
        self._told: list[str] = []
        self._bound_alone: list[Finding] = []
        self._placed = {(pod.namespace, pod.name) for pod in world.pods if pod.node}
        self._states: dict[GroupKey, set[tuple[str, ...]]] = {}

    def run(self) -> Outcome:
        self._settle()
        self._go_on_until(self._start)
        while (at := self._next()) <= self._end:
            self._now = max(self._now, at)
            for uid in self._evictions.take_ended(self._now):
                if uid in self._pods:
                    self._inbox.append(PodGone(uid))
                    self._forget(uid)
                    self._news_at = self._now
            self._settle()
        for fault in self._machine.take_faults():
            if isinstance(fault, SetAside):
                # The answer would not hold, and nobody watches a log.
                raise fault.error
        last = Findings(self._machine).all()
        groups = [self._preempted.get(finding.key, finding) for finding in last if not finding.plain]
        keys = {group.key for group in self._groups}
        keys |= {GroupKey(pod.namespace, pod.declaration.group) for pod in self._pods.values() if pod.declaration}
        candidates = ((key, self._machine.elsewhere(key.namespace, key.name)) for key in sorted(keys))
        elsewhere = {key: other.owner for key, other in candidates if other is not None}
        group_of = {uid: key for key, gang in self._machine.gangs.items() for uid in gang.observed.pods}
        return Outcome(
            decisions=self._decisions,
            groups=groups,
            waiting_pods=[finding for finding in last if finding.plain],
            elsewhere=elsewhere,
            group_of=group_of,
            told=self._told,
        )

    def _next(self) -> float:
        """When something happens next, in epoch seconds; infinity if nothing does.

        Groups that have timed out are tried again and again. The longer that has changed nothing, the longer is the
        next pause, so that the number of tries hardly depends on how far ahead the end is.
        """
        deadline = self._machine.next_deadline()
        due = float("inf") if deadline is None else deadline
        pause_s = _PAUSE * (self._now - self._news_at - self._policy.backoff_max_s)
        if pause_s > 0:
            due = min([max(due, self._now + pause_s), *self._known()])
        return min(due, self._evictions.next_end())

    def _known(self) -> Iterator[float]:
        """When plans are given up and groups time out for the first time, in epoch seconds."""
        assessments = self._machine.assessments
        times = [plan.expires for plan in self._machine.plans.values()]
        times += [assessments[key].due for key, gang in self._machine.gangs.items() if not gang.record.timeouts]
        return (at for at in times if at > self._now)

    def _go_on_until(self, at: float) -> None:
        """Do not end before every group that waits since then has timed out; a pod without one waits as long."""
        self._end = max(self._end, at + self._longest_wait_s())

    def _longest_wait_s(self) -> float:
        assessments = self._machine.assessments.values()
        times = (assessment.terms.max_schedule_time_s + assessment.terms.jitter_s for assessment in assessments)
        return max(filter(isfinite, times), default=self._policy.default_max_schedule_time_s if assessments else 0.0)

    def _settle(self) -> None:
        """Process everything that happens at the current time, then record the decisions."""
        touched: dict[GroupKey, None] = {}
        while True:
            events: list[Event] = self._inbox or [TimePassed()]
            self._inbox = []
            effects = self._machine.handle(events, self._now)
            touched.update(dict.fromkeys(self._machine.touched))
            for plan in self._departures.note_plans():
                self._go_on_until(plan.expires)
            for effect in effects:
                self._carry_out(effect)
            deadline = self._machine.next_deadline()
            if not self._inbox and (deadline is None or deadline > self._now):
                break
        self._note(touched)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, BindPod):
            pod = self._pods[effect.uid] = replace(self._pods[effect.uid], node=effect.node, bound_at=self._now)
            self._inbox += (PodBound(effect.uid, effect.node), PodSeen(pod))
            self._await_limit(pod, self._now)
            gang = self._machine.gang_of(effect.uid)
            if gang is not None and gang.plain:
                self._bound_alone.append(self._alone(pod))
            for successor in self._successors.pop(effect.uid, ()):
                created = self._pods[successor.uid] = self._following(successor, effect.node)
                self._inbox.append(PodSeen(created))
        elif isinstance(effect, Prebind):
            self._prepare(effect.prebinding)
        elif isinstance(effect, EmitEvent) and effect.reason == Reason.FIELDS_IGNORED:
            self._told.append(effect.note)
        elif isinstance(effect, EvictPod):
            self._evict(effect)
        elif isinstance(effect, PatchPodCondition):
            self._nominate(effect)
        elif isinstance(effect, PatchStatus):
            self._inbox.append(StatusWritten(effect.key, "1", effect.status.is_relied_on))
        elif isinstance(effect, MakeGroup):
            group = Group(effect.key, f"made/{effect.key}", "1", 1, self._now, effect.spec, made=True)
            self._inbox.append(GroupSeen(group))

    def _nominate(self, effect: PatchPodCondition) -> None:
        """Only the node that is reserved for a pod is relied on: nobody reads the rest of a condition here."""
        pod = self._pods.get(effect.uid)
        if pod is not None and effect.nominated not in (None, pod.nominated_node):
            self._pods[pod.uid] = replace(pod, nominated_node=effect.nominated)
            self._inbox.append(PodSeen(self._pods[pod.uid]))

    def _await_limit(self, pod: Pod, began: float) -> None:
        """A pod without a group ends at its limit."""
        if pod.declaration is None and pod.lifetime.deadline_s is not None:
            self._evictions.await_end(pod.uid, max(self._now, began + pod.lifetime.deadline_s))

    def _evict(self, effect: EvictPod) -> None:
        pod = self._pods.get(effect.uid)
        if pod is None:
            self._inbox.append(PodEvicted(effect.uid))
            return
        left, events = self._evictions.evict(pod, self._now)
        if left is not pod:
            self._departures.note_leaving(pod, self._alone)
            self._go_on_until(self._now if left is None else left.gone_by)
        self._inbox += events
        if left is None:
            self._forget(effect.uid)
        else:
            self._pods[effect.uid] = left

    def _forget(self, uid: str) -> None:
        """The pod is gone: its controllers release its claims."""
        del self._pods[uid]
        claims = self._devices.get(DeviceKind.CLAIM, {})
        for key, claim in list(claims.items()):
            if isinstance(claim, ResourceClaim) and uid in claim.reserved:
                users = tuple(user for user in claim.reserved if user != uid)
                claims[key] = replace(claim, reserved=users, allocation=claim.allocation if users else None)
                self._inbox.append(DeviceObjectSeen(DeviceKind.CLAIM, claims[key]))

    def _following(self, pod: Pod, node: str) -> Pod:
        """The pod as it is created once its predecessor has that node, whose domain some pods must share."""
        label = self._follows.get(pod.uid)
        if label is None:
            return pod
        selector = dict(pod.shape.node_selector) | {label: self._labels[node].get(label, "")}
        return replace(pod, shape=replace(pod.shape, node_selector=tuple(sorted(selector.items()))))

    def _prepare(self, prebinding: Prebinding) -> None:
        """Allocate and reserve the claim, or bind it to an existing volume or to one that is provisioned for it."""
        if isinstance(prebinding, UseDevices):
            self._allocate(prebinding)
        if not isinstance(prebinding, SelectNode | ClaimVolume):
            return
        claims, volumes = self._storage[StorageKind.CLAIM], self._storage[StorageKind.VOLUME]
        claim = claims[prebinding.namespace, prebinding.claim]
        name = (
            prebinding.volume
            if isinstance(prebinding, ClaimVolume)
            else f"made for {prebinding.namespace}/{prebinding.claim}"
        )
        volume = volumes.get(("", name), Volume(name))
        if isinstance(claim, VolumeClaim) and isinstance(volume, Volume):
            volumes["", name] = replace(volume, available=False)
            claims[claim.key] = replace(claim, volume=name, bound=True)
            self._inbox.append(StorageSeen(StorageKind.VOLUME, volumes["", name]))
            self._inbox.append(StorageSeen(StorageKind.CLAIM, claims[claim.key]))

    def _allocate(self, use: UseDevices) -> None:
        """Give the claim its devices, and have their drivers make them ready at once."""
        claims = self._devices[DeviceKind.CLAIM]
        new_claim = ResourceClaim(use.namespace, use.claim, use.claim, owner=use.consumer.uid, ours=True, extended=True)
        claim = claims.get((use.namespace, use.claim), new_claim)
        if isinstance(claim, ResourceClaim):
            ready = tuple(
                (allocated.device, allocated.binding) for allocated in use.allocation.devices if allocated.binding
            )
            claims[claim.key] = replace(reserved(claim, use), allocation=use.allocation, conditions=ready)
            self._inbox.append(DeviceObjectSeen(DeviceKind.CLAIM, claims[claim.key]))

    def _alone(self, pod: Pod) -> Finding:
        """The finding for a bound plain pod, because the machine keeps no record of it."""
        priority = min(pod.priority, self._policy.max_priority)
        return Finding(
            key=GroupKey(pod.namespace, pod.name, pod.uid),
            order=(True, -priority, pod.created, pod.namespace, pod.name),
            phase=Phase.SCHEDULED,
            reason=Reason.SCHEDULED,
            message="A pod without a group, bound alone.",
            minimum=1,
            members=1,
            placements={pod.name: pod.node},
        )

    def _note(self, touched: Iterable[GroupKey]) -> None:
        """Record news of these gangs: newly placed members, or a state not yet recorded since one was last placed.

        Who begins to leave, and for which group, is recorded in any case.
        """
        alone, self._bound_alone = self._bound_alone, []
        departures = self._departures.take()
        findings = Findings(self._machine)
        groups = {departure.group for departure in departures}
        left = [(self._left(departure, findings), departure) for departure in departures]
        keys = dict.fromkeys((*touched, *(departure.holder.key for departure in departures)))
        others = [findings.of(key) for key in keys if key in self._machine.gangs and key not in groups]
        news = [*left, *((finding, None) for finding in (*others, *alone))]
        for finding, departure in sorted(news, key=lambda pair: pair[0].order):
            self._record(finding, departure, [victim for victim in departures if victim.holder.key == finding.key])

    def _left(self, leaving: Leaving, findings: Findings) -> Finding:
        """The finding for a group of which members begin to leave, or for a pod without a group that does."""
        before = leaving.finding
        now = findings.of(leaving.group) if leaving.group in self._machine.gangs else None
        gone = dataclasses.replace(before, phase=Phase.PENDING, members=0, placements={})
        finding = dataclasses.replace(now or gone, reason=Reason.PREEMPTED, message=leaving.sentence, besides=())
        if leaving.whole:
            # Nothing creates its members again.
            self._preempted[leaving.group] = finding
        return finding

    def _record(self, finding: Finding, departure: Leaving | None, victims: Sequence[Leaving]) -> None:
        namespace = finding.key.namespace
        placed = {pod: node for pod, node in finding.placements.items() if (namespace, pod) not in self._placed}
        self._placed.update((namespace, pod) for pod in placed)
        states = self._states.setdefault(finding.key, set())
        if placed:
            states.clear()
        state = (finding.phase, finding.reason, *finding.besides)
        over = departure is None and finding.key in self._preempted
        if over or (state in states and not victims and departure is None):
            return
        states.add(state)
        self._news_at = self._now
        at = self._now - self._start
        self._decisions.append(Decision(at=at, finding=finding, placed=placed, leaving=departure, victims=victims))
