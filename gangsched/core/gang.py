"""One gang as the machine keeps it: its declaration, its pods, its bindings and what must be remembered of its run.

Only the machine and the modules it calls change a `Gang`. Everything that can be derived from the pods is derived
(`Census`), never stored, so that a lost event cannot leave it wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gangsched.core.events import EvictionRefused, OwnerSeen
from gangsched.core.model import Group, GroupKey, GroupStatus, Pod, PodPhase
from gangsched.core.reasons import Reason
from gangsched.core.refusal import Refusal
from gangsched.core.states import Phase

ENDED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class BindState(StrEnum):
    """How far a member's binding has come."""

    HELD = "Held"
    """The place is reserved; nothing has been sent, or the last try failed and another is due."""
    SENT = "Sent"
    """A binding is with the API server."""
    BOUND = "Bound"
    """The server has confirmed; the watch has not shown it yet."""


# Named once, because they are looked at for each member of gangs of thousands.
_WELL, _BADLY, _BOUND = PodPhase.SUCCEEDED, PodPhase.FAILED, BindState.BOUND


@dataclass(slots=True)
class Binding:
    """A member's way to its node. `retry_at` is when a held place may be tried (again), `tries` how often it was.

    `withdrawn`: it was asked not to be sent; the answer is still to come. `vacant`: the member does not exist yet,
    `pod` stands for it (it has no name) and the place is only ever held; see `core.places`.
    """

    pod: Pod
    node: str
    state: BindState = BindState.HELD
    tries: int = 0
    retry_at: float = 0.0
    complaint: str = ""
    withdrawn: bool = False
    vacant: bool = False


@dataclass(slots=True)
class Eviction:
    """A member's way off its node. `asked`: the server has been asked and has not answered."""

    asked: bool = False
    tries: int = 0
    retry_at: float = 0.0
    refusal: EvictionRefused | None = None


@dataclass(slots=True)
class Undo:
    """Members are being evicted so that the gang starts over whole; `core.undo` explains and does it.

    `restart` names the members that onDegraded Restart evicts, None for an undo, which evicts whoever is bound.
    `evictions` and `spared` (why a member is left where it is) are by UID. `owners` is what is known of their Jobs,
    `asked` when it was asked for, all of which is forgotten at `review_at` and
    found out anew. `note` says what has happened, for a person. `retried`: places were found for the
    rest after all, and nothing more is evicted unless they fail too.
    """

    since: float
    note: str
    restart: frozenset[str] | None = None
    evictions: dict[str, Eviction] = field(default_factory=dict)
    spared: dict[str, str] = field(default_factory=dict)
    owners: dict[str, OwnerSeen] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    review_at: float = float("inf")
    retried: bool = False


@dataclass(slots=True)
class Transaction:
    """A quorum on its way: the minimum and each role's with which it was decided, and its pods by UID."""

    minimum: int
    role_minima: dict[str, int] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Barred:
    """A member of a scheduled gang whose binding the server refuses: not tried before `until` (0.0: may be)."""

    until: float
    message: str
    times: int


@dataclass(slots=True)
class Capped:
    """A cap keeps places for members to come from being held: which, and why, for a person; see `core.caps`.

    Nothing is held before `until` (0.0: there is no back-off). `paused_at` is since when the clock stands, having run
    for `ran_s` seconds; 0.0 if it was not running.
    """

    reason: Reason
    note: str
    until: float = 0.0
    paused_at: float = 0.0
    ran_s: float = 0.0


@dataclass(slots=True)
class Run:
    """What must be remembered of one run beside the cluster itself. Times are 0.0 where unset.

    `minimum` and `role_minima` are those last satisfied; `timeouts` counts this run's time-outs and
    undone bindings, `level` is the back-off's exponent, which a change of the spec resets; `succeeded` has each
    success' role by UID; `past` are pods that belong to earlier runs. `vacated`: the time of places that were
    held for members to come is over, and none is held again before the gang is whole. `late`: so it was before the gang
    was ever whole, as far as is known; it counts as scheduled with what was bound. `led`: the member whose success is
    the gang's succeeded. `held_since` is when the first of the places was held that nobody has taken. `capped`: a cap
    has released places or keeps them from being held; `caps` counts those released for the time that they were held.
    """

    began: bool = False
    scheduled_at: float = 0.0
    clock_start: float = 0.0
    backoff_until: float = 0.0
    minimum: int = 0
    role_minima: dict[str, int] = field(default_factory=dict)
    timeouts: int = 0
    level: int = 0
    failed_for_good: bool = False
    ended: bool = False
    ended_well: bool = False
    succeeded: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    past: set[str] = field(default_factory=set)
    vacated: bool = False
    late: bool = False
    led: bool = False
    held_since: float = 0.0
    capped: Capped | None = None
    caps: int = 0


