"""The things on a board: groups, nodes and the page's head, named `group/NAMESPACE/NAME`, `node/NAME` and `head`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gangsched.views import groups, nodes
from gangsched.views.groups import Row
from gangsched.views.nodes import Usage
from gangsched.views.overview import Overview

HEAD = "head"
_JSON = msgspec.json.Encoder()

Thing = tuple[str, bytes]
"""The name of a thing, and its content as JSON."""


def things(overview: Overview) -> Iterator[Thing]:
    """All things of the overview."""
    yield from map(group, overview.groups)
    yield from map(node, overview.nodes)
    yield HEAD, head(overview.totals.summary, hidden=overview.hidden)


def group(row: Row) -> Thing:
    """The thing that shows a group."""
    return f"group/{row.key.namespace}/{row.key.name}", _JSON.encode(groups.as_object(row))


def node(usage: Usage) -> Thing:
    """The thing that shows a node."""
    return f"node/{usage.name}", _JSON.encode(nodes.as_object(usage))


def head(summary: str, *, hidden: str = "", trouble: str = "") -> bytes:
    """The content of the page's head: `hidden` says why there are no nodes, `trouble` why the page may be stale."""
    return _JSON.encode({"summary": summary, "hidden": hidden or None, "trouble": trouble or None})
