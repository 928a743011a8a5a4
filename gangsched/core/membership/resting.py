"""Indexes gangs without a live member by workload, because no pod leads from the workload to them."""

from __future__ import annotations

from collections.abc import Container, Iterator

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey

WorkloadKey = tuple[str, GroupKey]
"""A workload's kind, and its namespace and name."""


class Resting:
    """The gangs, by the workload of their last members."""

    def __init__(self) -> None:
        self._gangs: dict[WorkloadKey, dict[GroupKey, None]] = {}
        self._owners: dict[GroupKey, WorkloadKey] = {}

    def note(self, gang: Gang) -> None:
        """Update the index after the gang was reconciled."""
        workload = gang.record.workload
        if workload is None or gang.observed.group is None or not gang.deserted():
            self.forget(gang.key)
            return
        owner = (workload.kind, GroupKey(gang.key.namespace, workload.name))
        if self._owners.get(gang.key) != owner:
            self.forget(gang.key)
            self._owners[gang.key] = owner
            self._gangs.setdefault(owner, {})[gang.key] = None

    def forget(self, key: GroupKey) -> None:
        """Drop a gang that has live members or is gone."""
        owner = self._owners.pop(key, None)
        if owner is None:
            return
        del self._gangs[owner][key]
        if not self._gangs[owner]:
            del self._gangs[owner]

    def of(self, kind: str, key: GroupKey) -> list[GroupKey]:
        """The gangs that a change of this workload concerns."""
        return list(self._gangs.get((kind, key), ()))

    def of_kind(self, kind: str) -> list[GroupKey]:
        """The gangs of workloads of the kind, which are concerned if the right to read these objects changes."""
        return [key for key, owner in self._owners.items() if owner[0] == kind]

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from (f"{key}: known by its workload though it is gone" for key in self._owners if key not in alive)
        by_owner: dict[WorkloadKey, dict[GroupKey, None]] = {}
        for key, owner in self._owners.items():
            by_owner.setdefault(owner, {})[key] = None
        if self._gangs != by_owner:
            yield "the gangs by workload are not those that have one"
