"""One gang as the machine keeps it: its declaration, its pods, its bindings and what must be remembered of its run.

Only the machine and the modules it calls change a `Gang`. Everything that can be derived from the pods is derived
(`Census`), never stored, so that a lost event cannot leave it wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from gangsched.core.gang.attempt import Attempt
from gangsched.core.gang.durability import Durability
from gangsched.core.gang.roster import Roster
from gangsched.core.gang.told import Told
from gangsched.core.gang.writes import Barred, Binding, BindState, Undo
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.record import NO_RECORD, Minima, Record
from gangsched.core.objects.status import GroupStatus

ENDED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


# Named once, because they are looked at for each member of gangs of thousands.
_WELL, _BADLY, _BOUND = PodPhase.SUCCEEDED, PodPhase.FAILED, BindState.BOUND


@dataclass(slots=True)
class Gang:
    """A group of pods that are bound together: declared by a PodGroup, by annotations, or one plain pod.

    `record` is what is remembered of it, `roster` which members belong to which run and quorum, `durability` which
    places are written down.
    `partial_since` is when a part of the quorum was first bound and the rest not (contract rule 1), 0.0 if none is.
    `look_at`: before this it is not brought up to date again, being large.
    `claims` are the owners that claim it, if they are several, each with the number of its members; `disowned` are
    waiting members (by UID) that it does without because their owner is not the first (`core.gang.ownership`).
    `doubted` are members (by UID) whose binding was refused for good wherever it was tried, while others were bound:
    theirs is sent first. `attempt` is what the last try to place it has come to.
    `vacancies` counts the places that were ever held for members to come: most gangs have none. `mismatched` are
    members (by UID) that do not fit the places of their role. `made_at` is when the API server was last asked to make a
    PodGroup, 0.0 if it was not; `unmade`: it would not, and the gang goes on without. `outside` says why it is not
    tried, if too many of its namespace wait before it (`core.queueing.admission`).
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
    claims: Mapping[str, int] = field(default_factory=dict)
    disowned: frozenset[str] = frozenset()
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
    outside: str = ""
    tell_at: float = float("inf")
    told: Told = field(default_factory=Told)

    def note(self, **changes: object) -> None:
        """Remember these fields of the record from now on."""
        if any(getattr(self.record, name) != value for name, value in changes.items()):
            self.record = replace(self.record, **changes)

    def declare(self, group: Group | None) -> None:
        """This PodGroup declares the gang now; None: none does."""
        self.group = group
        self.resource_version = group.resource_version if group is not None else self.resource_version

    def add(self, pod: Pod, *, stranger: bool = False) -> None:
        """The pod belongs to the gang, or, a `stranger`, only names it."""
        ours, others = (self.strangers, self.pods) if stranger else (self.pods, self.strangers)
        ours[pod.uid] = pod
        others.pop(pod.uid, None)

    def remove(self, uid: str) -> None:
        """The pod belongs to the gang no more."""
        self.pods.pop(uid, None)
        self.strangers.pop(uid, None)

    def recall(self, record: Record) -> None:
        """Go on with what a former leader remembered."""
        self.record = record

    def note_shortness(self, since: float) -> None:
        """A scheduled gang has less than it was scheduled with since then; 0.0: it has not."""
        self.short_since = since

    def now_at(self, resource_version: str) -> None:
        """The PodGroup has this version now."""
        self.resource_version = resource_version

    def look_at_once(self, not_before: float = 0.0) -> None:
        """The gang may be brought up to date at once, or from this time on."""
        self.look_at = not_before

    def begin_quorum(self, needed: Minima) -> None:
        """A quorum is under way that needs so many; nobody belongs to it yet."""
        self.note(quorum=needed, quorum_done=())
        self.roster.choose((), anew=True)

    def drop_quorum(self) -> None:
        """No quorum is under way any more, and who has succeeded in the last one counts for no other."""
        self.note(quorum=None, quorum_done=())

    def begin_run(self, past: Iterable[str]) -> None:
        """Remember nothing of the last run but its members and what was undone in it."""
        self.record = Record(phase=self.record.phase, undone=self.record.undone)
        self.roster.begin_run(past)
        self.told.another_run()

    @property
    def plain(self) -> bool:
        """Whether this is a pod without a group, placed as a group of one."""
        return bool(self.key.pod_uid)

    def live(self) -> list[Pod]:
        """The members that exist for this run's purpose: not ended, not terminating, not gated, not of the past.

        Nor are those whose owner may not have the group's name.
        """
        roster = self.roster
        gone = roster.past | roster.leaving | self.disowned if roster.leaving or self.disowned else roster.past
        return [
            pod
            for pod in self.pods.values()
            if not (pod.terminating or pod.gated or pod.phase is _WELL or pod.phase is _BADLY or pod.uid in gone)
        ]

    def lives(self, pod: Pod) -> bool:
        """Whether this pod of the gang is among `live`."""
        gone = pod.uid in self.roster.past or pod.uid in self.roster.leaving or pod.uid in self.disowned
        return not (pod.terminating or pod.gated or pod.phase in ENDED or gone)

    def may_try(self, pod: Pod) -> bool:
        """Whether the member's binding may be tried: the server has not refused it lately."""
        return pod.uid not in self.barred or not self.barred[pod.uid].until

    def deserted(self) -> bool:
        """Whether nobody of the gang is alive."""
        return not any(map(self.lives, self.pods.values()))

    def begun(self) -> set[str]:
        """The members, by UID, with which a quorum was begun."""
        roster = self.roster
        return roster.inherited | roster.chosen if self.record.quorum is not None else roster.inherited

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


def tell_again(gang: Gang, status: GroupStatus | None) -> None:
    """This status is owed again; what pods were told stays told."""
    gang.told = Told(status=status, members=gang.told.members, strangers=gang.told.strangers, unwritten=True)


def forget_run(gang: Gang) -> None:
    """End the gang's run without an outcome, but not a quorum that is under way.

    Its back-off is over with it, and nothing else would wake the gang.
    """
    record = gang.record
    gang.record = Record(phase=record.phase, quorum=record.quorum, quorum_done=record.quorum_done, undone=record.undone)
    gang.roster.begin_run(gang.roster.past)
    gang.attempt.try_again()