@dataclass(slots=True)
class Told:
    """What people were told last, so that nothing is said twice.

    `unwritten`: the last status was not accepted and is owed again at `retry_at`. `awaited` are the pods
    in a reservation whose writing has not been answered; nothing else is told until then. `message_at` says when a
    message was last written, `basis` what the messages were made of; `behind`: one of them has changed only
    in numbers and is not written yet. `hindered` is the reason of the last Event about members that are kept from a
    scheduled group, `claims` are the owners that one has named. `members` are the reasons on members' conditions, each
    with the time at which it was written. `version` is the PodGroup's that was known when `status` was decided.
    """

    status: GroupStatus | None = None
    version: str = ""
    unwritten: bool = False
    awaited: frozenset[str] | None = None
    retry_at: float = 0.0
    message_at: float = float("-inf")
    basis: tuple[object, ...] = ()
    behind: bool = False
    event: str = ""
    hindered: str = ""
    claims: frozenset[str] = frozenset()
    members: dict[str, tuple[str, float]] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Gang:
    """A group of pods that are bound together: declared by a PodGroup, by annotations, or one plain pod.

    `inherited` are members (by UID) bound by a former leader, by a rival or after we had given them up, so that a
    quorum may have been begun with them. `leaving` are members whose eviction was accepted.
    `emptied`: since the gang was last brought up to date, its last live member went and then another came.
    `partial_since` is when a part of the quorum was first bound and the rest not (contract rule 1), 0.0 if none is.
    `undone` is what happened to the last quorum that was undone, until another one is decided.
    `look_at`: before this it is not brought up to date again, being large.
    `claims` are the owners that claim it, if they are several, each with the number of its members; `disowned` are
    waiting members (by UID) that it does without because their owner is not the first (`core.claims`).
    `doubted` are members (by UID) whose binding was refused for good wherever it was tried, while others were bound:
    theirs is sent first. `vanguard` are members (by UID) that go one by one before the others of the quorum under way.
    `replanned` is how often all its bindings were refused and it was planned anew at once;
    `exhausted`: there was no other node left for that.
    `vacancies` counts the places that were ever held for members to come: most gangs have none. `mismatched` are
    members (by UID) that do not fit the places of their role. `held_up_by` is the gang whose turn it is before this
    one's. `made_at` is when the API server was last asked to make a PodGroup, 0.0 if it was not; `unmade`: it would
    not, and the gang goes on without. `outside` says why it is not tried, if too many of its namespace
    wait before it (`core.entrance`).
    """

    key: GroupKey
    group: Group | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    strangers: dict[str, Pod] = field(default_factory=dict)
    phase: Phase = Phase.PENDING
    run: Run = field(default_factory=Run)
    bindings: dict[str, Binding] = field(default_factory=dict)
    transaction: Transaction | None = None
    inherited: set[str] = field(default_factory=set)
    partial_since: float = 0.0
    undo: Undo | None = None
    undone: str = ""
    leaving: set[str] = field(default_factory=set)
    emptied: bool = False
    claims: Mapping[str, int] = field(default_factory=dict)
    disowned: frozenset[str] = frozenset()
    doubted: set[str] = field(default_factory=set)
    vanguard: Sequence[str] = ()
    replanned: int = 0
    exhausted: bool = False
    durable: frozenset[str] = frozenset()
    durable_asked_at: float = 0.0
    resource_version: str = ""
    short_since: float = 0.0
    parked: bool = False
    refusal: Refusal | None = None
    refused_members: dict[str, Refusal] = field(default_factory=dict)
    barred: dict[str, Barred] = field(default_factory=dict)
    complete_since: float = 0.0
    complaint: str = ""
    contradicted: bool = False
    ask: tuple[object, ...] = ()
    reason: str = ""
    reason_since: float = 0.0
    look_at: float = 0.0
    vacancies: int = 0
    mismatched: set[str] = field(default_factory=set)
    made_at: float = 0.0
    unmade: bool = False
    outside: str = ""
    held_up_by: GroupKey | None = None
    tell_at: float = float("inf")
    told: Told = field(default_factory=Told)

    @property
    def plain(self) -> bool:
        """Whether this is a pod without a group, placed as a group of one."""
        return bool(self.key.pod_uid)

    def live(self) -> list[Pod]:
        """The members that exist for this run's purpose: not ended, not terminating, not gated, not of the past.

        Nor are those whose owner may not have the group's name.
        """
        gone = self.run.past | self.leaving | self.disowned if self.leaving or self.disowned else self.run.past
        return [
            pod
            for pod in self.pods.values()
            if not (pod.terminating or pod.gated or pod.phase is _WELL or pod.phase is _BADLY or pod.uid in gone)
        ]

    def lives(self, pod: Pod) -> bool:
        """Whether this pod of the gang is among `live`."""
        gone = pod.uid in self.run.past or pod.uid in self.leaving or pod.uid in self.disowned
        return not (pod.terminating or pod.gated or pod.phase in ENDED or gone)

    def may_try(self, pod: Pod) -> bool:
        """Whether the member's binding may be tried: the server has not refused it lately."""
        return pod.uid not in self.barred or not self.barred[pod.uid].until

    def deserted(self) -> bool:
        """Whether nobody of the gang is alive."""
        return not any(map(self.lives, self.pods.values()))

    def begun(self) -> set[str]:
        """The members, by UID, with which a quorum was begun."""
        return self.inherited | self.transaction.pods if self.transaction is not None else self.inherited

    def flies(self) -> bool:
        """Whether there are bindings that are not confirmed by the server yet."""
        return any(binding.state is not _BOUND for binding in self.bindings.values())

    def flying(self) -> list[Binding]:
        """Bindings that are not confirmed by the server yet."""
        return [binding for binding in self.bindings.values() if binding.state is not _BOUND]

    def vacant(self) -> list[Binding]:
        """Places held for members that do not exist yet."""
        return [binding for binding in self.bindings.values() if binding.vacant] if self.vacancies else []


