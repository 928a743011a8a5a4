"""The page in a real browser: what it shows of a real cluster, and what it must never do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gangsched.page.board import Board
from gangsched.page.server import Page
from testbed import chromium
from testbed.chromium import Tab
from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster

HOSTILE = '<img src="https://evil.example.com/x" onerror="document.title=1"><script>document.title=2</script>'
pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
async def tab() -> AsyncIterator[Tab]:
    if not chromium.find():
        message = f"NOT TESTED in a browser: {chromium.MISSING}"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    async with chromium.tab() as made:
        yield made


@pytest.fixture
def address(with_crd: ControlPlane, cluster: Cluster) -> Iterator[str]:
    """What `gangsched dashboard` prints, of the namespace's groups and all nodes."""
    command = [sys.executable, "-m", "gangsched", "dashboard", "--kubeconfig", str(with_crd.kubeconfig)]
    with subprocess.Popen(
        [*command, "-n", cluster.namespace], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            found = re.match(r"Open (http://127\.0\.0\.1:\d+/\?token=\S+) in a browser", running.stdout.readline())
            assert found
            yield found[1]
        finally:
            running.terminate()


async def open_(tab: Tab, address: str) -> None:
    await tab.call("Page.navigate", url=address)
    await tab.until(
        "document.readyState === 'complete' && document.getElementById('summary').textContent.includes('group')"
    )


def told(text: str) -> Callable[[str], str]:
    return lambda selector: f"document.querySelector({selector!r}).textContent.includes({text!r})"


@pytest.mark.usefixtures("operator")
async def test_what_happens_in_the_cluster_is_seen_without_a_reload(tab: Tab, address: str, cluster: Cluster) -> None:
    await open_(tab, address)
    assert "token" not in await tab.value("location.href")
    cluster.add_node("n1", cpu="2")
    cluster.add_group("runs", min_member=2)
    cluster.add_pods("runs", 2)
    await tab.until(told(f"{cluster.namespace}/runs (2)")("#nodes"))
    cluster.add_group("waits", min_member=2)
    cluster.add_pods("waits", 2)
    await tab.until(told("None of 2 members fits; missing on the nodes that accept them: cpu 2")("#line"))
    assert await tab.value(told("Held by")("#line"))
    await tab.until(told("Running")("#groups"))
    assert {url.split("/")[2] for url in tab.requested} == {address.split("/")[2]}
    assert tab.problems == []


def view(nodes: int) -> dict[str, Any]:
    gangs = [{"namespace": "team", "name": f"gang-{number}", "members": 2} for number in range(nodes)]
    return {
        "summary": f"{nodes} groups",
        "hidden": None,
        "trouble": None,
        "groups": [
            {
                **gang,
                "phase": "Queued",
                "reason": "Unschedulable",
                "message": "No node has room.",
                "minimum": 2,
                "bound": 0,
            }
            | {"waitingSince": "2026-01-01T00:00:00Z"}
            for gang in gangs
        ],
        "nodes": [
            {
                "name": f"node-{number}",
                "closed": None,
                "pods": 2,
                "allocatable": {"cpu": "4", "pods": "110"},
                "requested": {"cpu": "2"},
                "shares": {"cpu": 0.5, "pods": 0.02},
                "groups": [gang],
            }
            for number, gang in enumerate(gangs)
        ],
    }


@pytest.fixture
async def board() -> AsyncIterator[tuple[Board, str]]:
    """A board without a cluster, and where its page is."""
    board = Board()
    page = Page(board)
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield board, f"http://127.0.0.1:{runner.addresses[0][1]}/?token={page.token}"
    await runner.cleanup()


async def test_what_is_written_in_the_cluster_is_text_and_nothing_else(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    seen = view(3)
    for group in seen["groups"]:
        group |= {"name": HOSTILE, "namespace": HOSTILE, "phase": HOSTILE, "reason": HOSTILE, "message": HOSTILE}
    for node in seen["nodes"]:
        node |= {"name": HOSTILE, "closed": HOSTILE, "requested": {HOSTILE: HOSTILE}, "allocatable": {HOSTILE: HOSTILE}}
    shown.show(json.dumps(seen | {"hidden": HOSTILE, "trouble": HOSTILE}))
    await open_(tab, address)
    for place in ("#line", "#nodes", "#groups", "#state"):
        assert await tab.value(told(HOSTILE)(place)), place
    assert await tab.value("document.querySelectorAll('img, main script').length") == 0
    assert await tab.value("document.title") == "gangsched"
    assert {url.split("/")[2] for url in tab.requested} == {address.split("/")[2]}
    assert tab.problems == []


async def test_it_is_used_by_keyboard_on_a_phone_and_in_the_dark(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    shown.show(json.dumps(view(30)))
    await tab.size(360, 740)
    await tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    await open_(tab, address)
    assert await tab.value("document.documentElement.scrollWidth") <= 360
    assert await tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    await tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    assert await tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    await tab.value("document.getElementById('grid').focus()")
    await tab.press("ArrowRight")
    await tab.press("ArrowRight")
    assert await tab.value(told("node-1: cpu 2 of 4; 2 pods; team/gang-1 (2)")("#node"))
    await tab.press("ArrowLeft")
    assert await tab.value(told("node-0:")("#node"))
    # Everything that is drawn is also said, and everything has a name.
    assert await tab.value("document.getElementById('grid').getAttribute('aria-labelledby')") == "nodes-head"
    assert await tab.value("document.documentElement.lang") == "en"
    heads = "[...document.querySelectorAll('section')].map(each => each.getAttribute('aria-labelledby'))"
    assert await tab.value(f"{heads}.every(id => document.getElementById(id))")
    assert tab.problems == []


async def test_five_thousand_nodes_stay_usable(
    tab: Tab, board: tuple[Board, str], record_property: Callable[[str, object], None]
) -> None:
    shown, address = board
    shown.show(json.dumps(view(5000)))
    began = time.monotonic()
    await open_(tab, address)
    filled_s = time.monotonic() - began
    painted = await tab.until("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    assert await tab.value("document.querySelectorAll('#nodes tbody tr').length") == 301
    changed = view(5000)
    changed["summary"] = "another group"
    began = time.monotonic()
    shown.show(json.dumps(changed))
    await tab.until(told("another group")("#summary"))
    record_property(
        "measured",
        f"page with 5,000 nodes and groups: first paint {painted:.0f} ms, filled after {filled_s * 1000:.0f} ms, "
        f"a change seen after {(time.monotonic() - began) * 1000:.0f} ms",
    )
    assert tab.problems == []
