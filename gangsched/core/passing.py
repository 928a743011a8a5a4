"""One pass: everything that waits is planned once, in order, on one snapshot.

The quorums (and repairs) of all come first, then members above the minimum one by one, both in the same order
(contract rule 6); those of a quorum that has just been placed are among them. What does not fit holds nothing and
blocks nobody (rule 7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core import bindings, places
from gangsched.core.caps import Caps
from gangsched.core.cluster import Cluster
from gangsched.core.demand import further, role_minima, wishes
from gangsched.core.effects import BindPod
from gangsched.core.gang import Gang, Transaction
from gangsched.core.life import Assessment
from gangsched.core.model import GroupKey, Pod
from gangsched.core.placement import Ask, Placement, classify, place
from gangsched.core.reasons import Reason
from gangsched.core.refusal import Refusal
from gangsched.core.snapshot import MemberClass, Snapshot


@dataclass(slots=True)
class Decided:
    """What a pass has decided: bindings to send, the gangs it tried, and how often it refused and why."""

    effects: list[BindPod] = field(default_factory=list)
    tried: list[GroupKey] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)


def run_pass(
    cluster: Cluster,
    gangs: Mapping[GroupKey, Gang],
    assessments: Mapping[GroupKey, Assessment],
    order: Sequence[GroupKey],
    *,
    caps: Caps,
    held_up_by: Callable[[GroupKey], GroupKey | None] = lambda _: None,
) -> Decided:
    """Plan the gangs in this order, assume the places found and say which bindings to send.

    `held_up_by` names the gang that another may not overtake; `caps` say who may hold no more for members to come.
    """
    return _Pass(cluster, gangs, assessments, caps, held_up_by).run(order)


class _Pass:
    def __init__(
        self,
        cluster: Cluster,
        gangs: Mapping[GroupKey, Gang],
        assessments: Mapping[GroupKey, Assessment],
        caps: Caps,
        held_up_by: Callable[[GroupKey], GroupKey | None],
    ) -> None:
        self._caps = caps
        self._held_up_by = held_up_by
        self._cluster = cluster
        self._gangs = gangs
        self._assessments = assessments
        self._snapshot = Snapshot(cluster)
        self._refused: dict[tuple[MemberClass, int, int, frozenset[str]], tuple[int, Refusal]] = {}
        self._decided = Decided()
        self._placed: set[GroupKey] = set()

    def run(self, order: Sequence[GroupKey]) -> Decided:
        for key in order:
            self._decided.tried.append(key)
            gang = self._gangs[key]
            want = self._assessments[key].want
            if want.quorum is not None:
                self._quorum(gang, want.quorum)
            for pod in want.moves:
                self._move(gang, pod)
            self._singles(gang, want.repairs)
        for key in order:
            gang = self._gangs[key]
            want = self._assessments[key].want
            if want.quorum is not None and key in self._placed:
                spec = self._assessments[key].terms.spec
                self._singles(gang, further(gang, want.quorum.members, spec))
            self._singles(gang, want.extras)
        return self._decided

    def _quorum(self, gang: Gang, ask: Ask) -> None:
        gang.held_up_by = self._held_up_by(gang.key)
        if gang.held_up_by is not None:
            gang.refusal = None
            gang.parked = True
            self._decided.refusals[Reason.NOT_ITS_TURN] += 1
            return
        if not self._place_quorum(gang, ask) and gang.run.capped is not None and any(pod.node for pod in gang.live()):
            self._singles(gang, [pod for pod in ask.members if pod.name])

    def _place_quorum(self, gang: Gang, ask: Ask) -> bool:
        """Place it if it fits, and the caps allow what it holds. Returns whether it has places now."""
        if gang.run.capped is not None and self._stopped(gang, ask.members):
            # Planned once, to say of what would never fit just that; while too much is asked for, nothing need be.
            return False
        self._snapshot.heed_nominated(self._assessments[gang.key].terms.priority)
        mark = self._snapshot.mark()
        found = self._place(ask)
        gang.complaint = ""
        if isinstance(found, Refusal):
            if not found.never and self._caps.beyond(gang, ask.members) and self._stopped(gang, ask.members):
                return False
            gang.refusal = found
            gang.parked = True
            self._count(found)
            return False
        if self._stopped(gang, ask.members):
            self._snapshot.undo(mark)
            return False
        gang.refusal = None
        gang.undone = ""
        if gang.undo is not None:
            gang.undo.retried = True
            gang.partial_since = 0.0
        if not gang.run.scheduled_at:
            spec = self._assessments[gang.key].terms.spec
            gang.transaction = gang.transaction or Transaction(spec.minimum, role_minima(spec))
        self._bind(gang, found)
        self._placed.add(gang.key)
        return True

    def _stopped(self, gang: Gang, members: Sequence[Pod]) -> bool:
        if not self._caps.stops(gang, members):
            return False
        self._decided.refusals[Reason.NAMESPACE_LIMIT] += 1
        return True

    def _singles(self, gang: Gang, members: Sequence[Pod]) -> None:
        if not members:
            return
        terms = self._assessments[gang.key].terms
        self._snapshot.heed_nominated(terms.priority)
        avoided = frozenset(gang.avoided)
        own = Counter(self._cluster.node_of(pod.uid) for pod in gang.live())
        for pod in members:
            if self._stopped(gang, [pod]):
                continue
            ask = Ask(
                members=(pod,),
                need=1,
                strategy=terms.strategy,
                prefer=terms.spec.prefer,
                wishes=wishes(terms.spec),
                topology=terms.spec.topology,
                own=own,
                avoided=avoided,
            )
            found = self._place(ask)
            if isinstance(found, Refusal):
                gang.refused_members[pod.uid] = found
                gang.parked = True
                self._count(found)
            else:
                own.update(node for _, node in found.assignments)
                self._bind(gang, found)

    def _move(self, gang: Gang, pod: Pod) -> None:
        """Place a member elsewhere than in the places of its role, of which it gives up one only for another."""
        place = places.given_up_for(gang, pod)
        row = self._cluster.capacity.rows[place.node]
        mark = self._snapshot.mark()
        self._snapshot.give_back(row, classify(self._snapshot, [place.pod])[place.pod.uid])
        self._singles(gang, [pod])
        if pod.uid in gang.bindings:
            bindings.release(gang, self._cluster, place.pod.uid)
            gang.mismatched.discard(pod.uid)
        else:
            self._snapshot.undo(mark)

    def _bind(self, gang: Gang, found: Placement) -> None:
        if gang.transaction is not None:
            gang.transaction.pods.update(pod.uid for pod, _ in found.assignments)
        self._decided.effects += bindings.begin(gang, self._cluster, found.assignments)

    def _place(self, ask: Ask) -> Placement | Refusal:
        """Place, or give the refusal that an equal ask has had since anything was last taken in this pass."""
        classes = set(classify(self._snapshot, ask.members, ask.avoided).values())
        key = (next(iter(classes)), ask.need, len(ask.members), self._snapshot.heeded)
        alike = len(classes) == 1 and not any(ask.role_needs.values()) and ask.topology is None
        taken, refusal = self._refused.get(key, (-1, None))
        if alike and refusal is not None and taken == self._snapshot.mark():
            return refusal
        found = place(self._snapshot, ask)
        if alike and isinstance(found, Refusal):
            self._refused[key] = (self._snapshot.mark(), found)
        return found

    def _count(self, refusal: Refusal) -> None:
        self._decided.refusals[Reason.NEVER_FITS if refusal.never else Reason.UNSCHEDULABLE] += 1
