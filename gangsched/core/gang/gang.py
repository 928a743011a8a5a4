"""One gang as the machine keeps it: its declaration, its pods, its bindings and what must be remembered of its run.

Only the machine and the modules it calls change a `Gang`. Everything that can be derived from the pods is derived
(`Census`), never stored, so that a lost event cannot leave it wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core.gang.run import Run, Transaction
from gangsched.core.gang.states import Phase
from gangsched.core.gang.writes import Barred, Binding, BindState, Told, Undo
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group
from gangsched.core.planning.refusal import Refusal

ENDED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


# Named once, because they are looked at for each member of gangs of thousands.
_WELL, _BADLY, _BOUND = PodPhase.SUCCEEDED, PodPhase.FAILED, BindState.BOUND


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
    waiting members (by UID) that it does without because their owner is not the first (`core.gang.ownership`).
    `doubted` are members (by UID) whose binding was refused for good wherever it was tried, while others were bound:
    theirs is sent first. `vanguard` are members (by UID) that go one by one before the others of the quorum under way.
    `replanned` is how often all its bindings were refused and it was planned anew at once;
    `exhausted`: there was no other node left for that.
    `vacancies` counts the places that were ever held for members to come: most gangs have none. `mismatched` are
    members (by UID) that do not fit the places of their role. `held_up_by` is the gang whose turn it is before this
    one's. `made_at` is when the API server was last asked to make a PodGroup, 0.0 if it was not; `unmade`: it would
    not, and the gang goes on without. `outside` says why it is not tried, if too many of its namespace
    wait before it (`core.queueing.admission`).
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


def forget_run(gang: Gang) -> None:
    """End the gang's run without an outcome. Its back-off is over with it, and nothing else would wake the gang."""
    gang.run = Run(past=gang.run.past)
    gang.parked = False


def forget_pod(gang: Gang, uid: str) -> None:
    """What was said of a pod, and done to it, goes with it."""
    gang.told.members.pop(uid, None)
    gang.told.strangers.discard(uid)
    if gang.undo is not None:
        gang.undo.spared.pop(uid, None)
        gang.undo.evictions.pop(uid, None)
