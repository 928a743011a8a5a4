"""The page in a real browser, fed from a board: fixtures and made-up content."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from gangsched.page.board import Board
from gangsched.page.history import History
from gangsched.page.listener import Listener
from gangsched.page.machine_reader import MachineReader
from gangsched.page.server import Page
from gangsched.views import cluster_overview
from testbed import chromium
from testbed.chromium import Tab
from tests.harness import Harness
from tests.page_scene import END, played

HOSTILE = '<img src="https://evil.example.com/x" onerror="document.title=1"><script>document.title=2</script>'
Served = tuple[Board, str]
"""A board, and the address of its page."""
Things = dict[str, bytes]
"""The content of a board."""
beside_the_browser = pytest.mark.asyncio(loop_scope="module")
"""A test in the event loop of the browser, which all tests of the module share."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests of a module."""
    if not chromium.find():
        message = f"NOT TESTED in a browser: {chromium.MISSING}"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    async with chromium.started() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def window(browser: Browser) -> AsyncIterator[Tab]:
    """The tab that the tests of a module share, because a new window takes more of the processor than most tests."""
    async with chromium.tab(browser) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def tab(window: Tab) -> AsyncIterator[Tab]:
    """An empty tab as if it were new, in which nothing may go wrong that the browser reports."""
    await window.reset()
    yield window
    assert window.problems == []


@pytest_asyncio.fixture(loop_scope="module")
async def own_tab(browser: Browser) -> AsyncIterator[Tab]:
    """A tab of its own for a test that changes the clock or the requests, or measures the browser."""
    async with chromium.tab(browser) as opened:
        yield opened
        assert opened.problems == []


@pytest_asyncio.fixture(loop_scope="module")
async def board() -> AsyncIterator[Served]:
    """A board without a cluster, and its page's address. The time is that of the scene."""
    board = Board()
    page = Page(board, again="Open the printed address.", what_if=Echo(), now=lambda: END)
    listener = Listener(page)
    port = await listener.start(0)
    yield board, f"http://127.0.0.1:{port}/?token={page.token}"
    await listener.close()


class Echo:
    """Answers questions with what was asked, and hostile text."""

    async def tried(self, manifests: bytes) -> dict[str, object]:
        """Where the manifest would go, or an error, if it is no JSON."""
        try:
            found: dict[str, object] = json.loads(manifests)
        except ValueError:
            return {"error": f"{HOSTILE} {manifests.decode()}"}
        return found

    async def helps(self, namespace: str, name: str) -> dict[str, object]:
        """A remedy that names the group."""
        obstacle = {"reason": HOSTILE, "resource": HOSTILE, "nodes": 3}
        fits = [{"name": HOSTILE, "nodes": 3, "members": 1, "obstacles": [obstacle]}]
        shortfall = {"fits": 1, "wanted": 4, "nodeGroups": fits}
        starts = {"earliest": "2026-11-20T10:41:00Z", "latest": "2026-11-20T11:51:00Z"}
        said = [f"{HOSTILE} for {namespace}/{name}"]
        return {"helps": said, "besides": [], "shortfall": shortfall, "expectedStart": starts}


@cache
def watched() -> tuple[Harness, Things]:
    """The cluster worth looking at, at its end, and what a page remembers that was open from its beginning."""
    history, past = History(), {}
    for harness in played():
        overview = cluster_overview.look(harness.machine)
        past = dict(history.noted(overview.groups, overview.totals, harness.now))
    return harness, past


def scene() -> Harness:
    """The cluster worth looking at, at its end."""
    return watched()[0]


def remembered() -> Things:
    """What a page remembers of the whole scene that was open from its beginning."""
    return watched()[1]


def seen(harness: Harness) -> Things:
    """What the page shows of it."""
    return dict(MachineReader(lambda: harness.machine).look())


async def open_(tab: Tab, address: str) -> None:
    """Open the page, and wait until it shows something."""
    await tab.page.goto(address)
    await tab.until("document.readyState === 'complete' && document.body.classList.contains('shown')")


async def opened(tab: Tab, board: Served, things: Things) -> Board:
    """The board, of which the tab shows these things."""
    shown, address = board
    shown.show(things)
    await open_(tab, address)
    return shown


def told(text: str) -> Callable[[str], str]:
    """Whether an element contains the text: an expression for the element's selector."""
    return lambda selector: f"document.querySelector({selector!r}).textContent.includes({text!r})"


async def texts(tab: Tab, selector: str) -> list[str]:
    """The texts of all such elements."""
    found: list[str] = await tab.page.evaluate(
        f"[...document.querySelectorAll({selector!r})].map(each => each.textContent)"
    )
    return found


async def drop(tab: Tab, manifest: str) -> None:
    """Drop a file with this text on the page."""
    await tab.page.evaluate(
        f"""{{
            const moved = new DataTransfer();
            moved.items.add(new File([{json.dumps(manifest)}], "job.yaml"));
            window.dispatchEvent(new DragEvent("drop", {{dataTransfer: moved, cancelable: true}}));
        }}"""
    )


# Made-up content


def thing(prefix: str, found: dict[str, Any]) -> tuple[str, bytes]:
    """A thing of the board."""
    name = f"{found['namespace']}/{found['name']}" if prefix == "group" else found["name"]
    return f"{prefix}/{name}", json.dumps(found).encode()


def waiting(number: int, **changes: object) -> dict[str, Any]:
    """A group that waits."""
    return {
        "namespace": "team",
        "name": f"gang-{number}",
        "resource": "podgroup.gangsched.io",
        "phase": "Queued",
        "reason": "Unschedulable",
        "message": "No node has room.",
        "members": 2,
        "minimum": 2,
        "bound": 0,
        "running": 0,
        "priority": 0,
        "asks": [{"members": 2, "requests": {"cpu": "1"}}],
        "roster": [[f"gang-{number}-0", "", "Pending", "Unschedulable"]],
        "turn": [True, 0, number, "", ""],
        "waitingSince": "2026-01-01T00:00:00Z",
        "timeline": [],
        "plan": None,
        **changes,
    }


def filled(number: int, **changes: object) -> dict[str, Any]:
    """A node with pods of one gang."""
    part = {"namespace": "team", "name": f"gang-{number}", "held": False, "state": "running", "pods": 2, "share": 0.5}
    return {
        "name": f"node-{number:04}",
        "closed": None,
        "pods": 2,
        "scarcest": "cpu",
        "parts": [part],
        "allocatable": {"cpu": "4", "pods": "110"},
        "requested": {"cpu": "2"},
        "topology": {"example.com/rack": f"rack-{number // 40}"},
        **changes,
    }


def head(summary: str, **changes: object) -> Things:
    """The head of a page without totals."""
    return {"head": json.dumps({"summary": summary, "hidden": None, "trouble": None, **changes}).encode()}


def view(nodes: int, groups: int = 0) -> Things:
    """So many nodes and groups; without a number, as many groups as nodes."""
    things = [thing("node", filled(number)) for number in range(nodes)]
    things += [thing("group", waiting(number)) for number in range(groups or nodes)]
    return head(f"{nodes} groups") | dict(things)
