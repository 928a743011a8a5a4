"""Groups and nodes at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gangsched.core.machine import Machine
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.record import Phase
from gangsched.core.objects.wording import number_of
from gangsched.views import group_row, group_rows, node_usage
from gangsched.views.group_row import GroupRow
from gangsched.views.node_usage import State, Usage, is_special, share

MAIN = ("cpu", "memory")
"""The resources that every node has and that are shown first."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Groups, the longest-waiting first, and nodes. `hidden` says why there are no nodes; empty if there are."""

    groups: Sequence[GroupRow]
    nodes: Sequence[Usage]
    hidden: str = ""

    @property
    def totals(self) -> Totals:
        """The totals of all groups and nodes."""
        totals = Totals()
        for row in self.groups:
            totals.count_group(row)
        for usage in self.nodes:
            totals.count_node(usage)
        return totals


@dataclass(slots=True)
class Totals:
    """The number of groups and nodes, and the amounts of all nodes.

    Groups run or wait. `starting` counts the members that are bound but do not run. Of what is `allocatable`, pods have
    `requested` a part, and a part is `held` for members to come. Plans have `reserved` a part, which others may still
    occupy. The rest is `free`, or `shut` because its node is closed. `having` counts the nodes with each extended
    resource.
    """

    groups: int = 0
    waiting: int = 0
    running: int = 0
    starting: int = 0
    nodes: int = 0
    closed: int = 0
    allocatable: Counter[str] = field(default_factory=Counter)
    requested: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    reserved: Counter[str] = field(default_factory=Counter)
    free: Counter[str] = field(default_factory=Counter)
    shut: Counter[str] = field(default_factory=Counter)
    having: Counter[str] = field(default_factory=Counter)

    def count_group(self, row: GroupRow, times: int = 1) -> None:
        """Add the group, or with -1 subtract it."""
        self.groups += times
        self.waiting += times * bool(row.since)
        self.running += times * (row.phase == Phase.RUNNING)
        self.starting += times * (row.bound - row.running)

    def count_node(self, usage: Usage, times: int = 1) -> None:
        """Add the node, or with -1 subtract it."""
        self.nodes += times
        self.closed += times * bool(usage.closed)
        held, reserved = usage.kept(State.HELD), usage.kept(State.RESERVED)
        for name, amount in usage.allocatable.items():
            self.allocatable[name] += times * amount
            self.requested[name] += times * usage.requested.get(name, 0)
            self.having[name] += times * is_special(name)
            self.held[name] += times * held.get(name, 0)
            self.reserved[name] += times * reserved.get(name, 0)
            taken = usage.requested.get(name, 0) + held.get(name, 0) + reserved.get(name, 0)
            (self.shut if usage.closed else self.free)[name] += times * max(0, amount - taken)

    @property
    def others(self) -> list[str]:
        """The two extended resources that most nodes have."""
        return [name for name, number in self.having.most_common(2) if number]

    @property
    def summary(self) -> str:
        """The number of groups and nodes, and the requested shares of the main resources, in one line."""
        parts = [f"{number_of(self.groups, 'group')}, {self.waiting} waiting"]
        if self.nodes:
            parts.append(number_of(self.nodes, "node") + (f", {self.closed} closed" if self.closed else ""))
            parts += [f"{name.rpartition('/')[2]} {self.use(name):.0%}" for name in self.main]
        return " · ".join(parts)

    def use(self, name: str) -> float:
        """The requested fraction of all of this resource, from 0 to 1."""
        return share(self.requested[name], self.allocatable[name])

    @property
    def main(self) -> list[str]:
        """The resources that are shown for the whole cluster."""
        return [name for name in (*MAIN, *self.others) if self.allocatable[name]]


def totals_as_object(totals: Totals) -> dict[str, object]:
    """The totals as a JSON object."""
    return {
        "groups": totals.groups,
        "waiting": totals.waiting,
        "running": totals.running,
        "starting": totals.starting,
        "nodes": totals.nodes,
        "closed": totals.closed,
        "resources": {name: _amounts_as_object(name, totals) for name in totals.main},
    }


def _amounts_as_object(name: str, totals: Totals) -> dict[str, object]:
    amounts = {
        "allocatable": totals.allocatable,
        "requested": totals.requested,
        "held": totals.held,
        "reserved": totals.reserved,
        "free": totals.free,
        "closed": totals.shut,
    }
    shares = {kind: round(share(of[name], totals.allocatable[name]), 4) for kind, of in amounts.items()}
    return {**{kind: format_amount(name, of[name]) for kind, of in amounts.items()}, "shares": shares}


def look(machine: Machine, namespace: str = "") -> Overview:
    """The machine's nodes, and its groups of the namespace, or of all if it is empty."""
    return Overview(
        [row for row in group_rows.rows(machine) if namespace in ("", row.key.namespace)], node_usage.usages(machine)
    )


def as_object(overview: Overview) -> dict[str, object]:
    """Groups and nodes as a JSON object."""
    return {
        "groups": [group_row.as_object(row) for row in overview.groups],
        "nodes": [node_usage.as_object(usage) for usage in overview.nodes],
        "hidden": overview.hidden or None,
    }
