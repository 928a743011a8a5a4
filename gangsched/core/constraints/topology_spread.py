"""PodTopologySpread: a topology domain may have at most maxSkew matching pods more than the emptiest domain.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/podtopologyspread. DoNotSchedule constraints close nodes;
ScheduleAnyway constraints prefer domains with fewer pods. Only nodes with the topology keys of all constraints of the
same kind count, and of these only the ones that nodeAffinityPolicy and nodeTaintsPolicy include. Terminating pods and
pods of other namespaces do not count.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator
from typing import NamedTuple

import numpy as np

from gangsched.core.constraints.constraint import Constraint, Leavers, Member, Plan, Words, World
from gangsched.core.constraints.matching import Matchable, Noticed
from gangsched.core.constraints.naming import NAMED
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.taint_toleration import TaintToleration
from gangsched.core.constraints.tally import PlannedTallies, of_spread
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Shape, Soft, Spread

_HOSTNAME = "kubernetes.io/hostname"


class SpreadSight(Noticed, frozen=True, gc=False, cache_hash=True):
    """The namespace and labels by which constraints count the pod."""


class TopologySpread(Constraint):
    """The filter PodTopologySpread."""

    proves = True
    words = (
        Words(
            NodeReason.SPREAD,
            "where topology spread by {resource} allows no more",
            "room in the topology domains with fewest members, or a larger maxSkew: {nodes} would exceed it",
        ),
        Words(
            NodeReason.SPREAD_LABEL,
            "without the label {resource} of a topology spread constraint",
            "the label that topology spread asks for: missing on {nodes}",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._affinity = NodeAffinity(world)
        self._taints = TaintToleration(world)

    def set_node(self, row: int, node: Node) -> None:
        """Set the taints of the row, which matter if nodeTaintsPolicy is Honor."""
        self._taints.set_node(row, node)

    def remove_node(self, row: int) -> None:
        """Forget the taints of the row."""
        self._taints.remove_node(row)

    def state(self) -> object:
        """The taints of nodes."""
        return self._taints.state()

    def plan(self, *, emptied: bool) -> Plan:
        """The pods of a snapshot, by constraint; nodes that are shut for now leave open which domains will count."""
        if emptied and self._world.nodes.shut:
            return Plan()
        return SpreadPlan(self._world, self._affinity, self._taints, emptied=emptied)


class _Judged(NamedTuple):
    """The domains that a constraint counts, the `counts` of pods by domain, and the rows that it refuses, by reason."""

    spread: Spread
    domains: IntArray
    counts: IntArray
    unlabelled: Mask
    closed: Mask


class SpreadPlan(Plan):
    """The pods of a snapshot and the members placed there; `_eligible` are, by shape, the rows and domains counted.

    It is `selective` once members with spread constraints are expected.
    """

    about = frozenset({SpreadSight, "spread", "soft", "known"})
    selective: bool = False

    def __init__(self, world: World, affinity: NodeAffinity, taints: TaintToleration, *, emptied: bool) -> None:
        self._world = world
        self._affinity = affinity
        self._taints = taints
        self._emptied = emptied
        self._every: IntArray = np.arange(len(world.stock.names))
        self._tallies = PlannedTallies(world.tallies, emptied=emptied)
        self._eligible: dict[Shape, list[tuple[Mask, IntArray]]] = {}
        self._preferred = PlannedTallies(world.preferred, emptied=emptied)

    def expect(self, shapes: Collection[Shape]) -> None:
        """Count pods for the constraints of these shapes."""
        self._tallies.ask(of_spread(spread) for shape in shapes for spread in shape.spread)
        self.selective = bool(self._tallies)

    def sees(self, pod: Pod) -> SpreadSight | None:
        """The namespace and labels by which constraints count the pod; None if none counts it."""
        keys = self._tallies.keys
        known = Matchable(pod.namespace, tuple([pair for pair in pod.labels if pair[0] in keys]))
        return SpreadSight(known) if self._tallies.matched(known) else None

    def sees_nominated(self, pod: Pod) -> SpreadSight:
        """The namespace and all labels of the pod."""
        return SpreadSight(Matchable(pod.namespace, pod.labels, nominated=True))

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows on which one more member exceeds no constraint."""
        closed: Mask | None = None
        for counted in self._judged(member, rows):
            where = counted.unlabelled | counted.closed
            closed = where if closed is None else closed | where
        return None if closed is None else ~closed

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        """Count the members. A constraint that counts them may get another emptiest domain, which affects all rows."""
        preferred = member.known is not None and self._preferred and self._preferred.place(member.known, rows, counts)
        seen = member.sight(SpreadSight)
        if seen is not None and self._tallies.place(seen.pod, rows, counts):
            return self._every
        return self._every[:0] if preferred else None

    def settle(self, leavers: Leavers) -> None:
        """The cluster counts the pods no more."""
        self._tallies.settle(leavers.pods)
        self._preferred.settle(leavers.pods)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each constraint, the rows where it would be exceeded or where the label is missing."""
        for counted in self._judged(member, rows):
            key = counted.spread.term.topology_key
            yield NodeReason.SPREAD_LABEL, key, counted.unlabelled
            yield NodeReason.SPREAD, self._described(counted, rows[counted.closed]), counted.closed

    def digest(self, rows: IntArray) -> Hashable:  # noqa: ARG002 - pods elsewhere matter as much
        """A digest of the places of all pods that constraints count."""
        return self._tallies.digest

    def couples(self, member: Member, other: Member) -> bool:
        """Whether a constraint of the `other` counts the member."""
        return any(self._is_counted(member, spread) for spread in other.shape.spread)

    def helps(self, member: Member, other: Member) -> bool:
        """Whether one more member may raise the count of the emptiest domain."""
        return self.couples(member, other)

    # Preferences

    weight = 2

    def expect_preferences(self, soft: Soft) -> None:
        """Count pods for its ScheduleAnyway constraints."""
        self._preferred.ask(map(of_spread, soft.spread))

    @property
    def keys(self) -> Collection[str] | None:
        """The label keys by which ScheduleAnyway constraints count pods."""
        return self._preferred.keys if self._preferred else None

    def notices(self, pod: Matchable) -> bool:
        """Whether a ScheduleAnyway constraint counts the pod."""
        return bool(self._preferred.matched(pod))

    def changes_scores(self, member: Member) -> bool:
        """Whether such a constraint counts members of its own class."""
        if member.soft is None or member.known is None:
            return False
        matched = self._preferred.matched(member.known)
        return any(of_spread(spread) in matched for spread in member.soft.spread)

    def prefers(self, member: Member) -> bool:
        """Whether the members have ScheduleAnyway constraints."""
        return member.soft is not None and bool(member.soft.spread)

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """Higher for rows whose domains have fewer pods; 0 without the label of a constraint.

        Counts weigh more for a label with more values. For the hostname label only the pods of the node itself count.
        """
        spreads = member.soft.spread if member.soft is not None else ()
        labelled = self._labelled(spreads)
        at = rows[labelled[rows]]
        sums = np.zeros(len(at))
        for spread in spreads:
            numbers = self._numbers(spread)
            if spread.term.topology_key == _HOSTNAME:
                count, domains = np.zeros(len(self._every), dtype=np.int64), len(at)
                tally = self._preferred.of(of_spread(spread))
                count[tally.rows] = tally.counts if spread.term.selector != () else 0
                counts = count[at]
            else:
                counted = self._counting(member, spread, labelled)
                counts = self._by_domain(spread, counted, self._preferred)[numbers[at]]
                domains = len(np.unique(numbers[at]))
            sums += counts * math.log(domains + 2) + (spread.max_skew - 1)
        rounded = np.floor(sums + 0.5).astype(np.int64)
        most, scores = int(rounded.max(initial=0)), np.zeros(len(rows), dtype=np.int64)
        fewest = int(rounded.min(initial=most))
        scores[labelled[rows]] = 100 * (most + fewest - rounded) // most if most else 100
        return scores

    # Inside

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:
        """Count the pods again (1), or no longer (-1)."""
        preferred = self._preferred.recount(leavers.pods, sign)
        if self._tallies.recount(leavers.pods, sign):
            return self._every
        return self._every[:0] if preferred else None

    def at_most(self, member: Member, number: int) -> IntArray:
        """How many of so many members each row takes at the very most, whatever the order, if no other pod comes."""
        most: IntArray = np.full(len(self._every), number)
        for judged in self._judged(member, self._every):
            if self._is_counted(member, judged.spread):
                # The emptiest domain has the mean at most.
                total = int(judged.counts[judged.domains].sum()) + number
                limit = total // max(1, len(judged.domains)) + judged.spread.max_skew
                numbers = self._numbers(judged.spread)
                np.minimum(most, np.where(numbers < 0, 0, limit - judged.counts[numbers]), out=most)
        return np.maximum(most, 0)

    def _judged(self, member: Member, rows: IntArray) -> Iterator[_Judged]:
        """Each constraint, evaluated on these rows."""
        spreads = member.shape.spread
        for spread, (eligible, domains) in zip(spreads, self._counted(member) if spreads else (), strict=True):
            numbers = self._numbers(spread)[rows]
            if self._emptied and self._world.tallies.of([of_spread(spread)])[of_spread(spread)]:
                # Others are counted too: if some of them stay, the domains may be even.
                yield _Judged(spread, domains, domains, numbers < 0, numbers < -1)
                continue
            counts = self._by_domain(spread, eligible, self._tallies)
            closed = (numbers >= 0) & (counts[numbers] > self._most(spread, member, counts[domains]))
            for row, count in self._tallies.nominated(of_spread(spread)).items():
                at = np.flatnonzero(rows == row)
                if len(at) and eligible[row]:
                    counts[numbers[at]] += count
                    closed[at] |= counts[numbers[at]] > self._most(spread, member, counts[domains])
                    counts[numbers[at]] -= count
            yield _Judged(spread, domains, counts, numbers < 0, closed)

    def _is_counted(self, member: Member, spread: Spread) -> bool:
        """Whether members of the class match the selector; an empty selector matches them, though it counts no pod."""
        if spread.term.selector == ():
            return True
        seen = member.sight(SpreadSight)
        return seen is not None and of_spread(spread) in self._tallies.matched(seen.pod)

    def _numbers(self, spread: Spread) -> IntArray:
        """The number of each row's domain; -1 where the node has no such label."""
        return self._world.nodes.by_label(spread.term.topology_key).numbers(self._every)

    def _by_domain(self, spread: Spread, eligible: Mask, tallies: PlannedTallies) -> IntArray:
        """The number of pods in each domain, by the domain's number; the last element is 0."""
        size = self._world.nodes.by_label(spread.term.topology_key).count + 1
        if spread.term.selector == ():
            return np.zeros(size, dtype=np.int64)
        tally = tallies.of(of_spread(spread))
        counted = eligible[tally.rows]
        numbers = self._numbers(spread)[tally.rows[counted]]
        return np.bincount(numbers, weights=tally.counts[counted], minlength=size).astype(np.int64)

    def _described(self, judged: _Judged, rows: IntArray) -> str:
        """The constraint's key, how full the domains of these rows are, and which limit they have reached."""
        spread, domains, counts = judged.spread, judged.domains, judged.counts
        key, column = spread.term.topology_key, self._world.nodes.by_label(spread.term.topology_key)
        most, why = spread.max_skew, f"minDomains {spread.min_domains}, there are {len(domains)}"
        if len(domains) >= spread.min_domains:
            fewest = int(domains[counts[domains].argmin()])
            most += int(counts[fewest])
            why = f"fewest in {column.value(fewest)}: {counts[fewest]}"
        closed = sorted((column.value(number), int(counts[number])) for number in np.unique(column.numbers(rows)))
        full = [f"{value} has {count} of at most {most}" for value, count in closed[:NAMED]]
        full += [f"{len(closed) - NAMED} more full"] if len(closed) > NAMED else []
        return f"{key} ({', '.join(full)}; {why})"

    def _most(self, spread: Spread, member: Member, counts: IntArray) -> int:
        """The most pods that a domain with room for one more member may have; `counts` are those of counted domains."""
        fewest = int(counts.min()) if len(counts) >= spread.min_domains else 0
        return spread.max_skew + fewest - self._is_counted(member, spread)

    def _counted(self, member: Member) -> list[tuple[Mask, IntArray]]:
        """For each constraint, the rows that count and the numbers of their domains."""
        known = self._eligible.get(member.shape)
        if known is None:
            labelled = self._labelled(member.shape.spread)
            known = self._eligible[member.shape] = []
            for spread in member.shape.spread:
                mask = self._counting(member, spread, labelled)
                known.append((mask, np.unique(self._numbers(spread)[mask])))
        return known

    def _labelled(self, spreads: tuple[Spread, ...]) -> Mask:
        """The nodes with the labels of all these constraints, by row."""
        labelled = self._world.nodes.there(self._every)
        for spread in spreads:
            labelled &= self._numbers(spread) >= 0
        return labelled

    def _counting(self, member: Member, spread: Spread, labelled: Mask) -> Mask:
        """Which of the `labelled` nodes the constraint takes into account."""
        mask = labelled.copy()
        matched = self._affinity.mask(member, self._every) if spread.honors_affinity else None
        tolerated = self._taints.mask(member, self._every) if spread.honors_taints else None
        mask &= True if matched is None else matched
        mask &= True if tolerated is None else tolerated
        return mask
