"""The things on a board: groups, nodes and the page's head, named `group/NAMESPACE/NAME`, `node/NAME` and `head`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gangsched.views import group_rows, node_usage
from gangsched.views.cluster_overview import Overview
from gangsched.views.group_rows import GroupRow
from gangsched.views.node_usage import Usage

HEAD = "head"
_JSON = msgspec.json.Encoder()

Thing = tuple[str, bytes]
"""The name of a thing, and its content as JSON."""


def things(overview: Overview) -> Iterator[Thing]:
    """All things of the overview."""
    yield from map(group, overview.groups)
    yield from map(node, overview.nodes)
    yield HEAD, head(overview.totals.summary, hidden=overview.hidden)


def group(row: GroupRow) -> Thing:
    """The thing that shows a group."""
    return f"group/{row.key.namespace}/{row.key.name}", _JSON.encode(group_rows.as_object(row))


def node(usage: Usage) -> Thing:
    """The thing that shows a node."""
    return f"node/{usage.name}", _JSON.encode(node_usage.as_object(usage))


def head(summary: str, *, hidden: str = "", trouble: str = "") -> bytes:
    """The content of the page's head: `hidden` says why there are no nodes, `trouble` why the page may be stale."""
    return _JSON.encode({"summary": summary, "hidden": hidden or None, "trouble": trouble or None})
