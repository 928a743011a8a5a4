"""One gang as the machine keeps it: what was observed of it, its record and its operations.

Only the machine and the modules it calls change a `Gang`. Everything that can be derived from the pods is derived
(`Census`) and never stored, so that a lost event cannot leave it wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.ownership import UNDISPUTED, came_after, ownership_of
from gangsched.core.gang.mail import Inbox
from gangsched.core.gang.observed import Observed
from gangsched.core.gang.operations import Durability, Operations, Roster, Wait
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.gang.written import Written
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, member_order, role_of
from gangsched.core.objects.policy import OwnerGuard
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import NO_RECORD, Minima, Record

# Module constants, because gangs of thousands of members compare each member with them.
_WELL, _BADLY, _BOUND = PodPhase.SUCCEEDED, PodPhase.FAILED, BindState.BOUND


_OUTLIVE_RUNS = ("phase", "rollback_note", "preempted_by", "preemptions")
"""What the record of one run has for the next one."""
MOST_TOLD = 16
"""Length of a gang's story."""


class Gang(Struct):
    """A group of pods that are bound together: declared by a PodGroup or by annotations, or a single plain pod.

    What is observed, the record and the operations are the gang; the rest helps this process.
    """

    key: GroupKey
    observed: Observed = field(default_factory=Observed)
    """The stored objects, and what they show."""
    record: Record = NO_RECORD
    """The only part that survives a restart: its PodGroup's status holds it."""
    operations: Operations = field(default_factory=Operations)
    """What is under way."""
    roster: Roster = field(default_factory=Roster)
    """Which members belong to which run and quorum."""
    durability: Durability = field(default_factory=Durability)
    """Which reservations are written to the status."""
    wait: Wait = field(default_factory=Wait)
    """Why the gang waits for places, if it does."""
    written: Written = field(default_factory=Written)
    """What was written to the status, conditions and Events."""
    inbox: Inbox = field(default_factory=Inbox)
    """What was stored about the gang since it was last brought up to date."""
    reason: Reason = Reason.NO_MEMBERS
    """That of its condition Scheduled."""
    reason_since: float = 0.0
    reconcile_not_before: float = 0.0
    """The gang is large and is not reconciled again before this time, unless it may have become complete."""
    reconciled_size: int = 0
    """How many pods it had when it was last reconciled."""
    story: list[tuple[float, str]] = field(default_factory=list)
    """The last steps of its life (`core.gang.life`) and what led to them, each with its time; repeats only once."""

    plain: bool = False
    """Whether this is a pod without a group, placed as a group of one."""

    def __post_init__(self) -> None:
        self.plain = bool(self.key.pod_uid)

    def change(self, **values: object) -> None:
        """Change these fields of the record."""
        self.record = replace(self.record, **values)

    def tell(self, now: float, sentence: str) -> None:
        """Add this to the gang's story; that of a pod without a group is too short to be told."""
        last = self.story[-1][1] if self.story else ""
        if not self.plain and sentence != last:
            self.story = [*self.story[1 - MOST_TOLD :], (now, sentence)]

    def _forget_record(self, *kept: str) -> None:
        """Forget what is recorded of the run but these fields, and those that outlive every run."""
        self.record = replace(NO_RECORD, **{name: getattr(self.record, name) for name in (*_OUTLIVE_RUNS, *kept)})

    def begin_run(self, past: Iterable[str]) -> None:
        """Begin another run, or end the last one that was not scheduled; the `past` members (by UID) are not in it."""
        self._forget_record("workload")
        self.roster.begin_run(past)
        self.written.another_run()

    def forget_run(self) -> None:
        """End the run without an outcome, because its declaration is gone or another, but keep a quorum under way.

        This also ends the back-off and unparks the gang, which nothing else would wake.
        """
        self._forget_record("quorum", "quorum_done", "preempted_at")
        self.wait.try_again()
        self.roster.begin_run(self.roster.past)

    def begin_quorum(self, least: Minima) -> None:
        """Begin a quorum with these minima; no member belongs to it yet."""
        self.change(quorum=least, quorum_done=())
        self.roster.choose((), replace=True)

    def drop_quorum(self) -> None:
        """No quorum is under way any more."""
        self.change(quorum=None, quorum_done=())

    def note_reason(self, reason: Reason, now: float) -> None:
        """Note why the gang waits, or that it does not."""
        if reason is not self.reason or not self.reason_since:
            self.reason, self.reason_since = reason, now

    def allow_reconcile(self, not_before: float = 0.0) -> None:
        """Allow the gang to be reconciled at once, or from the given time on."""
        self.reconcile_not_before, self.reconciled_size = not_before, self.observed.size

    def update_ownership(self, guard: OwnerGuard, foreign: Foreign) -> list[Pod]:
        """Note which owners use the group's name, and which of them are gone. Returns `live`."""
        observed = self.observed
        if observed.ownership.former and self.record.open and self.deserted():
            self.roster.note_emptied()
        before = observed.ownership.former
        observed.ownership = UNDISPUTED
        members = self.live()
        if self.plain:
            return members
        observed.ownership = ownership_of(members, observed.pods, guard=guard, foreign=foreign)
        left = self.live() if observed.ownership.former else members
        if observed.ownership.former - before and came_after(left, self.record.run_start):
            self.roster.note_emptied()
        return left

    def live(self) -> list[Pod]:
        """The members that count for this run.

        They have not ended, are not terminating, have no scheduling gates, do not belong to an earlier run, no eviction
        of them was accepted, and their owner is not gone.
        """
        roster, former = self.roster, self.observed.ownership.former
        gone = roster.past | roster.leaving | former if roster.leaving or former else roster.past
        return [
            pod
            for pod in self.observed.pods.values()
            if not (pod.terminating or pod.gated or pod.phase is _WELL or pod.phase is _BADLY or pod.uid in gone)
        ]

    def bound(self) -> list[Pod]:
        """The live members that are on a node, as the watch shows or the API server has confirmed."""
        begun = self.operations.bindings
        return [pod for pod in self.live() if pod.node or (pod.uid in begun and begun[pod.uid].state is _BOUND)]

    def shows_another_run(self) -> bool:
        """Whether the PodGroup does not say yet that the last run ended: a new leader would take it for this one."""
        shown = self.observed.group.status.record if self.observed.group is not None else None
        return shown is not None and bool(shown.scheduled_at) and not (shown.ended or self.record.scheduled_at)

    def binds_singly(self) -> bool:
        """Whether members wait for no others: it is scheduled, or a cap has released places beside bound members."""
        return bool(self.record.scheduled_at) or (self.record.capped is not None and bool(self.bound()))

    def node_of(self, pod: Pod) -> str:
        """The node of a member that has one or a reservation, perhaps in a census that is older than what is stored.

        Empty if it is gone since.
        """
        begun, now = self.operations.bindings.get(pod.uid), self.observed.pods.get(pod.uid, pod)
        return pod.node or (begun.node if begun is not None else now.node)

    def gated(self) -> list[Pod]:
        """The pods with scheduling gates. They do not count, but say what is declared while no other one does."""
        return [pod for pod in self.observed.pods.values() if pod.gated and not pod.terminating]

    def has_told_places(self) -> bool:
        """Whether the API server has what is reserved for its plan: in its status or, without a group, on the pod."""
        plan = self.operations.plan
        if plan is None:
            return True
        if not self.plain:
            return all(self.durability.covers(pod.uid) for pod, _ in plan.places)
        pods = self.observed.pods
        return all(pod.uid in pods and pods[pod.uid].nominated_node == node for pod, node in plan.places)

    def lives(self, pod: Pod) -> bool:
        """Whether this pod of the gang is one of the `live` members."""
        roster, former = self.roster, self.observed.ownership.former
        gone = pod.uid in roster.past or pod.uid in roster.leaving or pod.uid in former
        return not (pod.terminating or pod.gated or pod.terminal or gone)

    def lingering(self) -> int:
        """Number of pods that are no longer members, because they are terminating, but still occupy a node."""
        return sum(pod.terminating and bool(pod.node) and not pod.terminal for pod in self.observed.pods.values())

    def deserted(self) -> bool:
        """Whether the gang has no live member."""
        return not any(map(self.lives, self.observed.pods.values()))

    def begun(self) -> set[str]:
        """The members, by UID, with which a quorum was begun."""
        roster = self.roster
        return roster.inherited | roster.chosen if self.record.quorum is not None else roster.inherited


