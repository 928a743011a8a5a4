"""Writes of one gang that are in flight or waiting for a retry: pre-bindings, bindings and rollbacks."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from msgspec import Struct

from gangsched.core.gang.evicting import Evictions
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding


class BindState(StrEnum):
    """The progress of a member's binding."""

    HELD = "Held"
    """The node is reserved; no binding was sent, or the last one failed and a retry is pending."""
    SENT = "Sent"
    """The binding is in flight."""
    BOUND = "Bound"
    """The API server has confirmed the binding. It ends at the gang's next turn after the watch has shown it."""


class PendingPrebinding(Struct):
    """A pre-binding of a member. `retry_at` is when it may be sent (again), `tries` how often it was sent.

    `made`: the watch has shown it. `done`: what it asks for holds. `complaint` is the server's last refusal.
    """

    prebinding: Prebinding
    made: bool = False
    done: bool = False
    tries: int = 0
    retry_at: float = 0.0
    complaint: str = ""

    @property
    def told(self) -> str:
        """What is awaited and the server's last refusal, as a sentence without its full stop."""
        return f"{self.prebinding.awaited}; {self.complaint}" if self.complaint else self.prebinding.awaited

    def sent(self, again_at: float) -> None:
        """Note that it was sent, and that it is sent again at that time if neither a result nor the watch shows it."""
        self.tries += 1
        self.retry_at = again_at

    def put_off(self) -> None:
        """Do not send it until the watch shows a change."""
        self.retry_at = float("inf")

    def failed(self, complaint: str, retry_at: float) -> None:
        """The API server has not written it."""
        self.retry_at = retry_at
        self.complaint = complaint

    def shown(self, *, done: bool) -> None:
        """The watch shows it; `done`: what it asks for holds."""
        self.made = True
        self.done = done
        self.complaint = ""


class Binding(Struct):
    """A member's reservation and binding. `retry_at` is when it may be sent (again), `tries` how often it was sent.

    `pending` must be done before the binding is sent; waiting for them began at `since`. `above`: the member is above
    the minimum.

    `withdrawn`: a withdrawal was requested and has no result yet. `placeholder`: the member does not exist yet; `pod`
    is a placeholder (a pod without a name), whose binding is never sent; see `core.gang.placeholders`.
    """

    pod: Pod
    node: str
    state: BindState = BindState.HELD
    tries: int = 0
    retry_at: float = 0.0
    complaint: str = ""
    withdrawn: bool = False
    placeholder: bool = False
    pending: tuple[PendingPrebinding, ...] = ()
    since: float = 0.0
    above: bool = False

    @property
    def awaits(self) -> PendingPrebinding | None:
        """The first pre-binding that does not hold yet."""
        # A plain loop, because this runs for all bindings in each reconciliation, and few have pre-bindings.
        for pending in self.pending:
            if not pending.done:
                return pending
        return None

    def send(self) -> BindPod:
        """The binding is sent to the API server from now on."""
        self.state = BindState.SENT
        self.tries += 1
        return BindPod(self.pod.uid, self.pod.namespace, self.pod.name, self.node, self.above)

    def needed(self) -> None:
        """The member counts for the quorum from now on."""
        self.above = False

    def confirmed(self) -> None:
        """The API server has bound the member."""
        self.state = BindState.BOUND
        self.complaint = ""

    def failed(self, complaint: str, retry_at: float) -> None:
        """The API server has not bound the member; the node stays reserved for another try."""
        self.state = BindState.HELD
        self.retry_at = retry_at
        self.complaint = complaint

    def withdraw(self) -> None:
        """Its withdrawal was requested."""
        self.withdrawn = True

    def begin(self, now: float) -> None:
        """Start the wait for its pre-bindings, unless it has started already."""
        self.since = self.since or now

    def renew(self, pod: Pod) -> None:
        """Replace the pod with its current form."""
        self.pod = pod


class Rollback(Struct):
    """A rollback or restart, which evicts members to schedule the gang again as a whole; see `core.gang.rollback`.

    `restart` names the members that onDegraded Restart evicts; None for a rollback, which evicts the bound members of a
    quorum or, if it has one, of its `part`. `note` describes in a message what has happened. `retried`: the rest of the
    quorum was placed after all, and nothing more is evicted unless that fails too.
    """

    since: float
    note: str
    evictions: Evictions
    restart: frozenset[str] | None = None
    part: frozenset[str] | None = None
    retried: bool = False


class Part(Struct):
    """Members above the minimum that are bound together or not at all, as a quorum is; see `core.gang.parts`.

    It `needs` so many by role, and has those in `members` (by UID). `partial_since` and `rollback` are as in
    `Operations`, and `complaint` is what the API server said of a binding that was given up. After it was given up for
    the reason in `note`, which happened `times` in a row, it is not tried before `retry_at` (0.0: it may be tried now).
    """

    needs: Counter[str]
    members: set[str]
    partial_since: float = 0.0
    rollback: Rollback | None = None
    complaint: str = ""
    note: str = ""
    times: int = 0
    retry_at: float = 0.0


class Barred(Struct, frozen=True):
    """A member of a scheduled gang that could not be bound: not tried before `until` (0.0: may be tried now).

    `message` says why, for its condition; `times` counts how often in a row.
    """

    until: float
    message: str
    times: int
