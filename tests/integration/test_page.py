"""The page in a real browser: how it shows a real cluster, and what it must never do."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import textwrap
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from gangsched.page.board import Board
from gangsched.page.listener import Listener
from gangsched.page.server import Page
from testbed import chromium
from testbed.chromium import Tab
from testbed.control_plane import ControlPlane, ControlPlaneError
from testbed.operator import Operator, address_of_page
from tests.effort import tries
from tests.integration.cluster import Cluster
from tests.integration.pictures import SETTINGS

HOSTILE = '<img src="https://evil.example.com/x" onerror="document.title=1"><script>document.title=2</script>'
TURNS = max(60, tries(60))
"""The page is refreshed 20 times a minute."""
pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
beside_the_browser = pytest.mark.asyncio(loop_scope="module")
"""A test in the event loop of the browser, which all tests of the module share."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    if not chromium.find():
        message = f"NOT TESTED in a browser: {chromium.MISSING}"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    async with chromium.started() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def tab(browser: Browser) -> AsyncIterator[Tab]:
    async with chromium.tab(browser) as opened:
        yield opened


@pytest.fixture
def address(with_crd: ControlPlane, cluster: Cluster) -> Iterator[str]:
    with dashboard(with_crd.kubeconfig, cluster.namespace) as found:
        yield found


@contextlib.contextmanager
def dashboard(kubeconfig: Path, namespace: str) -> Iterator[str]:
    """The output of `gangsched dashboard` for the namespace's groups and all nodes."""
    command = [sys.executable, "-m", "gangsched", "dashboard", "--kubeconfig", str(kubeconfig), "-n", namespace]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            found = re.match(r"Open (http://127\.0\.0\.1:\d+/\?token=\S+) in a browser", running.stdout.readline())
            assert found
            yield found[1]
        finally:
            running.terminate()


async def open_(tab: Tab, address: str) -> None:
    await tab.page.goto(address)
    await tab.until(
        "document.readyState === 'complete' && document.getElementById('summary').textContent.includes('group')"
    )


def told(text: str) -> Callable[[str], str]:
    return lambda selector: f"document.querySelector({selector!r}).textContent.includes({text!r})"


def test_the_cluster_is_read_while_somebody_looks(with_crd: ControlPlane, cluster: Cluster) -> None:
    """The audit log shows when."""
    with_crd.kubectl("create", "serviceaccount", "looker", "-n", cluster.namespace)
    account = f"{cluster.namespace}:looker"
    with_crd.kubectl(
        "create", "clusterrolebinding", account, "--clusterrole=cluster-admin", f"--serviceaccount={account}"
    )

    def times_read() -> int:
        lists = with_crd.audited(f"system:serviceaccount:{account}")
        return sum(entry["requestURI"].startswith("/api/v1/nodes?") for entry in lists)

    try:
        kubeconfig = with_crd.kubeconfig_of_service_account(cluster.namespace, "looker")
        with dashboard(kubeconfig, cluster.namespace) as address:
            time.sleep(5)
            unseen = times_read()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            browser.open(address, timeout=10).close()
            with browser.open(urllib.parse.urljoin(address, "/events"), timeout=10) as events:
                assert events.readline().startswith(b"data: ")
                deadline = time.monotonic() + 20
                while times_read() < unseen + 2 and time.monotonic() < deadline:
                    time.sleep(0.1)
    finally:
        with_crd.kubectl("delete", "clusterrolebinding", account)
    assert unseen == 1
    assert times_read() >= 3


def thing(prefix: str, found: dict[str, Any]) -> tuple[str, bytes]:
    name = f"{found['namespace']}/{found['name']}" if prefix == "group" else found["name"]
    return f"{prefix}/{name}", json.dumps(found).encode()


def waiting(number: int, **changes: object) -> dict[str, Any]:
    return {
        "namespace": "team",
        "name": f"gang-{number}",
        "phase": "Queued",
        "reason": "Unschedulable",
        "message": "No node has room.",
        "members": 2,
        "minimum": 2,
        "bound": 0,
        "turn": [True, 0, number, "", ""],
        "waitingSince": "2026-01-01T00:00:00Z",
        "timeline": [],
        **changes,
    }


