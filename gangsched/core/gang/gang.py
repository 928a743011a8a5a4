"""One gang as the machine keeps it: its declaration, its pods, its bindings and the record of its run.

Only the machine and the modules it calls change a `Gang`. Everything that can be derived from the pods is derived
(`Census`), never stored, so that a lost event cannot leave it wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from gangsched.core.declarations.ownership import UNDISPUTED, Ownership, ownership_of
from gangsched.core.declarations.waves import Wave
from gangsched.core.declarations.workloads import Idle
from gangsched.core.gang.attempt import Attempt
from gangsched.core.gang.roster import Durability, Roster
from gangsched.core.gang.told import Told
from gangsched.core.gang.writes import Barred, Binding, BindState, Undo
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, member_order, role_of
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import OwnerGuard
from gangsched.core.objects.record import NO_RECORD, Record

# Named once, because they are looked at for each member of gangs of thousands.
_WELL, _BADLY, _BOUND = PodPhase.SUCCEEDED, PodPhase.FAILED, BindState.BOUND


@dataclass(slots=True)
class Gang:
    """A group of pods that are bound together: declared by a PodGroup, by annotations, or one plain pod.

    `record` is what outlives a restart, `roster` says which members belong to which run and quorum, `durability` which
    reservations are written to the status, `attempt` how the last attempt to place the gang ended.
    `partial_since` is when a part of the quorum was first bound and the rest was not (contract rule 1), 0.0 if none is.
    `look_at`: the gang is large and is not reconciled again before this time.
    `ownership` says which owners claim the gang. `doubted` are members (by UID) whose binding was refused for good
    wherever it was tried, while others were bound: theirs is sent first. `vacancies` counts the placeholders that the
    gang ever had: most gangs have none. `mismatched` are members (by UID) that do not fit the reservations of their
    role. `made_at` is when the API server was last asked to create a PodGroup, 0.0 if it was not.
    Of the workload in the record, `wave` is what it still owes if its pods come in waves, and `idle` says why it wants
    none, None if it does. `all_anew`: when a member is lost it makes all of them anew.
    `comes_back`: all were lost and have been made again, and the quorum is planned before others
    (`core.gang.restarts`).
    `outside` says why the gang is not tried, if too many of its namespace wait before it (`core.queueing.admission`).
    """

    key: GroupKey
    group: Group | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    strangers: dict[str, Pod] = field(default_factory=dict)
    record: Record = NO_RECORD
    roster: Roster = field(default_factory=Roster)
    bindings: dict[str, Binding] = field(default_factory=dict)
    partial_since: float = 0.0
    undo: Undo | None = None
    ownership: Ownership = UNDISPUTED
    doubted: set[str] = field(default_factory=set)
    attempt: Attempt = field(default_factory=Attempt)
    durability: Durability = field(default_factory=Durability)
    resource_version: str = ""
    short_since: float = 0.0
    barred: dict[str, Barred] = field(default_factory=dict)
    complete_since: float = 0.0
    contradicted: bool = False
    ask: tuple[object, ...] = ()
    reason: str = ""
    reason_since: float = 0.0
    look_at: float = 0.0
    vacancies: int = 0
    mismatched: set[str] = field(default_factory=set)
    made_at: float = 0.0
    wave: Wave | None = None
    idle: Idle | None = None
    all_anew: bool = False
    comes_back: bool = False
    outside: str = ""
    tell_at: float = float("inf")
    told: Told = field(default_factory=Told)

    def declare(self, group: Group | None) -> None:
        """This PodGroup declares the gang from now on; None: none does."""
        self.group = group
        self.resource_version = group.resource_version if group is not None else self.resource_version

    def add(self, pod: Pod, *, stranger: bool = False) -> None:
        """The pod is a member, or, as a `stranger`, only names the gang."""
        ours, others = (self.strangers, self.pods) if stranger else (self.pods, self.strangers)
        ours[pod.uid] = pod
        others.pop(pod.uid, None)

    def remove(self, uid: str) -> None:
        """The pod is neither a member nor a stranger any more."""
        self.pods.pop(uid, None)
        self.strangers.pop(uid, None)

    def note_return(self, *, comes_back: bool) -> None:
        """Whether the quorum is to be planned before others, because its members were lost and made again."""
        self.comes_back = comes_back

    def note_shortness(self, since: float) -> None:
        """A scheduled gang has been below its minimum since then; 0.0: it is not."""
        self.short_since = since

    def now_at(self, resource_version: str) -> None:
        """The PodGroup has this version now."""
        self.resource_version = resource_version

    def look_at_once(self, not_before: float = 0.0) -> None:
        """The gang may be reconciled at once, or from this time on."""
        self.look_at = not_before

    def heed_owners(self, guard: OwnerGuard) -> list[Pod]:
        """Note which owners claim the gang, and under Refuse which waiting members do not count. Returns `live`."""
        if self.ownership.disowned and self.record.run_start and not self.record.ended and self.deserted():
            # Its owner's last member has gone: members that were refused until now begin another run.
            self.roster.note_emptied()
        self.ownership = UNDISPUTED
        members = self.live()
        if guard is OwnerGuard.OFF or self.plain:
            return members
        refuses = guard is OwnerGuard.REFUSE
        self.ownership = ownership_of(members, self.pods, self.bindings, refuses=refuses)
        return self.live() if self.ownership.disowned else members

    @property
    def plain(self) -> bool:
        """Whether this is a pod without a group, placed as a group of one."""
        return bool(self.key.pod_uid)

    def live(self) -> list[Pod]:
        """The members that count for this run.

        They have not ended, are neither terminating nor gated nor of an earlier run, and their owner may use the name.
        """
        roster, disowned = self.roster, self.ownership.disowned
        gone = roster.past | roster.leaving | disowned if roster.leaving or disowned else roster.past
        return [
            pod
            for pod in self.pods.values()
            if not (pod.terminating or pod.gated or pod.phase is _WELL or pod.phase is _BADLY or pod.uid in gone)
        ]

    def lives(self, pod: Pod) -> bool:
        """Whether this pod of the gang is among `live`."""
        gone = pod.uid in self.roster.past or pod.uid in self.roster.leaving or pod.uid in self.ownership.disowned
        return not (pod.terminating or pod.gated or pod.terminal or gone)

    def may_try(self, pod: Pod) -> bool:
        """Whether the member's binding may be tried: the server has not refused it lately."""
        return pod.uid not in self.barred or not self.barred[pod.uid].until

    def lingering(self) -> int:
        """How many pods are no members any more, because they terminate, and still have their places."""
        return sum(pod.terminating and bool(pod.node) and not pod.terminal for pod in self.pods.values())

    def deserted(self) -> bool:
        """Whether no member is alive."""
        return not any(map(self.lives, self.pods.values()))

    def begun(self) -> set[str]:
        """The members, by UID, with which a quorum was begun."""
        roster = self.roster
        return roster.inherited | roster.chosen if self.record.quorum is not None else roster.inherited

    def flies(self) -> bool:
        """Whether there are bindings that the server has not confirmed yet."""
        return any(binding.state is not _BOUND for binding in self.bindings.values())

    def flying(self) -> list[Binding]:
        """Bindings that the server has not confirmed yet."""
        return [binding for binding in self.bindings.values() if binding.state is not _BOUND]

    def vacant(self) -> list[Binding]:
        """The placeholders: reservations for members that do not exist yet."""
        return [binding for binding in self.bindings.values() if binding.vacant] if self.vacancies else []


def forget_what_was_told(gang: Gang) -> None:
    """Forget what was written about the PodGroup, which came or went; pod conditions and Events stay known."""
    gang.told = Told(members=gang.told.members, strangers=gang.told.strangers)


class Census(Struct, frozen=True, kw_only=True):
    """A gang's members: `bound` to a node, `waiting` for one in the order of trying; the others are being bound.

    `done_roles` counts by role those that have succeeded in this run, if they count toward the minimum.
    """

    live: Sequence[Pod]
    bound: Sequence[Pod]
    waiting: Sequence[Pod]
    running: int
    bound_roles: Counter[str]
    done_roles: Counter[str]

    @property
    def done(self) -> int:
        """How many members have succeeded in this run and count toward the minimum."""
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
        done_roles=Counter(dict(gang.record.succeeded) if gang.wave is None else {}),
    )