def forget_written(gang: Gang) -> None:
    """Forget what was written about the PodGroup, which has appeared or gone; keep what was written about pods."""
    gang.written = Written(members=gang.written.members, foreign_pods=gang.written.foreign_pods)


class Census(Struct, frozen=True, kw_only=True):
    """A gang's members: `bound` to a node, or `waiting` for one in the order of trying; the rest are being bound.

    `begun` are the bindings that the API server has not confirmed yet, and `held` those of placeholders among them.
    `done_roles` counts, by role, the members that have succeeded in this run, if they count towards the minimum.
    """

    live: Sequence[Pod]
    bound: Sequence[Pod]
    waiting: Sequence[Pod]
    begun: Sequence[Binding]
    held: Sequence[Binding]
    running: int
    bound_roles: Counter[str]
    done_roles: Counter[str]

    @property
    def kept(self) -> Counter[str]:
        """Number of members, by role, that are bound or have succeeded and count."""
        return self.bound_roles + self.done_roles if self.done_roles else self.bound_roles

    @property
    def done(self) -> int:
        """Number of members that have succeeded in this run and count towards the minimum."""
        return self.done_roles.total()


def take_census(gang: Gang, live: Sequence[Pod]) -> Census:
    """Count the gang's live members from what they show and what the API server has confirmed."""
    bound = []
    waiting = []
    bindings = gang.operations.bindings
    for pod in live:
        binding = bindings.get(pod.uid) if bindings else None
        if pod.node or (binding is not None and binding.state is _BOUND):
            bound.append(pod)
        elif binding is None:
            waiting.append(pod)
    waiting.sort(key=member_order)
    return Census(
        live=live,
        bound=bound,
        waiting=waiting,
        begun=gang.operations.unconfirmed(),
        held=gang.operations.placeholders(),
        running=sum([pod.phase is PodPhase.RUNNING for pod in bound]),
        bound_roles=Counter(map(role_of, bound)),
        done_roles=Counter(dict(gang.record.succeeded) if gang.observed.wave is None else {}),
    )
