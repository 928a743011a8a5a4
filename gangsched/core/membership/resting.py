"""Indexes gangs without a live member by workload, because no pod leads from the workload to them."""

from __future__ import annotations

from collections.abc import Container, Iterator

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.indexes import Grouped

WorkloadKey = tuple[str, GroupKey]
"""A workload's kind, and its namespace and name."""


class Resting:
    """The gangs, by the workload of their last members."""

    def __init__(self) -> None:
        self._gangs = Grouped[GroupKey, WorkloadKey]()

    def note(self, gang: Gang) -> None:
        """Update the index after the gang was reconciled."""
        workload = gang.record.workload
        if workload is None or gang.observed.group is None or not gang.deserted():
            self.forget(gang.key)
        else:
            self._gangs.put(gang.key, (workload.kind, GroupKey(gang.key.namespace, workload.name)))

    def forget(self, key: GroupKey) -> None:
        """Drop a gang that has live members or is gone."""
        self._gangs.drop(key)

    def of(self, kind: str, key: GroupKey) -> list[GroupKey]:
        """The gangs that a change of this workload concerns."""
        return list(self._gangs.of((kind, key)))

    def of_kind(self, kind: str) -> list[GroupKey]:
        """The gangs of workloads of the kind, which are concerned if the right to read these objects changes."""
        return [key for key, owner in self._gangs.items() if owner[0] == kind]

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from (f"{key}: known by its workload though it is gone" for key in self._gangs if key not in alive)
