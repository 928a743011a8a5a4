"""The values of a trace: gangs with their arrivals and run times, and why a trace cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gangsched.core.objects.shape import Amounts

GPU = "nvidia.com/gpu"


class TraceError(ValueError):
    """The trace cannot be used. Each of `problems` is a sentence with its place."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class TraceRole:
    """`members` identical members of a gang, the requests of each, and their role, empty if they have none."""

    members: int
    requests: Amounts
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A gang of the trace: it arrives complete, `arrival_s` after the start, and then waits until it is bound.

    `run_s` is the run time that it needs. `limit_s` is the hard limit of its run time (`activeDeadlineSeconds`), and
    `expected_s` the run time that its user declares; None without one.
    """

    name: str
    namespace: str = "default"
    arrival_s: float
    run_s: float
    parts: tuple[TraceRole, ...]
    priority: int = 0
    limit_s: int | None = None
    expected_s: float | None = None

    @property
    def members(self) -> int:
        """The number of members."""
        return sum(part.members for part in self.parts)

    @property
    def duration_s(self) -> float:
        """How long it runs once it is bound: the limit ends a run that needs more."""
        return self.run_s if self.limit_s is None else min(self.run_s, self.limit_s)

    def total(self, resource: str) -> int:
        """The amount of the resource that all members request together."""
        return sum(part.members * dict(part.requests).get(resource, 0) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Trace:
    """The gangs in order of arrival; `remarks` say which parts of the source were left out or changed."""

    gangs: Sequence[Gang]
    remarks: Sequence[str] = ()
