"""Groups and nodes at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gangsched.core.machine import Machine
from gangsched.core.objects.wording import number_of
from gangsched.views import groups, nodes
from gangsched.views.groups import Row
from gangsched.views.nodes import Usage, is_special, share, total

MAIN = ("cpu", "memory")
"""The resources that every node has and that are shown first."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What is to be seen: groups, what waits longest first, and nodes; `hidden` says why there are no nodes."""

    groups: Sequence[Row]
    nodes: Sequence[Usage]
    hidden: str = ""

    @property
    def others(self) -> list[str]:
        """The two extended resources that most nodes have."""
        having = Counter(name for usage in self.nodes for name in usage.allocatable if is_special(name))
        return [name for name, _ in having.most_common(2)]


def look(machine: Machine, namespace: str = "") -> Sight:
    """The machine's nodes, and its groups of the namespace, or of all if it is empty."""
    found = [row for row in groups.rows(machine) if namespace in ("", row.key.namespace)]
    return Sight(found, list(nodes.usages(machine)))


def summary(sight: Sight) -> str:
    """How many groups and nodes there are, and what of the nodes is requested, in one line."""
    waiting = sum(bool(row.since) for row in sight.groups)
    parts = [f"{number_of(len(sight.groups), 'group')}, {waiting} waiting"]
    if sight.nodes:
        closed = sum(bool(usage.closed) for usage in sight.nodes)
        parts.append(number_of(len(sight.nodes), "node") + (f", {closed} closed" if closed else ""))
        allocatable, requested = total(sight.nodes)
        parts += [
            f"{name.rpartition('/')[2]} {share(requested[name], allocatable[name]):.0%}"
            for name in (*MAIN, *sight.others)
            if name in allocatable
        ]
    return " · ".join(parts)


def as_object(sight: Sight) -> dict[str, object]:
    """The same for a program."""
    return {
        "groups": [groups.as_object(row) for row in sight.groups],
        "nodes": [nodes.as_object(usage) for usage in sight.nodes],
        "hidden": sight.hidden or None,
    }
