"""The preferences of members, weighed as kube-scheduler weighs its scores, and cached by class until they change.

The scores of all plug-ins that have a weight add up to one order of nodes (docs/strategies.md). Each is normalised over
all nodes that accept the class, whether they have room or not, so the order changes neither while nodes fill up nor
with the domain that is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from gangsched.core.constraints.constraint import Plan
from gangsched.core.constraints.matching import Matchable
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Soft
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.row_cache import MOST_CACHED

_NOTHING = Soft()


class Ranking(NamedTuple):
    """The preferences of a class, by row.

    `behind` is the row's distance from the most preferred row; None if the class has no preference. `rank` breaks ties
    between rows that are otherwise equal, the lowest first.
    """

    behind: IntArray | None
    rank: IntArray


class Scores:
    """Scores by class on one snapshot: of these `plans` by method, over the rows that accept a class (`accepts`).

    `turned` grows with each change of the accepted rows or of a score. `names` gives each row's rank by name.
    """

    def __init__(
        self,
        plans: Mapping[str, Sequence[Plan]],
        accepts: Callable[[MemberClass], Mask],
        *,
        names: Callable[[], IntArray],
        turned: Sequence[IntArray],
        budget: Budget,
    ) -> None:
        self._having, self._plans = plans, plans["score"]
        self._of_nodes = [plan for plan in self._plans if plan.about is None]
        self._accepts = accepts
        self._names = names
        self._turned = turned
        self._budget = budget
        self._relevant: dict[Soft, Soft | None] = {}
        self._known: dict[MemberClass, tuple[Ranking, int]] = {}

    def relevant(self, soft: Soft) -> Soft | None:
        """The preferences that can make a difference on these nodes; None if none can."""
        if soft not in self._relevant:
            left = soft
            for plan in self._having["relevant"]:
                left = plan.relevant(left)
            if left != _NOTHING:
                for plan in self._having["expect_preferences"]:
                    plan.expect_preferences(left)
            self._relevant[soft] = None if left == _NOTHING else left
        return self._relevant[soft]

    def known(self, pods: Sequence[Pod]) -> Mapping[str, Matchable]:
        """The labels of these pods that preferences about other pods match, by UID; without pods that none matches."""
        keys = [asked for plan in self._having["keys"] if (asked := plan.keys) is not None]
        by_uid: dict[str, Matchable] = {}
        noticed: dict[Matchable, bool] = {}
        for pod in pods if keys else ():
            labels = tuple([pair for pair in pod.labels if any(pair[0] in asked for asked in keys)])
            known = Matchable(pod.namespace, labels)
            if known not in noticed:
                noticed[known] = any(plan.notices(known) for plan in self._plans)
            if noticed[known]:
                by_uid[pod.uid] = known
        return by_uid

    def changes_scores(self, member: MemberClass) -> bool:
        """Whether placing a member changes the preferences of the others of its class."""
        if member.known is None:
            return False
        return any(plan.changes_scores(member) for plan in self._having["changes_scores"])

    def prefers(self, member: MemberClass) -> bool:
        """Whether the class may prefer some rows to others."""
        bare = member.soft is None and member.known is None
        return any(plan.prefers(member) for plan in (self._of_nodes if bare else self._plans))

    def ranking(self, member: MemberClass) -> Ranking:
        """The preferences of the class; read-only."""
        if not self.prefers(member):
            return Ranking(None, self._names())
        asked = replace(member, avoided=frozenset(), within=(), prefer=())
        known = self._known.get(asked)
        if known is None or known[1] != len(self._turned):
            if known is None and len(self._known) >= MOST_CACHED:
                del self._known[next(iter(self._known))]
            known = self._known[asked] = self._new_ranking(asked), len(self._turned)
        return known[0]

    def _new_ranking(self, member: MemberClass) -> Ranking:
        accepted = self._accepts(member)
        rows = np.flatnonzero(accepted)
        weighed, tied = np.zeros((2, len(rows)), dtype=np.int64)
        for plan in self._plans:
            if plan.prefers(member):
                self._budget.charge(units.CLASS + len(rows))
                score = plan.score(member, rows)
                weighed += plan.weight * score
                tied += score if not plan.weight else 0
        behind = _behind(weighed, rows, len(accepted))
        last = _behind(tied, rows, len(accepted))
        names = self._names()
        return Ranking(behind, names if last is None else last * (len(names) + 1) + names)


def _behind(scores: IntArray, rows: IntArray, size: int) -> IntArray | None:
    """The distance of each of the rows from the best score, 0 for all other rows; None if all scores are equal."""
    most = scores.max(initial=0)
    if (scores == most).all():
        return None
    behind: IntArray = np.zeros(size, dtype=np.int64)
    behind[rows] = most - scores
    return behind
