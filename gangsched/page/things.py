"""What is put on a board: groups and nodes, each under its name: `node/NAME`, `group/NAMESPACE/NAME`, and `head`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from gangsched.views import groups, nodes
from gangsched.views.groups import Row
from gangsched.views.nodes import Usage
from gangsched.views.sight import Sight

HEAD = "head"
_JSON = msgspec.json.Encoder()

Thing = tuple[str, bytes]
"""A name, and what is to be seen there as JSON."""


def things(sight: Sight) -> Iterator[Thing]:
    """All that is to be seen."""
    yield from map(group, sight.groups)
    yield from map(node, sight.nodes)
    yield HEAD, head(sight.totals.summary, hidden=sight.hidden)


def group(row: Row) -> Thing:
    """A group."""
    return f"group/{row.key.namespace}/{row.key.name}", _JSON.encode(groups.as_object(row))


def node(usage: Usage) -> Thing:
    """A node."""
    return f"node/{usage.name}", _JSON.encode(nodes.as_object(usage))


def head(summary: str, *, hidden: str = "", trouble: str = "") -> bytes:
    """What heads the page: `hidden` says why there are no nodes, `trouble` why what is shown may be old."""
    return _JSON.encode({"summary": summary, "hidden": hidden or None, "trouble": trouble or None})
