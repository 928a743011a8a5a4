"""Marks on groups of which all members are to leave: written before the first eviction, and taken back in time."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gangsched.core.gang import making, preempted, rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey


class Marks:
    """The groups that were `marked` here. Those that a former leader has marked leave in any case."""

    def __init__(self, members: Members, assessments: Mapping[GroupKey, Assessment]) -> None:
        self._members = members
        self._assessments = assessments
        self.marked: dict[GroupKey, None] = {}

    def hold(self, holder: Gang, plan: Plan, now: float) -> bool:
        """Mark the groups that leave entirely for this plan. Returns whether it is written of all of them."""
        staying = self._staying(plan)
        for gang in staying:
            if not gang.record.preempted_at:
                cause = preempted.PRIORITY if plan.start is None else preempted.OVERDUE
                preempted.mark(gang, now, holder.key, cause)
                making.note_mark(gang, self._assessments[gang.key].terms)
                self.marked[gang.key] = None
                self._members.dirty.note(gang.key)
        return all(map(preempted.is_marked, staying))

    def are_on_their_way(self, plan: Plan) -> bool:
        """Whether all groups that leave entirely for this plan are marked, and it is not written yet of all of them."""
        staying = self._staying(plan)
        return all(gang.record.preempted_at for gang in staying) and not all(map(preempted.is_marked, staying))

    def _staying(self, plan: Plan) -> list[Gang]:
        """The groups that leave entirely for this plan, but for those of which nobody is left whom it would evict."""
        gangs = self._members.gangs
        whole = ((gangs[key], uids) for key, uids in plan.whole.items() if key in gangs)
        return [gang for gang, uids in whole if any(pod.uid in uids for pod in gang.live())]

    def missing(self, plan: Plan) -> list[str]:
        """The units, by name, of which it could not be written that they leave."""
        gangs = self._members.gangs
        whole = {uids: gangs[key] for key, uids in plan.whole.items() if key in gangs}
        return [
            name
            for name, uids in plan.units.items()
            if uids in whole and preempted.is_awaited(whole[uids]) and not preempted.is_marked(whole[uids])
        ]

    def keep(self, wanted: Collection[GroupKey]) -> None:
        """Let all others stay: no plan wants them to leave any more, whatever became of it.

        Of those whose evictions are on their way it is known only later whether they can stay.
        """
        for key in self.marked.keys() - wanted:
            victim = self._members.gangs.get(key)
            if victim is None:
                del self.marked[key]
            elif preempted.is_untouched(victim) or not preempted.are_all_there(victim):
                del self.marked[key]
                _let_stay(victim)
                self._members.dirty.note(key)


def _let_stay(gang: Gang) -> None:
    """The members stay after all if no eviction was accepted yet; otherwise the rest of them leaves too."""
    if preempted.is_untouched(gang):
        rollback.end(gang)
        preempted.spare(gang)
    elif preempted.is_awaited(gang):
        preempted.spare(gang)
