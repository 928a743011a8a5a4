"""The scenarios: numbers of nodes, gangs and members, and how the pods are created."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a scenario runs."""

    BACKLOG = "backlog"
    """Every pod exists before gangsched starts."""
    STREAM = "stream"
    """gangsched runs, and pods arrive as fast as the API server accepts them."""
    CONTENTION = "contention"
    """A backlog with more demand than capacity; then nothing changes for a while."""
    PARKED = "parked"
    """Nothing fits: the time until all pods have their reason, and the cost of waiting."""
    FOOTPRINT = "footprint"
    """Many pods that are bound already: the cost of tracking them."""
    IN_USE = "in use"
    """Many pods are bound already and some of them change; then gangs arrive as in a stream."""
    BESIDE = "beside"
    """Nodes only: `bench.beside` creates the objects that it measures."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Nodes of `node_cpus`, gangs of `size` members of `pod_cpus` each; `mixed` gangs all differ in their requests.

    `plain` pods have no group. Members of a gang that is `apart` exclude each other by hostname. With `devices`
    each pod has a ResourceClaim, which the binding client allocates first. `fitting` is the number of pods that fit,
    by default all; `running` pods are created bound. With `fair` the API server's priority and fairness is on, and the
    binding client uses the chart's service account.
    """

    kind: Kind
    nodes: int
    gangs: int
    size: int
    node_cpus: int = 32
    pod_cpus: int = 1
    mixed: bool = False
    plain: bool = False
    apart: bool = False
    devices: bool = False
    time_out: str = "1h"
    fitting: int | None = None
    running: int = 0
    fair: bool = False

    @property
    def pods(self) -> int:
        """The total number of pods."""
        return self.gangs * self.size

    @property
    def to_bind(self) -> int:
        """The number of pods that fit."""
        return self.pods if self.fitting is None else self.fitting

    @property
    def names(self) -> list[str]:
        """The gangs' names, oldest first."""
        return [f"g{number}" for number in range(self.gangs)]

    @property
    def title(self) -> str:
        """The scenario in a few words: kind, nodes × gangs × size."""
        if self.running:
            return f"{self.kind} {self.nodes:,} × {self.running:,}"
        kinds = {
            " mixed": self.mixed,
            " single pods": self.plain,
            " anti-affinity": self.apart,
            " devices": self.devices,
        }
        what = "".join(kind for kind, chosen in kinds.items() if chosen)
        how = " with priority and fairness" if self.fair else ""
        return f"{self.kind}{what} {self.nodes:,} × {self.gangs:,} × {self.size:,}{how}"


SHAPES = ((500, 100, 20), (5000, 50, 100), (5000, 1667, 3), (1000, 1, 2000))
QUICK = (
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=100, size=20),
    Scenario(kind=Kind.STREAM, nodes=500, gangs=100, size=20),
)
ALL = (
    *(Scenario(kind=Kind.BACKLOG, nodes=nodes, gangs=gangs, size=size) for nodes, gangs, size in SHAPES),
    *(Scenario(kind=Kind.STREAM, nodes=nodes, gangs=gangs, size=size) for nodes, gangs, size in SHAPES),
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=100, size=20, mixed=True),
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=100, size=20, apart=True),
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=100, size=20, devices=True),
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=2000, size=1, plain=True),
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=100, size=20, fair=True),
    Scenario(kind=Kind.CONTENTION, nodes=100, gangs=80, size=20, node_cpus=8, fitting=800),
    Scenario(kind=Kind.PARKED, nodes=500, gangs=500, size=20, pod_cpus=64, fitting=0),
    Scenario(kind=Kind.FOOTPRINT, nodes=5000, gangs=0, size=0, running=50_000),
    Scenario(kind=Kind.FOOTPRINT, nodes=5000, gangs=0, size=0, running=100_000),
)
NODES_SWEPT = tuple(Scenario(kind=Kind.BACKLOG, nodes=nodes, gangs=100, size=20) for nodes in (100, 1000, 2000, 5000))
SIZES_SWEPT = tuple(
    Scenario(kind=Kind.BACKLOG, nodes=500, gangs=2000 // size, size=size) for size in (2, 5, 50, 200, 1000)
)
SIZED = tuple(
    Scenario(kind=Kind.IN_USE, nodes=nodes, gangs=50, size=20, running=running)
    for nodes, running in ((100, 1000), (500, 5000), (1000, 20_000), (5000, 50_000), (5000, 100_000))
)
"""Clusters of several sizes, for docs/sizing.md."""
