"""The kinds of workloads of an installation, in order of precedence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from msgspec import structs

from gangsched.config.settings import Settings
from gangsched.config.workload_registry import WORKLOADS, WorkloadRow
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.workload import Added, Workload
from gangsched.kube import wire
from gangsched.kube.workloads import custom
from gangsched.kube.workloads.workload_kind import Kind, Mark, Marks

_KEPT = 1024
_NOBODY = Owner("", "", "")
"""The controller of a pod that has none."""


class Workloads:
    """Recognises the workloads of pods. The check is fast for most pods, whose controller is of no known kind."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self.kinds = {kind.row.name: kind for kind in kinds}
        self._by_controller: dict[tuple[str, str], list[Kind[Any]]] = {}
        self._labelled = [kind for kind in self.kinds.values() if kind.controllers is None]
        for kind in self.kinds.values():
            for controller in kind.controllers or ():
                self._by_controller.setdefault(controller, [*self._labelled]).append(kind)
        self._kept = lru_cache(_KEPT)(self._workload)

    @property
    def by_label(self) -> bool:
        """Whether labels alone can show that a pod belongs to a workload."""
        return bool(self._labelled)

    def of(
        self, meta: wire.Meta, owner: Owner | None, *, named: bool = False, added: Added | None = None
    ) -> Workload | None:
        """The workload of a pod with this controller, None if it has none; None if it is of no known kind.

        `named` says whether the pod names its group itself, `added` is the native group that its controller may have
        added.
        """
        owner = owner or _NOBODY
        kinds = self._by_controller.get((owner.api_group, owner.kind), self._labelled)
        if not kinds:
            return None
        marks = Marks(meta.labels or {}, meta.annotations or {}, owner)
        for kind in kinds:
            mark = kind.mark(marks)
            if mark is not None:
                return self._kept(kind.row.name, mark, named, added)
        return None

    def _workload(self, name: str, mark: Mark, named: bool, added: Added | None) -> Workload:  # noqa: FBT001 - lru_cache
        if named:
            return Workload(name, mark.name, None, mark.uid)
        workload = self.kinds[name].workload(mark)
        return workload if added is None else structs.replace(workload, added=added)


NONE = Workloads(())
"""No kinds, for callers that treat all pods without a declaration as plain pods."""


def chosen(settings: Settings) -> Workloads:
    """The kinds that the settings name: the custom ones, then the others in the registry's order."""
    # A kind whose objects create objects of another kind counts only if that kind is chosen too.
    names = set(settings.workloads.kinds)
    rows = [row for row in WORKLOADS.values() if {row.name, row.makes or row.name} <= names]
    own = [custom.kind(setting) for setting in settings.workloads.custom]
    return Workloads([*own, *(_kind(row, [top for top in rows if top.makes == row.name]) for row in rows)])


def _kind(row: WorkloadRow, tops: Sequence[WorkloadRow]) -> Kind[Any]:
    """The kind from the row's file, which is imported by name because the registry must not depend on this package."""
    file = import_module(f"{__package__}.{row.file}")
    kind: Kind[Any] = file.kind(row)
    return replace(kind, tops={(top.resource.group, top.kind): top.name for top in tops})
