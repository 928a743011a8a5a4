"""The page in a real browser: how it shows a real cluster, and what it must never do."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import textwrap
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser

from testbed import chromium
from testbed.chromium import Tab
from testbed.control_plane import ControlPlane, ControlPlaneError
from testbed.operator import Operator, address_of_page
from tests.browsing import beside_the_browser, browser, drop, open_, tab, texts, told, window
from tests.integration.cluster import Cluster
from tests.integration.pictures import SETTINGS

__all__ = ["browser", "tab", "window"]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


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
            # If the page has lost it, the test should say why.
            assert running.poll() is None, f"gangsched dashboard ended by itself with status {running.returncode}"
        finally:
            running.terminate()


async def open_tables(tab: Tab) -> None:
    for details in ("table-of-nodes", "table-of-groups"):
        await tab.page.evaluate(f"document.getElementById('{details}').open = true")


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
                assert events.readline() == b"event: alive\n"
                deadline = time.monotonic() + 20
                while times_read() < unseen + 2 and time.monotonic() < deadline:
                    time.sleep(0.1)
    finally:
        with_crd.kubectl("delete", "clusterrolebinding", account)
    assert unseen == 1
    assert times_read() >= 3


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[str], str]:
    """Writes settings into a file; its path."""

    def write(text: str) -> str:
        path = tmp_path / f"config-{len(list(tmp_path.iterdir()))}.yaml"
        path.write_text(text)
        return str(path)

    return write


@beside_the_browser
async def test_the_operator_serves_the_page_of_what_it_knows_and_so_does_a_standby(
    tab: Tab, browser: Browser, with_crd: ControlPlane, cluster: Cluster, settings: Callable[[str], str]
) -> None:
    election = f"leaderElection: {{resourceNamespace: {cluster.namespace}}}\n"
    config = settings(SETTINGS + election)
    with (
        Operator(with_crd, "--config", config, leader_elect=True) as operator,
        Operator(with_crd, "--config", config, leader_elect=True) as standby,
    ):
        first = address_of_page(operator)
        await open_(tab, first)
        await open_tables(tab)
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
        await tab.until("document.querySelectorAll('#moments b').length")
        stages = await texts(tab, "#moments b")
        assert set(stages) == {"created", "complete", "first bound", "last bound", "scheduled", "running"}
        assert (stages[0], stages[-1]) == ("created", "running")
        assert await texts(tab, "#members td:not(:first-child)") == ["n1", "Running", "–"] * 2
        await tab.until(
            "[...document.querySelectorAll('#bars .name')].some((name, at) => "
            f"name.textContent === '{cluster.namespace}/runs' && "
            "document.querySelectorAll('#bars .unseen')[at].textContent.includes('running for'))"
        )
        # Groups of other tests may be there as well.
        assert all(int(number) >= 1 for number in await texts(tab, "#running, #waiting"))
        await drop(tab, "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nstatus: {allocatable: {cpu: 8, pods: 9}}")
        await tab.until(told("job.yaml has no pods for gangsched")("#trying"))
        assert tab.problems == []
        # The next browser has a different address.
        assert address_of_page(operator) != first
        async with chromium.tab(browser) as other:
            await open_(other, address_of_page(standby))
            await open_tables(other)
            await other.until(told(f"{cluster.namespace}/runs (2)")("#nodes"))
            await other.until(told("This replica does not lead")("#trouble"))
            await other.until(told(f"{cluster.namespace}/runs")("#groups"))
            await other.until(told("None of 2 members fits; missing on the nodes that accept them: cpu 2")("#line"))
        assert "standby" in standby.get("/readyz")[1]
        assert f"token={first.rpartition('=')[2]}" in operator.log


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
    await open_tables(tab)
    assert "token" not in await tab.page.evaluate("location.href")
    cluster.add_node("n1", cpu="2")
    cluster.add_group("runs", min_member=2)
    cluster.add_pods("runs", 2)
    await tab.until(told(f"{cluster.namespace}/runs (2)")("#nodes"))
    cluster.add_group("waits", min_member=2)
    cluster.add_pods("waits", 2)
    await tab.until(told("None of 2 members fits; missing on the nodes that accept them: cpu 2")("#line"))
    await tab.page.evaluate("document.querySelector('#line .name').click()")
    await tab.until(told(f"the end of {cluster.namespace}/runs")("#helps"))
    await tab.page.keyboard.press("Escape")
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
    assert {each[-1] for each in zip(*[iter(await texts(tab, "#strategies td"))] * 4, strict=True)} == {"now"}
    assert len(await texts(tab, "#strategies button")) == 5
    await drop(tab, "kind: [")
    await tab.until(told("the manifest")("#trying"))
    assert not await tab.page.evaluate(told("tried")("#groups"))
    assert {url.split("/")[2] for url in tab.requested} == {address.split("/")[2]}
    assert tab.problems == []
