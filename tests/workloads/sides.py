"""Which plays share a control plane, and so run one after the other in one worker."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from testbed.controllers.expected import EXPECTED, Workload


@dataclass(frozen=True)
class Kind:
    """The control plane and the one controller beside it that one way to declare gangs requires."""

    controller: str
    column: str
    late: bool
    gated: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether only one instance of its controller can run at a time, because its source fixes a port."""
        return self.controller == "mpi-operator"

    def __str__(self) -> str:
        parts = (
            self.controller or "kubernetes",
            self.column,
            "late" if self.late else "",
            "gated" if self.gated else "",
        )
        return "-".join(filter(None, parts))


@functools.cache
def _kind(controller: str, column: str, late: bool, gated: bool) -> Kind:  # noqa: FBT001 - fields of what is cached
    """Returns the same object each time, because pytest needs that to keep a fixture for several tests."""
    return Kind(controller, column, late, gated)


def kind_for(row: Workload, column: str) -> Kind:
    """The kind that the workload needs when it is declared in that way."""
    return _kind(row.controller, column, row.late, row.gated)


def group_of(nodeid: str) -> str:
    """The group of a test; one worker runs all tests of a group. `nodeid` is pytest's name of a test.

    Tests that start their own control plane form one group per file.
    """
    kind, column, *_ = (*nodeid.partition("[")[2].removesuffix("]").split("-"), "")
    if kind not in EXPECTED:
        return nodeid.partition("::")[0]
    found = kind_for(EXPECTED[kind], column)
    return found.controller if found.is_alone else str(found)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Runs all tests of one control plane in one worker. `--dist loadgroup` of pytest-xdist 3.8 does not work."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
