"""Puts groups and nodes on a board, each under its name: `node/NAME`, `group/NAMESPACE/NAME`, and `head`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from gangsched.page.board import Board
from gangsched.views import groups, nodes
from gangsched.views.groups import Row
from gangsched.views.nodes import Usage
from gangsched.views.sight import Sight, summary

HEAD = "head"
_SLICE_S = 0.004
"""Nobody else waits longer for the event loop while a machine is looked at."""
_SHARE = 10
"""A look is repeated after this many times the time that it took, so that it is a small load."""
_EVERY_S = 0.5
_JSON = msgspec.json.Encoder()

Things = Iterator[tuple[str, bytes]]


def things(rows: Iterable[Row], usages: Iterable[Usage], *, hidden: str = "", trouble: str = "") -> Things:
    """The groups and nodes, and at last what heads them, as `head` has it; `hidden` says why there are no nodes."""
    seen_rows: list[Row] = []
    seen_usages: list[Usage] = []
    for row in rows:
        seen_rows.append(row)
        yield f"group/{row.key.namespace}/{row.key.name}", _JSON.encode(groups.as_object(row))
    for usage in usages:
        seen_usages.append(usage)
        yield f"node/{usage.name}", _JSON.encode(nodes.as_object(usage))
    yield HEAD, head(summary(Sight(seen_rows, seen_usages)), hidden=hidden, trouble=trouble)


def head(summed_up: str, *, hidden: str = "", trouble: str = "") -> bytes:
    """What heads the page; `trouble` says why what is shown may be old."""
    return _JSON.encode({"summary": summed_up, "hidden": hidden or None, "trouble": trouble or None})


async def keep(board: Board, look: Callable[[], Things], *, every_s: float = _EVERY_S) -> None:
    """Look again and again as long as somebody follows the board; it never ends."""
    while True:
        await board.followed()
        found: dict[str, bytes] = {}
        turn = time.monotonic()
        spent = 0.0
        for name, thing in look():
            found[name] = thing
            if time.monotonic() - turn >= _SLICE_S:
                spent += time.monotonic() - turn
                await asyncio.sleep(0)
                turn = time.monotonic()
        board.show(found)
        spent += time.monotonic() - turn
        await asyncio.sleep(max(every_s, _SHARE * spent))
