"""A gang at its turn: its state, with what follows from it, for the rows of `gang.life`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, placeholders, rollback, wants
from gangsched.core.gang.gang import Gang, take_census
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome


class Progress(Struct, frozen=True):
    """Which members may be placed (`eligible`), which are beyond a maximum (`surplus`), and placeholders (`to_come`).

    `complete`: the members and placeholders are enough, and nothing keeps the gang from being tried. `waits`: it is
    complete and has not failed for good.
    """

    eligible: Sequence[Pod]
    surplus: Sequence[Pod]
    to_come: Sequence[Pod]
    complete: bool
    waits: bool


class Changes(IntEnum):
    """What a step changes beside what its own row and those below it read."""

    NOTHING = 0
    PLANS = 1
    """What the gang needs, or who may be placed."""
    MEMBERS = 2
    """Who its members are, or what is reserved for them."""


class Turn:
    """One gang while its life goes on: what was declared, and what follows from its members and its record.

    `census` counts its members, and `ended` are those that are not recorded as such. It has a `need` of members to be
    bound: of the quorum or, if it is scheduled, of what it had or is to have. If what it `asks` for changes, it is
    tried again (contract rule 5). `timed_out`: its clock has run out in this turn; `newly_scheduled`: its quorum was
    bound, or a group that was late is whole.
    """

    __slots__ = (
        "_live",
        "asks",
        "census",
        "cluster",
        "ended",
        "gang",
        "need",
        "newly_scheduled",
        "now",
        "policy",
        "progress",
        "terms",
        "timed_out",
    )

    def __init__(
        self, gang: Gang, cluster: Cluster, terms: Terms, *, policy: Policy, now: float, live: list[Pod] | None = None
    ) -> None:
        """`live` are the gang's live members, if they are known."""
        self.gang, self.cluster, self.terms, self.policy, self.now = gang, cluster, terms, policy, now
        self._live = live
        self.timed_out = self.newly_scheduled = False
        self.went_on(Changes.MEMBERS)

    def note_scheduled(self) -> None:
        """The gang has just been scheduled, or is whole after it was late."""
        self.newly_scheduled = True

    def note_timed_out(self) -> None:
        """The gang's clock has just run out."""
        self.timed_out = True

    def went_on(self, changes: Changes) -> None:
        """Find again what follows, once a step has changed so much."""
        gang, terms = self.gang, self.terms
        if changes is Changes.MEMBERS:
            self.census = census = take_census(gang, self._live or gang.live())
            self._live = None
            self.ended = unrecorded(gang) if len(census.live) < len(gang.observed.pods) else []
            members = [(pod.uid, pod.shape, pod.labels, None if pod.node else pod.lifetime) for pod in census.live]
            bound = (dict(census.bound_roles), dict(census.done_roles))
            self.asks = (members, terms.spec, terms.priority, terms.hindrance, *bound)
        need = wants.later_need if gang.record.scheduled_at else wants.quorum_need
        self.need = need(gang, self.census, terms)
        self.progress = _progress(self)


def unrecorded(gang: Gang) -> list[Pod]:
    """The members of this run that have ended and are not counted in the record yet."""
    well, badly = PodPhase.SUCCEEDED, PodPhase.FAILED
    known, pods = gang.roster.past | gang.roster.recorded, gang.observed.pods.values()
    return [pod for pod in pods if (pod.phase is well or pod.phase is badly) and pod.uid not in known]


def _progress(turn: Turn) -> Progress:
    """How far the gang has come."""
    gang, census, need, terms = turn.gang, turn.census, turn.need, turn.terms
    waiting, surplus = wants.within_maximum(gang, census, terms)
    eligible: Sequence[Pod] = bindings.may_be_tried(gang, waiting)
    # If the PodGroup is gone while the quorum is partly bound, the quorum must still be finished (rule 10).
    finishes = bool(gang.operations.partial_since) and terms.undeclared
    if finishes:
        eligible = wants.first(eligible, need)
    members = [binding.pod for binding in census.begun]
    members += eligible
    to_come: Sequence[Pod] = ()
    if (
        terms.spec.roles
        and terms.hindrance is None
        and census.live
        and (gang.operations.rollback is None or rollback.may_plan(gang, turn.now))
    ):
        # A member that fits no reservation does not replace a placeholder: it may fit nowhere.
        odd = gang.operations.mismatched
        fitting = [pod for pod in members if pod.uid not in odd] if odd else members
        to_come = placeholders.to_come(gang, need, fitting, terms)
    members += to_come
    scheduled = bool(gang.record.scheduled_at) and not gang.record.ended
    enough = scheduled or (need.met_by(members) and bool(members or need))
    complete = enough and (terms.hindrance is None or finishes)
    return Progress(eligible, surplus, to_come, complete, complete and gang.record.outcome is not Outcome.OUT_OF_TIME)


def clock_runs(turn: Turn) -> bool:
    """Whether time counts: the gang is tried, and placeholders are reserved for members that do not exist (rule 4).

    If a controller creates members only once others are ready, the clock does not run while any member is to come.
    """
    to_come, held = turn.progress.to_come, turn.census.held
    comes = (to_come or held) and (turn.terms.sequential or not held)
    return not (turn.gang.wait.outside or comes)


def is_remade(gang: Gang) -> bool:
    """Whether the workload is deleting the rest of a scheduled gang in order to recreate all of it.

    No new member is bound beside the old ones. Once the old ones are no longer members another run begins, in which the
    new ones are bound as a whole.
    """
    if not (gang.observed.recreates_all and gang.record.scheduled_at) or gang.record.ended:
        return False
    return gang.lingering() > 0 or not wants.placed_of(gang)