def filled(number: int, **changes: object) -> dict[str, Any]:
    part = {"namespace": "team", "name": f"gang-{number}", "held": False, "pods": 2, "share": 0.5}
    return {
        "name": f"node-{number:04}",
        "closed": None,
        "pods": 2,
        "scarcest": "cpu",
        "parts": [part],
        "allocatable": {"cpu": "4", "pods": "110"},
        "requested": {"cpu": "2"},
        **changes,
    }


def head(summary: str, **changes: object) -> dict[str, bytes]:
    return {"head": json.dumps({"summary": summary, "hidden": None, "trouble": None, **changes}).encode()}


def view(nodes: int, groups: int = 0) -> dict[str, bytes]:
    things = [thing("node", filled(number)) for number in range(nodes)]
    things += [thing("group", waiting(number)) for number in range(groups or nodes)]
    return head(f"{nodes} groups") | dict(things)


class Echo:
    async def tried(self, manifests: bytes) -> dict[str, object]:
        return {"error": f"{HOSTILE} {manifests.decode()}"}

    async def helps(self, namespace: str, name: str) -> dict[str, object]:
        return {"helps": [f"{HOSTILE} for {namespace}/{name}"]}


@pytest_asyncio.fixture(loop_scope="module")
async def board() -> AsyncIterator[tuple[Board, str]]:
    """A board without a cluster, and its page's address."""
    board = Board()
    page = Page(board, again="Open the printed address.", what_if=Echo())
    listener = Listener(page)
    port = await listener.start(0)
    yield board, f"http://127.0.0.1:{port}/?token={page.token}"
    await listener.close()


