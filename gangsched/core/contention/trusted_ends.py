"""When pods end, as reservations count on it: some are not taken at their word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.batches import drawn_by
from gangsched.core.contention.ends import End, end_of
from gangsched.core.contention.pace import Pace
from gangsched.core.contention.units import name_of
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod


class TrustedEnds:
    """Only those are taken at their word who can be evicted when they overstay; nobody is without `by_promises`."""

    def __init__(self, cluster: Cluster, members: Members, pace: Pace, *, by_promises: bool) -> None:
        self._cluster = cluster
        self._members = members
        self._pace = pace
        self._by_promises = by_promises
        # What was found out about gangs while nothing changed.
        self._protected: dict[GroupKey, bool] = {}
        self._when = (-1, -1)

    def of_all(self, claims: Iterable[Claim], now: float) -> list[tuple[Claim, End]]:
        """These claims, each with when it ends."""
        passed = self._pace.passed(now)
        return [(claim, self.of(claim, now=now, passed=passed)) for claim in claims]

    def of(self, claim: Claim, *, now: float, passed: Collection[str]) -> End:
        """When the pod ends; those `passed` over, by the names of their units, could not be evicted lately."""
        members, pod = self._members, claim.pod
        gang, trusted = members.gang_of(pod.uid), self._by_promises and members.ours(pod)
        if trusted and passed:
            trusted = name_of(pod) not in passed and (gang is None or str(gang.key) not in passed)
        end = end_of(pod, gang, members.foreign, now, ours=trusted)
        if _is_overdue(pod, end, now) and self._is_protected(pod, gang):
            return End(end.certain, end.certain)
        return end

    def too_many(self, ends: Mapping[str, End], now: float) -> set[str]:
        """Of pods with these ends, by UID, those that are overdue and that budgets protect beside the ones before them.

        A gang counts as a whole.
        """
        pods, drawn, protected = self._cluster.pods, Counter[str](), set[str]()
        overdue = [pods[uid] for uid, end in ends.items() if uid in pods and _is_overdue(pods[uid], end, now)]
        for uids in dict.fromkeys(map(self._leave_together, overdue)):
            more = drawn + drawn_by(self._cluster, uids)
            if self._exceeds(more):
                protected |= uids
            else:
                drawn = more
        return protected

    def _leave_together(self, pod: Pod) -> frozenset[str]:
        gang = self._members.gang_of(pod.uid)
        return frozenset((pod.uid, *(member.uid for member in (gang.bound() if gang is not None else ()))))

    def _is_protected(self, pod: Pod, gang: Gang | None) -> bool:
        """Whether disruption budgets do not allow at present that all are evicted who would leave with it."""
        if not self._cluster.budgets.allowed:
            return False
        if gang is None:
            return self._are_protected((pod.uid,))
        when = (self._cluster.changes, self._cluster.budgets.changes)
        if self._when != when:
            self._when, self._protected = when, {}
        if gang.key not in self._protected:
            self._protected[gang.key] = self._are_protected(member.uid for member in gang.bound())
        return self._protected[gang.key]

    def _are_protected(self, uids: Iterable[str]) -> bool:
        return self._exceeds(drawn_by(self._cluster, uids))

    def _exceeds(self, drawn: Counter[str]) -> bool:
        allowed = self._cluster.budgets.allowed
        return any(number > allowed.get(name, 0) for name, number in drawn.items())


def _is_overdue(pod: Pod, end: End, now: float) -> bool:
    """Whether nothing but its word ends the pod, and it should have ended by now."""
    return end.promised < end.certain and end.promised <= now + pod.lifetime.grace_s
