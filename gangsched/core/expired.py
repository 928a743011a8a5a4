"""Deletes finished PodGroups whose time to live is over.

Law: a leaf that only reads gangs. Only `state` imports it. When a time to live is over is decided outside the core.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from gangsched.core.gang.gang import Gang
from gangsched.core.membership.installations import Installations
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import DeleteGroup
from gangsched.core.objects.events import GroupExpired
from gangsched.core.objects.record import FINISHED


class Expired:
    """The PodGroups that have expired according to the events of the present call."""

    def __init__(self, gangs: Mapping[GroupKey, Gang], installations: Installations) -> None:
        self._gangs = gangs
        self._installations = installations
        self._noted: list[GroupExpired] = []

    def note(self, event: GroupExpired) -> None:
        """Decide about this PodGroup in this call."""
        self._noted.append(event)

    def decide(self, parked: Container[GroupKey]) -> list[DeleteGroup]:
        """The deletions; none of a group that is not ours, or whose logic has failed (`parked`).

        A group that is refused is not remembered: whoever posted the event posts it again.
        """
        if not self._noted:
            return []
        noted, self._noted = self._noted, []
        return [
            DeleteGroup(event.key, event.uid, event.resource_version)
            for event in noted
            if event.key not in parked and self._may_go(event)
        ]

    def _may_go(self, event: GroupExpired) -> bool:
        """Whether this is the current version of the PodGroup, its gang is finished, and no pod that names it lives.

        Pods that are no members count too: those that terminate, have scheduling gates, or have another schedulerName.
        """
        gang = self._gangs.get(event.key)
        if gang is None or gang.inbox or gang.observed.group is None or gang.observed.group.uid != event.uid:
            return False
        if gang.observed.resource_version != event.resource_version or gang.record.phase not in FINISHED:
            return False
        beside = self._installations.beside(event.key)
        return all(pod.terminal for pods in (gang.observed.pods, beside) for pod in pods.values())