@beside_the_browser
async def test_what_is_written_in_the_cluster_is_text_and_nothing_else(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    part = {"namespace": HOSTILE, "name": HOSTILE, "held": True, "pods": 2, "share": 0.5}
    node = filled(1, name=HOSTILE, closed=HOSTILE, requested={HOSTILE: HOSTILE}, allocatable={HOSTILE: HOSTILE})
    moment = {"stage": HOSTILE, "time": "2026-01-01T00:00:00Z"}
    group = waiting(1, phase=HOSTILE, reason=HOSTILE, message=HOSTILE, namespace=HOSTILE, name=HOSTILE)
    things = dict([thing("node", {**node, "parts": [part]}), thing("group", {**group, "timeline": [moment]})])
    shown.show(head("1 group", hidden=HOSTILE, trouble=HOSTILE) | things)
    await open_(tab, address)
    await tab.page.evaluate("document.querySelector('#line button').click()")
    await tab.until(told(f"for {HOSTILE}/{HOSTILE}")("#helps"))
    await drop(tab, "kind: Pod")
    await tab.until(told("kind: Pod")("#trying"))
    for place in ("#line", "#nodes", "#groups", "#state", "#group", "#helps", "#timeline", "#moments", "#trying"):
        assert await tab.page.evaluate(told(HOSTILE)(place)), place
    assert await tab.page.evaluate("document.querySelectorAll('img, main script').length") == 0
    assert await tab.page.evaluate("document.title") == "gangsched"
    assert {url.split("/")[2] for url in tab.requested} == {address.split("/")[2]}
    assert tab.problems == []


@beside_the_browser
async def test_it_is_used_by_keyboard_on_a_phone_and_in_the_dark(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    shown.show(view(30))
    await tab.page.set_viewport_size({"width": 360, "height": 740})
    await tab.page.emulate_media(color_scheme="dark")
    await open_(tab, address)
    assert await tab.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert await tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    await tab.page.emulate_media(color_scheme="light")
    assert await tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    await tab.page.evaluate("document.getElementById('grid').focus()")
    await tab.page.keyboard.press("ArrowRight")
    await tab.page.keyboard.press("ArrowRight")
    assert await tab.page.evaluate(told("node-0001: cpu 2 of 4; 2 pods; team/gang-1 (2)")("#node"))
    await tab.page.keyboard.press("ArrowLeft")
    assert await tab.page.evaluate(told("node-0000:")("#node"))
    # Everything that is drawn is also said, and everything has a name.
    assert await tab.page.evaluate("document.getElementById('grid').getAttribute('aria-labelledby')") == "nodes-head"
    assert await tab.page.evaluate("document.documentElement.lang") == "en"
    heads = "[...document.querySelectorAll('section')].map(each => each.getAttribute('aria-labelledby'))"
    assert await tab.page.evaluate(f"{heads}.every(id => document.getElementById(id))")
    assert tab.problems == []


@beside_the_browser
async def test_a_change_does_not_take_the_keyboard_away(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    shown.show(view(3) | dict([thing("group", waiting(7, message="before"))]))
    await open_(tab, address)
    name = await tab.page.evaluate("document.querySelector('#line button').textContent")
    focused = (
        f"document.activeElement.closest('#line') !== null && document.activeElement.textContent === {json.dumps(name)}"
    )
    await tab.page.evaluate("document.querySelector('#line button').focus()")
    shown.show(view(3) | dict([thing("group", waiting(7, message="after"))]))
    await tab.until(told("after")("#line"))
    assert await tab.page.evaluate(focused)
    await tab.page.keyboard.press("Enter")
    await tab.until("document.getElementById('group').open")
    shown.show(view(3) | dict([thing("group", waiting(7, message="last"))]))
    await tab.until(told("last")("#line"))
    await tab.page.evaluate("document.getElementById('group').close()")
    await tab.until(focused)
    assert tab.problems == []


@beside_the_browser
async def test_what_is_listed_can_be_narrowed_by_name(tab: Tab, board: tuple[Board, str]) -> None:
    """A table shows 300 rows; without the filter the others could not be opened."""
    shown, address = board
    shown.show(view(400))
    await open_(tab, address)
    listed = "['line', 'groups', 'nodes'].map(id => document.querySelectorAll(`#${id} :is(li, tbody tr)`).length)"
    assert await tab.page.evaluate(listed) == [301, 301, 301]
    await tab.page.evaluate("document.getElementById('wanted').focus()")
    await tab.page.keyboard.insert_text("-39")
    await tab.until(f"{listed}[0] === 11")
    assert await tab.page.evaluate(listed) == [11, 11, 11]
    assert await tab.page.evaluate(told("gang-399")("#groups"))
    assert not await tab.page.evaluate(told("gang-40")("#line"))
    await tab.page.keyboard.insert_text("00")
    await tab.until(told("No waiting group has this in its name.")("#line"))
    assert tab.problems == []


@beside_the_browser
async def test_what_would_help_is_told_as_long_as_the_group_waits(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    shown.show(view(3))
    await open_(tab, address)
    await tab.page.evaluate("document.querySelector('#line button').click()")
    await tab.until(told("for team/gang-0")("#helps"))
    shown.show(view(3) | dict([thing("group", waiting(0, phase="Running", waitingSince=None))]))
    await tab.until(told("Running")("#group-state"))
    assert await tab.page.evaluate(
        "[...document.querySelectorAll('#helping, #helps')].map(each => each.textContent)"
    ) == [
        "",
        "",
    ]
    assert tab.problems == []


@beside_the_browser
async def test_a_change_elsewhere_says_nothing_again(tab: Tab, board: tuple[Board, str]) -> None:
    """A screen reader announces whatever is written to a live region, even if the text is unchanged."""
    shown, address = board
    shown.show(view(3))
    await open_(tab, address)
    await tab.page.evaluate("document.getElementById('grid').focus()")
    await tab.page.keyboard.press("ArrowRight")
    await tab.page.evaluate(
        "window.said = 0; for (const id of ['node', 'state', 'summary']) new MutationObserver(all => {"
        " window.said += all.length; }).observe(document.getElementById(id), {childList: true, characterData: true,"
        " subtree: true}); true"
    )
    shown.show(view(3) | dict([thing("group", waiting(7, message="new"))]))
    await tab.until(told("new")("#line"))
    assert await tab.page.evaluate("window.said") == 0


@beside_the_browser
async def test_five_thousand_nodes_stay_usable(
    tab: Tab, board: tuple[Board, str], record_property: Callable[[str, object], None]
) -> None:
    shown, address = board
    many = view(5000, 10_000)
    shown.show(many)
    began = time.monotonic()
    await open_(tab, address)
    filled_s = time.monotonic() - began
    painted = await tab.until("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    assert await tab.page.evaluate("document.querySelectorAll('#nodes tbody tr').length") == 301
    began = time.monotonic()
    shown.show(many | head("another group") | dict([thing("node", filled(4999, closed="cordoned"))]))
    await tab.until(told("another group")("#summary"))
    record_property(
        "measured",
        f"page with 5,000 nodes and 10,000 groups: first paint {painted:.0f} ms, filled after {filled_s * 1000:.0f} "
        f"ms, a change seen after {(time.monotonic() - began) * 1000:.0f} ms",
    )
    assert tab.problems == []


@beside_the_browser
@pytest.mark.timeout(60 + 3 * TURNS)
@pytest.mark.explores
async def test_what_comes_and_goes_leaves_no_memory_behind(
    tab: Tab, board: tuple[Board, str], record_property: Callable[[str, object], None]
) -> None:
    """Three minutes of changes, in `make nightly` an hour: each replaces a tenth of the groups."""
    shown, address = board
    nodes = dict(thing("node", filled(number)) for number in range(1000))
    sizes = []
    await_shown = "document.getElementById('summary').textContent === {!r}"
    for turn in range(TURNS):
        groups = dict(thing("group", waiting(number)) for number in range(100 * turn, 100 * turn + 1000))
        changed = dict(thing("node", filled(number, pods=turn)) for number in range(turn % 10, 1000, 10))
        nodes |= changed
        shown.show(head(f"turn {turn} of all groups") | nodes | groups)
        if not turn:
            await open_(tab, address)
        await tab.until(await_shown.format(f"turn {turn} of all groups"))
        if turn in (9, TURNS - 1):
            await tab.devtools.send("HeapProfiler.collectGarbage")
            sizes.append((await tab.devtools.send("Runtime.getHeapUsage"))["usedSize"])
    record_property("measured", f"page: bytes in use after 10 and {TURNS} changes: {sizes}")
    # The browser engine's tables grow in steps at first.
    assert sizes[1] < 1.5 * sizes[0]
    counters = await tab.devtools.send("Memory.getDOMCounters")
    assert counters["nodes"] < 20_000
    assert tab.problems == []


@beside_the_browser
async def test_a_gang_shows_its_timeline(tab: Tab, board: tuple[Board, str]) -> None:
    shown, address = board
    stages = ["created", "complete", "first bound", "scheduled", "running"]
    way = [{"stage": stage, "time": f"2026-01-01T00:00:0{at}Z"} for at, stage in enumerate(stages)]
    shown.show(head("1 group") | dict([thing("group", waiting(1, timeline=way))]))
    await open_(tab, address)
    await tab.page.evaluate("document.querySelector('#groups button').focus()")
    await tab.page.keyboard.press("Enter")
    assert await tab.until("document.getElementById('group').open")
    assert await tab.page.evaluate("document.querySelectorAll('#timeline circle').length") == 5
    texts = await tab.page.evaluate("[...document.querySelectorAll('#moments li')].map(each => each.textContent)")
    assert [text.split(":")[0] for text in texts] == stages
    assert texts[-1].endswith("4.0 s after it was created")
    # It follows its gang while it is open, and says so when the gang is gone.
    shown.show(head("1 group") | dict([thing("group", waiting(1, timeline=way, message="Now it fits."))]))
    await tab.until(told("Now it fits.")("#group-message"))
    shown.show(head("0 groups"))
    await tab.until(told("This group no longer exists.")("#group-state"))
    await tab.page.keyboard.press("Escape")
    assert await tab.until("!document.getElementById('group').open")
    assert tab.problems == []


@beside_the_browser
async def test_those_who_leave_for_a_group_are_told_in_the_line_and_in_its_dialog(
    tab: Tab, board: tuple[Board, str]
) -> None:
    shown, address = board
    leaving = [{"group": HOSTILE, "pods": 4}, {"group": None, "pods": 1}]
    plan = {"leaving": leaving, "since": None, "expires": "2026-01-01T00:00:00Z"}
    shown.show(head("1 group") | dict([thing("group", waiting(1, plan=plan))]))
    await open_(tab, address)
    await tab.until(told(f"4 of {HOSTILE}, 1 of no group")("#line"))
    await tab.page.evaluate("document.querySelector('#line button').click()")
    await tab.until(told("once this is written")("#group-message"))
    assert await tab.page.evaluate("document.querySelectorAll('img, main script').length") == 0
    assert tab.problems == []


@beside_the_browser
async def test_held_places_are_hatched(tab: Tab, board: tuple[Board, str]) -> None:
    """The box of a node with held places is neither empty nor as full as one with pods."""
    shown, address = board
    part = {"namespace": "team", "name": "a", "held": False, "pods": 2, "share": 1.0}
    nodes = [filled(0, parts=[part]), filled(1, parts=[{**part, "held": True}]), filled(2, parts=[])]
    shown.show(head("1 group") | dict(thing("node", node) for node in nodes))
    await open_(tab, address)
    coloured = """(at) => {
        const wide = 96 * devicePixelRatio, pen = document.getElementById("grid").getContext("2d");
        const data = pen.getImageData(at * wide + 4, 20, wide - 8, wide - 24).data;
        let found = 0;
        for (let each = 3; each < data.length; each += 4) found += data[each] > 0;
        return found / (data.length / 4);
    }"""
    full, held, empty = [await tab.page.evaluate(f"({coloured})({at})") for at in range(3)]
    assert (full, empty) == (1, 0)
    assert 0.1 < held < 0.9
    await tab.page.evaluate("document.getElementById('grid').focus()")
    await tab.page.keyboard.press("ArrowRight")
    await tab.page.keyboard.press("ArrowRight")
    assert await tab.page.evaluate(told("team/a (2 held)")("#node"))
    assert tab.problems == []


async def drop(tab: Tab, manifest: str) -> None:
    """Drop a file with this text on the page."""
    await tab.page.evaluate(
        f"""{{
            const moved = new DataTransfer();
            moved.items.add(new File([{json.dumps(manifest)}], "job.yaml"));
            window.dispatchEvent(new DragEvent("drop", {{dataTransfer: moved, cancelable: true}}));
        }}"""
    )


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[str], str]:
    """Writes settings into a file; its path."""

    def write(text: str) -> str:
        path = tmp_path / f"config-{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text)
        return str(path)

    return write


@beside_the_browser
async def test_the_operator_serves_the_page_of_what_it_knows(
    tab: Tab, browser: Browser, with_crd: ControlPlane, cluster: Cluster, settings: Callable[[str], str]
) -> None:
    with Operator(with_crd, "--config", settings(SETTINGS)) as operator:
        first = address_of_page(operator)
        await open_(tab, first)
        cluster.add_node("n1", cpu="2")
        cluster.add_group("runs", min_member=2)
        cluster.add_pods("runs", 2)
        await tab.until(told(f"{cluster.namespace}/runs (2)")("#nodes"))
        cluster.add_group("waits", min_member=2)
        cluster.add_pods("waits", 2)
        await tab.until(told("None of 2 members fits; missing on the nodes that accept them: cpu 2")("#line"))
        await tab.until(told("Running")("#groups"))
        await tab.page.evaluate(
            "[...document.querySelectorAll('#groups button')].find(b => b.textContent.endsWith('/runs')).click()"
        )
        texts = await tab.page.evaluate(
            "[...document.querySelectorAll('#moments li')].map(each => each.textContent.split(':')[0])"
        )
        assert set(texts) == {"created", "complete", "first bound", "last bound", "scheduled", "running"}
        assert (texts[0], texts[-1]) == ("created", "running")
        await drop(tab, "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nstatus: {allocatable: {cpu: 8, pods: 9}}")
        await tab.until(told("job.yaml has no pods for gangsched")("#trying"))
        assert tab.problems == []
        # The next browser has a different address.
        assert address_of_page(operator) != first
        async with chromium.tab(browser) as other:
            await open_(other, address_of_page(operator))
            assert await other.page.evaluate(told("/waits")("#line"))
        assert f"token={first.rpartition('=')[2]}" in operator.log


@beside_the_browser
async def test_a_standby_serves_the_page_too(
    tab: Tab, with_crd: ControlPlane, cluster: Cluster, settings: Callable[[str], str]
) -> None:
    election = f"leaderElection: {{resourceNamespace: {cluster.namespace}}}\n"
    with (
        Operator(with_crd, "--config", settings(election), leader_elect=True),
        Operator(with_crd, "--config", settings(SETTINGS + election), leader_elect=True) as standby,
    ):
        cluster.add_node("n1", cpu="2")
        cluster.add_group("runs", min_member=2)
        cluster.add_pods("runs", 2)
        await open_(tab, address_of_page(standby))
        await tab.until(told(f"{cluster.namespace}/runs (2)")("#nodes"))
        assert "standby" in standby.get("/readyz")[1]


def test_a_port_that_is_taken_is_told_in_a_sentence(with_crd: ControlPlane, settings: Callable[[str], str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = settings(f"page: {{enabled: true, port: {port}}}\n")
        with pytest.raises(
            ControlPlaneError, match=rf"cannot serve the page on 127\.0\.0\.1:{port} .*choose another page"
        ):
            Operator(with_crd, "--config", config).start()


@beside_the_browser
@pytest.mark.usefixtures("operator")
async def test_the_cluster_is_seen_without_a_reload_and_a_manifest_that_is_dropped_is_answered_and_not_applied(
    tab: Tab, address: str, cluster: Cluster
) -> None:
    await open_(tab, address)
    assert "token" not in await tab.page.evaluate("location.href")
    cluster.add_node("n1", cpu="2")
    cluster.add_group("runs", min_member=2)
    cluster.add_pods("runs", 2)
    await tab.until(told(f"{cluster.namespace}/runs (2)")("#nodes"))
    cluster.add_group("waits", min_member=2)
    cluster.add_pods("waits", 2)
    await tab.until(told("None of 2 members fits; missing on the nodes that accept them: cpu 2")("#line"))
    await tab.page.evaluate("document.querySelector('#line button').click()")
    await tab.until(told(f"the end of {cluster.namespace}/runs")("#helps"))
    await tab.page.evaluate("document.getElementById('group').close()")
    manifest = f"""
        apiVersion: gangsched.io/v1alpha1
        kind: PodGroup
        metadata: {{name: tried, namespace: {cluster.namespace}}}
        spec: {{minMember: 1}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {{name: tried-0, namespace: {cluster.namespace}, labels: {{gangsched.io/pod-group: tried}}}}
        spec: {{schedulerName: gangsched, containers: [{{name: a, image: b, resources: {{requests: {{cpu: 2}}}}}}]}}
    """
    await drop(tab, textwrap.dedent(manifest))
    await tab.until(told("job.yaml: 0 of 1 would be bound now.")("#trying"))
    assert await tab.page.evaluate(told("would wait: Unschedulable")("#tried"))
    assert await tab.page.evaluate(told("too little cpu")("#tried"))
    await drop(tab, textwrap.dedent(manifest).replace("cpu: 2", "cpu: 0"))
    await tab.until(told("job.yaml: 1 of 1 would be bound now.")("#trying"))
    assert await tab.page.evaluate(told("on n1 (1)")("#tried"))
    await drop(tab, "kind: [")
    await tab.until(told("the manifest")("#trying"))
    assert not await tab.page.evaluate(told("tried")("#groups"))
    assert {url.split("/")[2] for url in tab.requested} == {address.split("/")[2]}
    assert tab.problems == []
