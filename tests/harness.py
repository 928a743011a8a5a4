"""The machine with a small in-memory API server, stepped by hand: every effect is carried out and reported back.

Bindings, status and conditions are applied to the objects as the real API server would apply them; their watch events
arrive in the next step. The clock moves only when a test moves it. With a seed, events reach the machine out of order,
over several steps and sometimes twice, as separate watches and results of writes may deliver them; the events of one
object stay in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import ClassVar, Self

from msgspec.structs import replace

from gangsched.api.conversion import group_from_object, made_group
from gangsched.api.status_conversion import status_from_object, status_to_object
from gangsched.core.gang.gang import Gang
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject, SeenDemand
from gangsched.core.objects.devices import DeviceClass, DeviceKind, DeviceObject, ResourceClaim
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import (
    BindPod,
    DeleteGroup,
    DropDemand,
    Effect,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    Prebind,
    PutCondition,
    PutDemand,
    PutPhase,
    UndoPrebinding,
    WithdrawBinding,
)
from gangsched.core.objects.events import (
    BudgetGone,
    BudgetSeen,
    BudgetsHidden,
    BudgetsReplaced,
    DemandGone,
    DemandSeen,
    DemandsReplaced,
    DeviceObjectGone,
    DeviceObjectSeen,
    DeviceObjectsReplaced,
    Event,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    PriorityClassSeen,
    StorageGone,
    StorageReplaced,
    StorageSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import DeviceTaintRule, ObjectKey, ResourceSlice
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup, Group, SeenCondition, SeenPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.prebindings import UseDevices
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    GroupNotMade,
    OwnerSeen,
    PodBound,
    PodEvicted,
    PrebindRefused,
    Refused,
    Result,
    Spared,
    StatusRefused,
    StatusWritten,
)
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.status import Condition, GroupStatus
from gangsched.core.objects.volumes import (
    CsiDriver,
    CsiNode,
    StorageCapacity,
    StorageClass,
    StorageKey,
    StorageKind,
    StorageObject,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from gangsched.core.status.pod_events import ACTION
from tests.disks import Disks
from tests.gadgets import Gadgets
from tests.told import messages, miscounted

Thing = Pod | Node | Group | ForeignGroup | DisruptionBudget | DeviceObject | StorageObject
KINDS: dict[type, StorageKind] = {
    VolumeClaim: StorageKind.CLAIM,
    Volume: StorageKind.VOLUME,
    StorageClass: StorageKind.CLASS,
    CsiNode: StorageKind.NODE,
    VolumeAttachment: StorageKind.ATTACHMENT,
    CsiDriver: StorageKind.DRIVER,
    StorageCapacity: StorageKind.CAPACITY,
}
START = 1_000_000.0
CONTROLLER_S = 0.05
"""After so many seconds the disruption controller has looked at an eviction."""
REPEATED = 0.1
"""With a seed, the share of events that reach the machine twice."""
LEADERLESS_S = 15.0
"""Time without a leader, in seconds, in the course LEADERLESS."""
FIRST_BATCHES = 4
"""In the course LEADERLESS, the leader is lost within this number of batches of events."""


History = list[tuple[tuple[Event, ...], float, tuple[Effect, ...]]]
"""The calls of a machine: their events, their time and their effects."""


class Course(Enum):
    """How a story runs unless it says so itself: see `tests/scenarios/conftest.py`.

    RESTARTS: after each batch of watch events a new leader lists everything and starts from the statuses.
    STANDBYS: after some batches, chosen by the seed, a warm standby takes over.
    LEADERLESS: once, early on, there is no leader for `LEADERLESS_S`; the story does not count this time as passed.
    DISORDER: events arrive in an order derived from the seed, as in `Harness(seed=…)`.
    """

    PLAIN = "plain"
    RESTARTS = "restarts"
    STANDBYS = "standbys"
    LEADERLESS = "leaderless"
    DISORDER = "disorder"


@dataclass(slots=True)
class Standby:
    """A second replica that sees everything and decides nothing; `lag` holds the events not delivered to it yet."""

    machine: Machine
    history: History = field(default_factory=list)
    lag: list[Event] = field(default_factory=list)

    def see(self, now: float, *, late: int = 0) -> None:
        """Deliver the pending events, except for the last `late` ones."""
        seen = max(0, len(self.lag) - late)
        events, self.lag = self.lag[:seen], self.lag[seen:]
        self.history.append((tuple(events), now, tuple(self.machine.handle(events, now))))


class Harness:
    """A cluster in memory. `pods`, `nodes` and `groups` are the API server's objects; `emitted` is every Event so far.

    `shrunk` names nodes whose pods may hold more than they have by now. `inbox` holds the events that have not reached
    the machine yet. `refuse_bind` and `refuse_status` may refuse a write; an eviction takes effect after
    `eviction_takes_s`, and the watch shows it `eviction_is_shown_after_s` after the answer. If `lose_answer` is true
    for a binding, it is made but reported as failed; if `withhold` is true, it is not sent until `send_withheld`.
    `jobs` maps the UIDs of Jobs to the results of their look-ups, None for no result. `foreign` holds other systems'
    objects and workloads; listing a `hidden` dialect fails, as its event says. `namespaces` holds the namespaces whose
    labels matter, `budgets` the PodDisruptionBudgets by namespace and name, which cannot be read while `budgets_hidden`
    says why. `storage` holds claims, volumes and other storage objects by kind; `disks` binds and provisions them.
    `refuse_prebinding` may refuse a pre-binding. If `lose_prebinding` is true for one, it is neither written nor
    answered; if `lose_unanswered` is true for a write without an answer, it is not made. `demands` holds our Demand
    objects, None while the API server does not serve them. `history` is everything that the machine received and
    decided since the last restart. Actions planned with `after` run while a test lets time pass with `wait`.
    """

    course: ClassVar[Course] = Course.PLAIN
    course_seed: ClassVar[int] = 0
    shrunk: frozenset[str] = frozenset()

    def __init__(self, policy: Policy | None = None, *, seed: int | None = None) -> None:
        self.policy = policy or Policy()
        self.machine = Machine(self.policy)
        self.standby = Standby(Machine(self.policy)) if self.course is Course.STANDBYS else None
        self._fate = Random(self.course_seed)
        self._leaderless_s = 0.0
        self._batches_left = self._fate.randint(1, FIRST_BATCHES)
        if self.course is Course.DISORDER and seed is None:
            seed = self.course_seed
        self.now = START
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.groups: dict[GroupKey, Group] = {}
        self.foreign: dict[tuple[str, GroupKey], ForeignGroup] = {}
        self.hidden: dict[str, ForeignGroupsHidden] = {}
        self.namespaces: dict[str, NamespaceSeen] = {}
        self.budgets: dict[str, DisruptionBudget] = {}
        self.budgets_hidden = ""
        self.storage: dict[StorageKind, dict[StorageKey, StorageObject]] = {kind: {} for kind in StorageKind}
        self.demands: dict[DemandKey, SeenDemand] | None = None
        self.refuse_demand: Callable[[PutDemand | DropDemand], bool] = lambda _: False
        self.refuse_phase: Callable[[PutPhase | PutCondition], bool] = lambda _: False
        self.emitted: list[EmitEvent] = []
        self.emitted_on_pods: list[EmitEvent] = []
        self.effects: list[Effect] = []
        self.bound_log: list[tuple[str, str]] = []
        self.refuse_bind: Callable[[BindPod], BindRefused | None] = lambda _: None
        self.refuse_status: Callable[[PatchStatus], StatusWritten | StatusRefused | None] = lambda _: None
        self.devices: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = {kind: {} for kind in DeviceKind}
        self.classes: dict[str, PriorityClass] = {}
        self.disks = Disks(self)
        self.gadgets = Gadgets(self)
        self.refuse_prebinding: Callable[[Prebind], PrebindRefused | None] = lambda _: None
        self.lose_prebinding: Callable[[Prebind], bool] = lambda _: False
        self.lose_unanswered: Callable[[UndoPrebinding | PatchPodCondition], bool] = lambda _: False
        self.lose_answer: Callable[[BindPod], bool] = lambda _: False
        self.withhold: Callable[[BindPod], bool] = lambda _: False
        self.refuse_making: Callable[[MakeGroup], GroupNotMade | None] = lambda _: None
        self.refuse_eviction: Callable[[EvictPod], EvictionRefused | None] = lambda _: None
        self.eviction_takes_s: Callable[[EvictPod], float] = lambda _: 0.0
        self.eviction_is_shown_after_s: Callable[[EvictPod], float] = lambda _: 0.0
        self.jobs: dict[str, OwnerSeen | None] = {}
        self.evicted: list[str] = []
        self._withheld: dict[str, BindPod] = {}
        self.history: History = []
        self.inbox: list[Event] = [Synced()]
        self._random = Random(seed) if seed is not None else None
        self._unchecked = False
        self.in_order = seed is None
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._version = self._planned = 0

    @classmethod
    def of(cls, *things: Thing) -> Self:
        """A harness to which these objects have been added."""
        harness = cls()
        harness.add(*things)
        return harness

    @classmethod
    def settled(cls, *things: Thing) -> Self:
        """A harness at rest after these objects have been added."""
        harness = cls()
        harness.settle(*things)
        return harness

    @classmethod
    def waited(cls, seconds: float, *things: Thing) -> Self:
        """A harness that has let so many seconds pass since these objects were added."""
        harness = cls()
        harness.wait(seconds, *things)
        return harness

    # What users and other controllers do

    def add(self, *things: Thing) -> None:
        """Create or replace objects; their watch events arrive with the next step."""
        for thing in things:
            match thing:
                case Pod():
                    self.pods[thing.uid] = thing
                    self.report(PodSeen(thing))
                case Node():
                    self.nodes[thing.name] = thing
                    self.report(NodeSeen(thing))
                case ForeignGroup():
                    self.foreign[thing.dialect, thing.key] = thing
                    self.report(ForeignGroupSeen(thing))
                case Group():
                    self._version += 1
                    self.groups[thing.key] = replace(thing, resource_version=str(self._version))
                    self.report(GroupSeen(self.groups[thing.key]))
                case DisruptionBudget():
                    self.put_budget(thing)
                case ResourceSlice() | DeviceClass() | ResourceClaim() | DeviceTaintRule():
                    devices = DeviceKind(type(thing).__name__)
                    self.devices[devices][thing.key] = thing
                    self.report(DeviceObjectSeen(devices, thing))
                case _:
                    kind = KINDS[type(thing)]
                    self.storage[kind][thing.key] = thing
                    self.report(StorageSeen(kind, thing))

    def change(self, name: str, **fields: object) -> None:
        """Change a pod, by namespace/name; a pod that gets a node is bound at the current time."""
        pod = self.pod(name)
        if fields.get("node") and not pod.node:
            fields = {"bound_at": self.server_time, **fields}
        self.add(replace(pod, **fields))

    def change_spec(self, name: str, **fields: object) -> None:
        """Change a PodGroup's spec, by namespace/name."""
        group = self.group(name)
        assert group.spec is not None
        self.add(replace(group, generation=group.generation + 1, spec=replace(group.spec, **fields)))

    def retract(self, *found: DeviceObject) -> None:
        """Delete ResourceSlices, DeviceClasses and ResourceClaims."""
        for each in found:
            kind = DeviceKind(type(each).__name__)
            del self.devices[kind][each.key]
            self.report(DeviceObjectGone(kind, each.key))

    def withdraw(self, *found: StorageObject) -> None:
        """Delete claims, volumes, storage classes and CSINodes."""
        for each in found:
            del self.storage[KINDS[type(each)]][each.key]
            self.report(StorageGone(KINDS[type(each)], each.key))

    def delete(self, *names: str) -> None:
        """Delete pods, by namespace/name."""
        for name in names:
            pod = self.pod(name)
            del self.pods[pod.uid]
            self.report(PodGone(pod.uid))

    def delete_node(self, name: str) -> None:
        del self.nodes[name]
        self.report(NodeGone(name))

    def delete_group(self, name: str) -> None:
        key = self.group(name).key
        del self.groups[key]
        self.report(GroupGone(key))

    def delete_foreign(self, dialect: str, name: str) -> None:
        key = GroupKey(*name.split("/"))
        del self.foreign[dialect, key]
        self.report(ForeignGroupGone(dialect, key))

    def hide(self, dialect: str, why: str, *, denied: bool = False) -> None:
        """Make listing the dialect's objects fail from now on."""
        self.hidden[dialect] = ForeignGroupsHidden(dialect, why, denied)
        self.report(self.hidden[dialect])

    def show(self, dialect: str) -> None:
        """Let the dialect's objects be listed again."""
        self.hidden.pop(dialect, None)
        self.report(self._all_of(dialect))

    def _all_of(self, dialect: str) -> ForeignGroupsReplaced:
        return ForeignGroupsReplaced(dialect, tuple(g for g in self.foreign.values() if g.dialect == dialect))

    def label_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Create a namespace, or replace its labels by these."""
        self.namespaces[name] = NamespaceSeen(name, tuple(sorted(labels.items())))
        self.report(self.namespaces[name])

    def terminate_namespace(self, name: str) -> None:
        """Delete a namespace, which stays while objects are left in it."""
        self.namespaces[name] = NamespaceSeen(name, (), terminating=True)
        self.report(self.namespaces[name])

    def put_budget(self, found: DisruptionBudget) -> None:
        """Create or replace a PodDisruptionBudget; evictions alone change what it allows."""
        self.budgets[found.key] = found
        self.report(BudgetSeen(found))

    def put_class(self, name: str, value: int, *, preempts: bool = True) -> None:
        """Create or replace a PriorityClass."""
        self.classes[name] = PriorityClass(value, preempts=preempts)
        self.report(PriorityClassSeen(name, self.classes[name]))

    def remove_budget(self, key: str) -> None:
        """Delete a PodDisruptionBudget, by namespace/name."""
        del self.budgets[key]
        self.report(BudgetGone(key))

    def hide_budgets(self, why: str) -> None:
        """Make listing PodDisruptionBudgets fail from now on."""
        self.budgets_hidden = why
        self.report(BudgetsHidden(why))

    def show_budgets(self) -> None:
        """Let PodDisruptionBudgets be listed again."""
        self.budgets_hidden = ""
        self.report(self._all_budgets())

    def _all_budgets(self) -> BudgetsHidden | BudgetsReplaced:
        why = self.budgets_hidden
        return BudgetsHidden(why) if why else BudgetsReplaced(tuple(self.budgets.values()))

    def serve_demands(self) -> None:
        """Have the API server serve Demand objects from now on."""
        self.demands = {}
        self.report(DemandsReplaced(()))

    def add_demand(self, demand: DemandObject, uid: str = "") -> None:
        """Add a Demand object of ours, regardless of who made it."""
        assert self.demands is not None
        self._planned += 1
        self.demands[demand.key] = SeenDemand(uid or f"uid-demand-{self._planned}", demand)
        self.report(DemandSeen(self.demands[demand.key]))

    def delete_demand(self, name: str) -> None:
        assert self.demands is not None
        key = DemandKey(*name.split("/"))
        del self.demands[key]
        self.report(DemandGone(key))

    def run_pods(self, phase: PodPhase = PodPhase.RUNNING, *, prefix: str = "") -> None:
        """Move bound pods to the phase, as a kubelet would."""
        for pod in list(self.pods.values()):
            if pod.node and not pod.terminal and f"{pod.namespace}/{pod.name}".startswith(prefix):
                self.add(replace(pod, phase=phase))

    def report(self, event: Event) -> None:
        """Queue an event of a watch."""
        self.inbox.append(event)
        if self.standby is not None:
            self.standby.lag.append(event)

    # Time

    @property
    def server_time(self) -> float:
        """The current time as the API server writes it: in whole seconds."""
        return float(int(self.now))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run the action once this many seconds have passed."""
        self._planned += 1
        heappush(self._later, (self.now + seconds, self._planned, action))

    def settle(self, *things: Thing, rounds: int = 50) -> None:
        """Add these, then step until nothing more happens at the current time."""
        self.add(*things)
        self._settle(rounds=rounds)
        self.check_accounts()

    def step(self) -> list[Effect]:
        """Give the machine the events that have arrived and carry out its effects."""
        effects = self._step()
        self.check_accounts()
        return effects

    def _settle(self, *, rounds: int = 50) -> None:
        if self._random is not None:
            rounds *= 20
        for _ in range(rounds):
            deadline = self.machine.next_deadline()
            if not self._arrived() and (deadline is None or deadline > self.now):
                return
            self._step()
        raise AssertionError(f"no rest after {rounds} rounds")

    def _step(self) -> list[Effect]:
        arrived = self._arrived()
        events = arrived or [TimePassed()]
        rest = self.inbox[len(arrived) :]
        self.inbox = []
        if self._random is not None:
            events = self._some_of(events, self._random)
        self.inbox += rest
        effects = self._hand_over(events)
        if any(not isinstance(event, Result | TimePassed) for event in events):
            self._take_course()
        return effects

    def _take_course(self) -> None:
        """Apply the course after a batch of watch events; after results alone, restarts would go on for ever."""
        self._batches_left -= 1
        match self.course:
            case Course.RESTARTS:
                self.restart()
            case Course.STANDBYS if self._fate.random() < 0.5:
                self.fail_over()
            case Course.LEADERLESS if self._batches_left == 0:
                self.pass_without_leader(LEADERLESS_S)

    def _arrived(self) -> list[Event]:
        """The first events of the inbox that may reach the machine now, in any order across objects: here all."""
        return list(self.inbox)

    def _decide(self, events: list[Event]) -> list[Effect]:
        if self.standby is not None:
            self.standby.see(self.now)
        effects = self.machine.handle(events, self.now)
        self._unchecked = True
        self.history.append((tuple(events), self.now, tuple(effects)))
        self.effects += effects
        return effects

    def _hand_over(self, events: list[Event]) -> list[Effect]:
        effects = self._decide(events)
        for effect in effects:
            self._carry_out(effect)
        wrong = miscounted(messages(effects))
        assert not wrong, wrong
        self.check_capacity()
        return effects

    def check_accounts(self) -> None:
        """Assert that the machine does not contradict itself: once for each `step`, `settle` or `wait` of a story.

        A machine that is replaced is checked before. After each step it would take a third of the time of all stories.
        """
        if self._unchecked:
            self._unchecked = False
            assert self.machine.validate() == []

    def wait(self, seconds: float, *things: Thing) -> None:
        """Add these, then let time pass, stopping at every deadline of the machine and at every planned action."""
        self.add(*things)
        end = self.now + seconds - self._leaderless_s
        self._settle()
        while (moment := self.next_moment()) <= end + self._leaderless_s:
            self.now = max(self.now, moment)
            while self._later and self._later[0][0] <= self.now:
                heappop(self._later)[2]()
            self._settle()
        self.now = max(self.now, end + self._leaderless_s)
        self._settle()
        self.check_accounts()

    def next_moment(self) -> float:
        """The next time at which something happens without further input; infinity if nothing does."""
        deadline = self.machine.next_deadline()
        planned = self._later[0][0] if self._later else float("inf")
        return min(planned, float("inf") if deadline is None else deadline)

    def restart(self) -> None:
        """Replace the machine by a new one that knows only what it lists from the API server before it acts."""
        self._replace(Machine(self.policy), [])
        self.inbox = []
        self._hand_over([*self.lists(), Synced()])

    def fail_over(self, *, lag: int = 0) -> None:
        """The leading process dies and the standby takes over before it has received the last `lag` events."""
        heir = self.standby
        assert heir is not None
        heir.see(self.now, late=lag)
        self._replace(heir.machine, heir.history)
        self.inbox = heir.lag
        self.standby = Standby(Machine(self.policy), lag=self.lists())
        self._hand_over([Synced()])

    def pass_without_leader(self, seconds: float) -> None:
        """The leading process dies; its successor lists everything after this many seconds."""
        end = self.now + seconds
        while self._later and self._later[0][0] <= end:
            self.now = max(self.now, self._later[0][0])
            heappop(self._later)[2]()
        self.now = end
        self._leaderless_s += seconds
        self.restart()

    def lead_again(self) -> None:
        """The same process loses the lease and leads again: it keeps what it has seen, not what it has decided.

        It lists the groups and reads the pods whose bindings have no result. Watches continue where they are.
        """
        told = [event for events, *_ in self.history for event in events] + self.inbox
        answered = {(event.uid, event.node) for event in told if isinstance(event, PodBound)}
        sent = [effect for *_, effects in self.history for effect in effects if isinstance(effect, BindPod)]
        found = [
            PodBound(effect.uid, effect.node)
            for effect in sent
            if (effect.uid, effect.node) not in answered
            and effect.uid in self.pods
            and self.pods[effect.uid].node == effect.node
        ]
        seen = self.machine.facts()
        self._replace(Machine(self.policy), [])
        outdated = (Result, Synced, GroupSeen, GroupGone, GroupsReplaced)
        bound = [event for event in self.inbox if isinstance(event, PodBound)]
        self.inbox = [event for event in self.inbox if not isinstance(event, outdated)]
        self._hand_over([*seen, *bound, GroupsReplaced(tuple(self.groups.values())), *found, Synced()])

    def _replace(self, machine: Machine, history: History) -> None:
        """Let this machine decide from now on. What the former one has not sent is lost."""
        self.check_accounts()
        self.machine, self.history = machine, history
        self._withheld.clear()

    def lists(self) -> list[Event]:
        """All objects, as lists return them."""
        return [
            *(StorageReplaced(kind, tuple(found.values())) for kind, found in self.storage.items()),
            *(DeviceObjectsReplaced(kind, tuple(found.values())) for kind, found in self.devices.items()),
            NodesReplaced(tuple(self.nodes.values())),
            GroupsReplaced(tuple(self.groups.values())),
            *([NamespacesReplaced(tuple(self.namespaces.values()))] if self.namespaces else []),
            *([PriorityClassesReplaced(tuple(self.classes.items()))] if self.classes else []),
            *([self._all_budgets()] if self.budgets or self.budgets_hidden else []),
            *[
                self.hidden.get(dialect) or self._all_of(dialect)
                for dialect in sorted({dialect for dialect, _ in self.foreign} | self.hidden.keys())
            ],
            PodsReplaced(tuple(self.pods.values())),
            *([] if self.demands is None else [DemandsReplaced(tuple(self.demands.values()))]),
        ]

    # What can be seen

    def pod(self, name: str) -> Pod:
        return next(pod for pod in self.pods.values() if f"{pod.namespace}/{pod.name}" == name)

    def group(self, name: str) -> Group:
        return self.groups[GroupKey(*name.split("/"))]

    def gang(self, name: str) -> Gang:
        return self.machine.gangs[GroupKey(*name.split("/"))]

    def status(self, name: str) -> GroupStatus:
        return self.group(name).status

    def condition(self, name: str, type_: str = "Scheduled") -> Condition:
        return next(condition for condition in self.status(name).conditions if condition.type == type_)

    def bound(self, prefix: str = "") -> list[str]:
        """Names of the pods that are bound and not terminal."""
        return sorted(
            f"{pod.namespace}/{pod.name}"
            for pod in self.pods.values()
            if pod.node and not pod.terminal and f"{pod.namespace}/{pod.name}".startswith(prefix)
        )

    def events(self, reason: str) -> list[EmitEvent]:
        return [event for event in self.emitted if event.reason == reason]

    def check_capacity(self) -> None:
        """Assert that no node holds more than its allocatable resources, except those that have shrunk."""
        there: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for pod in self.pods.values():
            if pod.node and not pod.terminal:
                there[pod.node]["pods"] += 1
                for resource, amount in pod.shape.requests:
                    there[pod.node][resource] += amount
        delegated = self.machine.cluster.capacity.delegated()
        for name, taken in there.items():
            if name in self.nodes and name not in self.shrunk:
                given = dict(self.nodes[name].allocatable)
                for resource, amount in taken.items():
                    if resource not in delegated:
                        assert amount <= given.get(resource, 0), f"{name} holds {amount} {resource}"

    # The API server

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case BindPod():
                if self.withhold(effect):
                    self._withheld[effect.uid] = effect
                else:
                    self._bind(effect)
            case WithdrawBinding(uid, node):
                if self._withheld.pop(uid, None) is not None:
                    self.inbox.append(BindRefused(uid, node, Refused.WITHDRAWN, "withdrawn"))
            case Prebind():
                self._prebind(effect)
            case UndoPrebinding():
                self._undo_prebinding(effect)
            case EvictPod():
                self._evict(effect)
            case LookUpOwner(uid):
                answer = self.jobs.get(uid, OwnerSeen(uid))
                self.inbox += [answer] if answer is not None else []
            case PatchStatus():
                self._patch_status(effect)
            case MakeGroup() | DeleteGroup():
                self._make_or_delete(effect)
            case PatchPodCondition(uid, _, _, reason, message, _, nominated):
                if uid in self.pods and not self.lose_unanswered(effect):
                    nominated = self.pods[uid].nominated_node if nominated is None else nominated
                    told = {"condition_reason": reason, "condition_message": message, "nominated_node": nominated}
                    self.add(replace(self.pods[uid], **told))
            case EmitEvent():
                (self.emitted_on_pods if effect.action == ACTION else self.emitted).append(effect)
            case PutDemand() | DropDemand() | PutPhase() | PutCondition():
                self._write_elsewhere(effect)

    def _prebind(self, effect: Prebind) -> None:
        refused = self.refuse_prebinding(effect)
        if refused is None and self.lose_prebinding(effect):
            return
        what = effect.prebinding
        written = refused is None and (
            self.gadgets.write(what) if isinstance(what, UseDevices) else self.disks.write(what)
        )
        if refused is None and not written:
            refused = PrebindRefused(effect.uid, effect.prebinding, "something else is written there")
        self.inbox += [refused] if refused is not None else []

    def _undo_prebinding(self, effect: UndoPrebinding) -> None:
        if self.lose_unanswered(effect):
            return
        if isinstance(effect.prebinding, UseDevices):
            self.gadgets.undo(effect.prebinding)
        else:
            self.disks.undo(effect.prebinding)

    def _bind(self, effect: BindPod) -> None:
        answer = self.refuse_bind(effect) or self._answer_bind(effect)
        if isinstance(answer, PodBound) and self.lose_answer(effect):
            answer = BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no answer")
        self.inbox.append(answer)

    def _answer_bind(self, effect: BindPod) -> PodBound | BindRefused:
        pod = self.pods.get(effect.uid)
        if pod is None or pod.terminating:
            return BindRefused(effect.uid, effect.node, Refused.GONE, "the pod is gone")
        if pod.node:
            self.check_once(effect)
            if pod.node == effect.node:
                return PodBound(effect.uid, effect.node)
            return BindRefused(effect.uid, effect.node, Refused.CONFLICT, f"bound to {pod.node}")
        assert not pod.gated
        self.bound_log.append((f"{pod.namespace}/{pod.name}", effect.node))
        self.add(replace(pod, node=effect.node, bound_at=self.server_time, condition_reason="", condition_message=""))
        return PodBound(effect.uid, effect.node)

    def take_withheld(self) -> list[BindPod]:
        """Take the withheld bindings: they are in flight from now on and cannot be withdrawn."""
        waiting = [*self._withheld.values()]
        self._withheld.clear()
        return waiting

    def send_withheld(self) -> None:
        """Send the bindings that were withheld."""
        for effect in self._withheld.values():
            self._bind(effect)
        self._withheld.clear()

    def _evict(self, effect: EvictPod) -> None:
        takes_s = self.eviction_takes_s(effect)
        if takes_s:
            self.after(takes_s, lambda: self.inbox.append(self._outcome_of(effect)))
        else:
            self.inbox.append(self._outcome_of(effect))

    def _outcome_of(self, effect: EvictPod) -> PodEvicted | EvictionRefused:
        return self.refuse_eviction(effect) or self._answer_eviction(effect)

    def _answer_eviction(self, effect: EvictPod) -> PodEvicted | EvictionRefused:
        pod = self.pods.get(effect.uid)
        if pod is not None and not pod.terminating:
            refused = self._disrupt(pod)
            if refused is not None:
                return refused
            self.evicted.append(f"{pod.namespace}/{pod.name}")
            self.add(replace(pod, terminating=True, gone_by=self.server_time + pod.lifetime.grace_s))
            if late_s := self.eviction_is_shown_after_s(effect):
                self._show_late(self.inbox.pop(), late_s)
        return PodEvicted(effect.uid)

    def _show_late(self, event: Event, seconds: float) -> None:
        """The watch shows a pod so much later, unless something else has shown it by then."""
        assert isinstance(event, PodSeen)
        self.after(seconds, lambda: self.inbox.append(event) if self.pods.get(event.pod.uid) is event.pod else None)

    def _disrupt(self, pod: Pod) -> EvictionRefused | None:
        """Count an eviction with the budget of the pod, which may forbid it."""
        found = [
            each
            for each in self.budgets.values()
            if each.namespace == pod.namespace
            and each.selector is not None
            and matches(each.selector, dict(pod.labels))
        ]
        if not pod.lifetime.ready and pod.phase is PodPhase.PENDING:
            return None
        if len(found) > 1:
            return EvictionRefused(pod.uid, Spared.FORBIDDEN, "there is more than one budget")
        for each in found:
            if not (pod.lifetime.ready or each.counts_unready):
                continue
            if each.allowed < 1:
                return EvictionRefused(pod.uid, Spared.BUDGET, "the budget forbids it")
            self.put_budget(replace(each, allowed=each.allowed - 1, disrupted=each.disrupted | {pod.name}))
            self.after(CONTROLLER_S, partial(self._forget_terminating, each.key))
        return None

    def _forget_terminating(self, budget: str) -> None:
        """The disruption controller drops pods that terminate, or are gone, from those disrupted."""
        there, found = {each.name for each in self.pods.values() if not each.terminating}, self.budgets.get(budget)
        if found is not None and not found.disrupted <= there:
            self.put_budget(replace(found, disrupted=found.disrupted & there))

    def end_terminating(self) -> None:
        """Delete the terminating pods, as a kubelet would."""
        self.delete(*(f"{pod.namespace}/{pod.name}" for pod in list(self.pods.values()) if pod.terminating))

    def check_once(self, effect: BindPod) -> None:
        """Assert that a bound pod is bound again only if the machine cannot know that it is bound."""
        name = f"{effect.namespace}/{effect.name}"
        assert self.refused_before(effect) or name not in dict(self.bound_log), f"{name} is bound twice"

    def refused_before(self, effect: BindPod) -> bool:
        """Whether a binding of this pod was reported as refused, so that sending it again is right."""
        given = (event for events, _, _ in self.history for event in events)
        return any(isinstance(event, BindRefused) and event.uid == effect.uid for event in given)

    def _make_or_delete(self, effect: MakeGroup | DeleteGroup) -> None:
        if isinstance(effect, DeleteGroup):
            there = self.groups.get(effect.key)
            if there is not None and (there.uid, there.resource_version) == (effect.uid, effect.resource_version):
                self.delete_group(str(effect.key))
            return
        refused = self.refuse_making(effect)
        if refused is not None:
            self.inbox.append(refused)
        elif effect.key not in self.groups:
            made = made_group(effect.key, effect.spec, effect.owner, scheduler=effect.scheduler)
            self._planned += 1
            group = group_from_object(made)
            assert not group.error, group.error
            self.add(replace(group, uid=f"uid-made-{self._planned}", created=self.server_time, generation=1))

    def _write_elsewhere(self, effect: PutDemand | DropDemand | PutPhase | PutCondition) -> None:
        if isinstance(effect, PutPhase):
            self._write_phase(effect)
            return
        if isinstance(effect, PutCondition):
            self._write_condition(effect)
            return
        assert self.demands is not None
        there = self.demands.get(effect.key)
        if self.refuse_demand(effect) or effect.uid != (there.uid if there is not None else ""):
            return
        if isinstance(effect, PutDemand):
            self.add_demand(effect.demand, effect.uid)
        else:
            self.delete_demand(str(effect.key))

    def _write_phase(self, effect: PutPhase) -> None:
        """Write the phase by server-side apply: refused if another field manager has written it."""
        there = next((each for each in self.foreign.values() if (each.key, each.uid) == (effect.key, effect.uid)), None)
        if there is None or not isinstance(there.phase, SeenPhase) or self.refuse_phase(effect):
            return
        if there.phase.ours or not there.phase.text:
            self.add(replace(there, phase=SeenPhase(effect.phase.value, ours=True)))

    def _write_condition(self, effect: PutCondition) -> None:
        there = self.foreign.get((NATIVE, effect.key))
        if there is not None and there.uid == effect.uid and not self.refuse_phase(effect):
            assert isinstance(there.phase, SeenCondition)
            assert there.phase.version == effect.version
            since = float(int(effect.since)) if effect.condition.scheduled else 0.0
            self.add(replace(there, phase=replace(there.phase, condition=replace(effect.condition, since=since))))

    def _patch_status(self, effect: PatchStatus) -> None:
        self.inbox.append(self.refuse_status(effect) or self._answer_status(effect))

    def _answer_status(self, effect: PatchStatus) -> StatusWritten | StatusRefused:
        key, version = effect.key, effect.resource_version
        group = self.groups.get(key)
        if group is None or group.uid != effect.uid:
            return StatusRefused(key, stale=False)
        if version and version != group.resource_version:
            return StatusRefused(key, stale=True)
        self.add(replace(group, status=status_from_object(status_to_object(effect.status)["status"])))
        return StatusWritten(key, self.groups[key].resource_version, effect.status.is_relied_on)

    def _some_of(self, events: Iterable[Event], random: Random) -> list[Event]:
        """Some of the events, reordered across objects and some repeated; the rest stay in the inbox."""
        queues: dict[object, list[Event]] = {}
        for event in events:
            queues.setdefault(_stream_of(event), []).append(event)
        later = sorted(queues, key=repr)
        random.shuffle(later)
        now = {stream: queues.pop(stream) for stream in later[: random.randint(1, len(later))]}
        self.inbox = [event for rest in queues.values() for event in rest]
        mixed = []
        streams = sorted(now, key=repr)
        while streams:
            stream = random.choice(streams)
            mixed.append(now[stream].pop(0))
            if random.random() < REPEATED:
                mixed.append(mixed[-1])
            if not now[stream]:
                streams.remove(stream)
        return mixed


def _stream_of(event: Event) -> object:  # noqa: PLR0911 - a table
    """The stream that delivers the event in order: the watch of one object, or the results of writes to it."""
    match event:
        case PodSeen(pod):
            return ("pod", pod.uid)
        case PodGone(uid):
            return ("pod", uid)
        case PodBound(uid) | BindRefused(uid):
            return ("binding", uid)
        case PrebindRefused(_, what):
            return ("prebinding", what)
        case PodEvicted(uid) | EvictionRefused(uid):
            return ("eviction", uid)
        case NodeSeen(Node(name=name)) | NodeGone(name):
            return ("node", name)
        case GroupSeen(Group(key=key)) | GroupGone(key):
            return ("group", key)
        case StorageSeen() | StorageGone():
            return (event.kind, event.storage_object.key if isinstance(event, StorageSeen) else event.key)
        case BudgetSeen() | BudgetGone():
            return ("budget", event.budget.key if isinstance(event, BudgetSeen) else event.key)
        case DemandSeen(SeenDemand(demand=DemandObject(key=name))) | DemandGone(name):
            return ("demand", name)
        case StatusWritten(key) | StatusRefused(key):
            return ("status", key)
        case _:
            return "rest"
