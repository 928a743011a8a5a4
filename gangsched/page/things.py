"""The things on a board: groups, nodes and the page's head, named `group/NAMESPACE/NAME`, `node/NAME` and `head`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gangsched.views import group_row, node_usage
from gangsched.views.cluster_overview import Overview, Totals, totals_as_object
from gangsched.views.group_row import GroupRow
from gangsched.views.node_usage import Usage

HEAD = "head"
_JSON = msgspec.json.Encoder()

Thing = tuple[str, bytes]
"""The name of a thing, and its content as JSON."""


def things(overview: Overview) -> Iterator[Thing]:
    """All things of the overview."""
    yield from map(group, overview.groups)
    yield from map(node, overview.nodes)
    yield HEAD, head(overview.totals, hidden=overview.hidden)


def group(row: GroupRow) -> Thing:
    """The thing that shows a group."""
    shown = {**group_row.as_object(row), "roster": row.roster}
    # The roster has the names.
    del shown["pods"]
    return f"group/{row.key.namespace}/{row.key.name}", _JSON.encode(shown)


def node(usage: Usage) -> Thing:
    """The thing that shows a node."""
    return f"node/{usage.name}", _JSON.encode(node_usage.as_object(usage))


def head(totals: Totals | None, *, hidden: str = "", trouble: str = "") -> bytes:
    """The content of the page's head: `hidden` says why there are no nodes, `trouble` why the page may be stale."""
    figures = {} if totals is None else {"summary": totals.summary, "totals": totals_as_object(totals)}
    return _JSON.encode({**figures, "hidden": hidden or None, "trouble": trouble or None})