def forget_what_was_told(gang: Gang) -> None:
    """A PodGroup that came or went is told of anew; what pods were told stays told."""
    gang.told = Told(members=gang.told.members, strangers=gang.told.strangers)


def role_of(pod: Pod) -> str:
    """The role that the pod names, empty without one."""
    return pod.declaration.role if pod.declaration else ""


def member_order(pod: Pod) -> tuple[float, str]:
    """The order in which members are tried: created, name (contract rule 8; bound ones are not tried)."""
    return (pod.created, pod.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """A gang's members counted: `bound` on a node, `waiting` for one in the order of trying, the rest on their way."""

    live: Sequence[Pod]
    bound: Sequence[Pod]
    waiting: Sequence[Pod]
    running: int
    bound_roles: Counter[str]
    done_roles: Counter[str]

    @property
    def done(self) -> int:
        """Members that succeeded in this run."""
        return self.done_roles.total()


def take_census(gang: Gang) -> Census:
    """Count the gang's members by what the pods say and what the server has confirmed."""
    live = gang.live()
    bound = []
    waiting = []
    for pod in live:
        binding = gang.bindings.get(pod.uid)
        if pod.node or (binding is not None and binding.state is _BOUND):
            bound.append(pod)
        elif binding is None:
            waiting.append(pod)
    waiting.sort(key=member_order)
    return Census(
        live=live,
        bound=bound,
        waiting=waiting,
        running=sum(pod.phase is PodPhase.RUNNING for pod in bound),
        bound_roles=Counter(map(role_of, bound)),
        done_roles=Counter(gang.run.succeeded.values()),
    )
