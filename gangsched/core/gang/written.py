"""What was last written about a gang (status, conditions, Events), so that nothing is written twice."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from gangsched.core.objects.status import GroupStatus


class MemberCondition(NamedTuple):
    """A member's condition: its reason, and when it was written, in epoch seconds.

    Others leave the `nominated` node for the member; None if there is nothing to say about that. What its group's
    declaration `lacks` is in the sentence.
    """

    reason: str
    at: float
    nominated: str | None = None
    lacks: str = ""


class Written(Struct):
    """What was written. It is changed by its methods and by the status writer.

    `unwritten`: the last status was not accepted and is to be written again at `write_again_at`. `awaited` are the
    places (pod's UID, node) of a reservation whose write is in flight; nothing else is written before its result. At
    `message_at` a message was last written, `basis` is what they were computed from; at `message_until` they are
    outdated even so. `behind`: only numbers in a message have changed, which is not written yet. `hindered` is the
    reason of the last Event about members that cannot join a scheduled group; `named_owners` are the owners named in
    such an Event. `degraded` are the reasons of Events since the group is Degraded. `members` are the members'
    conditions; whether they are seen is looked at next at `conditions_at`.
    `on_pods` are the reasons of Events on members. More of these Events are due at `pods_at`; `has_slot`: the gang's
    turn to emit them is allotted, otherwise it has to request one. `passed_over` is the group of Kubernetes' own API of
    which an Event says that it does not count, `ignored` are the fields of which an Event says that they are not
    honoured, and `divided` the node labels and domains of which one says that members are in several of them. Events
    have said `preemptions` times that all members leave for another group. `version` is the resourceVersion that was
    known when `status` was decided. `reason` and `message` are what was last said of the gang as a whole, wherever it
    was written. At `write_at` the next write is due.
    """

    status: GroupStatus | None = None
    version: str = ""
    unwritten: bool = False
    awaited: frozenset[tuple[str, str]] | None = None
    write_again_at: float = 0.0
    message_at: float = float("-inf")
    basis: tuple[object, ...] = ()
    message_until: float = float("inf")
    behind: bool = False
    event: str = ""
    hindered: str = ""
    degraded: frozenset[str] = frozenset()
    named_owners: frozenset[str] = frozenset()
    members: dict[str, MemberCondition] = field(default_factory=dict)
    conditions_at: float = float("inf")
    on_pods: dict[str, str] = field(default_factory=dict)
    pods_at: float = float("inf")
    has_slot: bool = False
    foreign_pods: set[str] = field(default_factory=set)
    preemptions: int = 0
    passed_over: str = ""
    ignored: frozenset[str] = frozenset()
    divided: frozenset[tuple[str, tuple[str, ...]]] = frozenset()
    reason: str = ""
    message: str = ""
    write_at: float = float("inf")

    def rewrite(self, status: GroupStatus | None) -> None:
        """Have this status written, although nothing was decided since the last write."""
        self.status = status
        self.unwritten = True

    def told(self, reason: str, message: str, basis: tuple[object, ...], *, until: float) -> None:
        """This was said of the gang, and messages were computed from this basis; they hold until then."""
        self.reason, self.message = reason, message
        self.basis, self.message_until = basis, until

    def message_written(self, now: float) -> None:
        """A message of a condition was written."""
        self.message_at = now

    def member_condition_written(self, uid: str, told: MemberCondition) -> None:
        """The member's condition was written."""
        self.members[uid] = told

    def pods_due(self, at: float, *, has_slot: bool = False) -> None:
        """Events on members are due at that time; the gang has to request a turn then, unless it `has_slot`."""
        self.pods_at, self.has_slot = at, has_slot

    def pod_events_emitted(self, reasons: Mapping[str, str]) -> None:
        """Events with these reasons were emitted on the members with these UIDs, or are left out for good."""
        self.on_pods.update(reasons)

    def foreign_pod_reported(self, uid: str) -> None:
        """An Event was emitted saying that the pod is not a member."""
        self.foreign_pods.add(uid)

    def preemption_reported(self, times: int) -> None:
        """Events were emitted saying so often that all members leave."""
        self.preemptions = times

    def forget_pod(self, uid: str) -> None:
        """Forget what was written about the pod."""
        self.members.pop(uid, None)
        self.on_pods.pop(uid, None)
        self.foreign_pods.discard(uid)

    def keep(self, uids: Container[str]) -> None:
        """Forget what was written about pods that are none of these `uids`."""
        for uid in {*self.members, *self.on_pods, *self.foreign_pods}:
            if uid not in uids:
                self.forget_pod(uid)

    def another_run(self) -> None:
        """Forget the last Event: Events of the last run may be due again."""
        self.event = ""

    def restore(self, status: GroupStatus, event: str) -> None:
        """Restore what a former leader wrote: this status, and an Event with this reason."""
        self.status = status
        self.event = event
        self.preemptions = status.record.preemptions if status.record is not None else 0

    def overwritten_in(self, status: GroupStatus) -> bool:
        """Whether another has replaced our status with this one: an installation which owned the group before, or a
        former leader whose write was late. That is known only until we have written ourselves.
        """
        last = self.status
        if last is None or status.record is None:
            return False
        return last.scheduler != status.scheduler or (not self.version and status != last)

    def stands(self, status: GroupStatus) -> None:
        """Another has written this status, so that ours is written again; or it is ours, and there is no PodGroup."""
        self.status = status

    def wrote(self, status: GroupStatus, version: str, awaited: frozenset[tuple[str, str]] | None) -> None:
        """This status is being written to the PodGroup at that version; `awaited` are its reserved places."""
        self.status = status
        self.version = version
        self.unwritten = False
        if awaited is not None:
            self.awaited = awaited

    @property
    def marked(self) -> float:
        """Since when all members are to leave for another group, as the API server knows it; 0.0 if it does not."""
        known = self.status.record if self.status is not None and not self.unwritten and self.awaited is None else None
        return known.preempted_at if known is not None else 0.0

    def refused(self, write_again_at: float) -> None:
        """The status was not accepted and is to be written again at that time."""
        self.unwritten = True
        self.awaited = None
        self.write_again_at = write_again_at

    def take_awaited(self) -> frozenset[tuple[str, str]]:
        """A status with a reservation was accepted. Returns its places, each with the UID of the pod and the node."""
        awaited, self.awaited = self.awaited or frozenset(), None
        return awaited

    def event_emitted(self, event: str) -> str:
        """An Event with this reason was emitted. Returns the reason of the previous one."""
        before, self.event = self.event, event
        return before
