"""Makes plans of what searches have found: others are preempted for a group, or end by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.endings import foreign_on
from gangsched.core.contention.ends import End
from gangsched.core.contention.pool import OVERDUE_S, Victim
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod

LONGEST_S = 7 * 24 * 3600.0
"""For so many seconds places are reserved at most if nobody knows when they will be free."""


class Opening:
    """Makes plans; it changes nothing."""

    def __init__(self, cluster: Cluster, *, is_foreign: Callable[[Pod], bool]) -> None:
        self._cluster = cluster
        self._is_foreign = is_foreign

    def preempting(
        self,
        gang: Gang,
        places: Sequence[tuple[Pod, str]],
        victims: Mapping[str, Victim],
        leaving: Sequence[Pod],
        now: float,
    ) -> Plan:
        """These units are preempted for the group, by their names, and these pods leave already."""
        whole = {victim.gang: victim.uids for victim in victims.values() if victim.whole and victim.gang is not None}
        single: dict[GroupKey, frozenset[str]] = {}
        loose = set[str]()
        for victim in victims.values():
            if victim.gang is None:
                loose |= victim.uids
            elif victim.gang not in whole:
                single[victim.gang] = single.get(victim.gang, frozenset()) | victim.uids
        pods = [self._cluster.pods[uid] for victim in victims.values() for uid in victim.uids]
        ends = [pod.gone_by if pod.terminating else now + pod.lifetime.grace_s for pod in (*pods, *leaving)]
        devices = self._cluster.devices
        users = [pod for pod in (*pods, *leaving) if pod.uses_devices]
        return Plan(
            places=places,
            whole=whole,
            single=single,
            loose=frozenset(loose),
            held=frozenset[str]().union(*(victim.held for victim in victims.values())),
            claims=frozenset(claim.key for pod in users for claim in (*devices.claims(pod), *devices.made(pod))),
            anyway=frozenset(pod.uid for pod in leaving if not pod.terminating),
            units={name: victim.uids for name, victim in victims.items()}
            | {pod.uid: frozenset((pod.uid,)) for pod in leaving},
            opened_at=now,
            expires=max(now, *ends) + OVERDUE_S,
            asked=gang.wait.asked,
            beside=self._beside(places),
        )

    def reserving(
        self,
        gang: Gang,
        places: Sequence[tuple[Pod, str]],
        ends: Mapping[str, End],
        start: float,
        now: float,
    ) -> Plan:
        """These end by themselves until the `start`."""
        return Plan(
            places=places,
            start=start,
            ends={uid: end.promised for uid, end in ends.items()},
            promises={uid for uid, end in ends.items() if end.promised < end.certain},
            opened_at=now,
            expires=min(start, now + LONGEST_S) + OVERDUE_S,
            asked=gang.wait.asked,
            beside=self._beside(places),
        )

    def _beside(self, places: Sequence[tuple[Pod, str]]) -> frozenset[str]:
        return frozenset(foreign_on(places, self._cluster, self._is_foreign))
