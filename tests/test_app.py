"""The composition root must wire in the check that precedes every write."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gangsched import app
from gangsched.config.settings import Settings
from gangsched.core.objects.policy import Policy
from gangsched.kube.client.session import ApiSession
from tests.kube.fake_api import FakeApi, body, serving, status

LEASE = "/apis/coordination.k8s.io/v1/namespaces/sys/leases/gangsched"
SETTINGS = Settings.model_validate({"leaderElection": {"resourceNamespace": "sys"}})


def shell_of(session: ApiSession, *, dry_run: bool, leader_elect: bool) -> Any:
    return app._Shell(  # noqa: SLF001
        session, SETTINGS, asyncio.Event(), policy=Policy(), dry_run=dry_run, leader_elect=leader_elect
    )


def may(shell: Any) -> bool:
    """Whether it may write, as its metric says."""
    page = shell._metrics.render().decode()  # noqa: SLF001
    return "gangsched_leader 1.0" in page


@pytest.mark.parametrize(("dry_run", "may_write"), [(False, True), (True, False)])
async def test_without_leader_election_everything_may_be_written_unless_the_run_is_dry(dry_run, may_write):
    async with serving(FakeApi()) as session:
        shell = shell_of(session, dry_run=dry_run, leader_elect=False)
        assert may(shell) is may_write


@pytest.mark.parametrize("enabled", [True, False])
async def test_budgets_are_watched_only_where_groups_may_preempt(monkeypatch, enabled):
    chosen = {"preemption": {"enabled": enabled}, "leaderElection": {"resourceNamespace": "sys"}}
    monkeypatch.setattr("tests.test_app.SETTINGS", Settings.model_validate(chosen))
    async with serving(FakeApi()) as session:
        watches = shell_of(session, dry_run=True, leader_elect=False)._watches  # noqa: SLF001
        tasks = dict(watches.tasks())
        for task in tasks.values():
            task.close()
    assert ("watch of poddisruptionbudgets.policy" in tasks) is enabled


async def test_with_leader_election_nothing_is_written_before_the_lease_is_held_and_after_it_was_released():
    api = FakeApi()

    async def grant(request):
        sent = await request.json()
        return await body({"metadata": {"resourceVersion": "1"}, "spec": sent["spec"]})(request)

    api.answer("GET", LEASE, status(404))
    api.answer("POST", LEASE.removesuffix("/gangsched"), grant)
    api.answer("PATCH", LEASE, grant)
    async with serving(api) as session:
        shell = shell_of(session, dry_run=False, leader_elect=True)
        leadership = shell._mandate  # noqa: SLF001
        before = may(shell)
        await leadership.acquire()
        while_held = may(shell)
        await leadership.release()
        assert (before, while_held, may(shell)) == (False, True, False)
    assert [asked.method for asked in api.asked] == ["GET", "POST", "PATCH"]


def kubeconfig(path: Path, user: dict[str, Any]) -> str:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    users = [{"name": "c", "user": user}]
    path.write_text(json.dumps({"current-context": "c", "clusters": [cluster], "contexts": [context], "users": users}))
    return str(path)


async def test_an_address_that_is_taken_ends_the_process_in_order(tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings.model_validate({"listen": f"127.0.0.1:{taken.getsockname()[1]}"})
        path = kubeconfig(tmp_path / "config", {})
        status = await app.run(settings, kubeconfig=path, context=None, dry_run=False, leader_elect=True)
    assert status == app.FAILED
    assert [record.message for record in caplog.records if record.levelname == "CRITICAL"] == [
        "gangsched cannot continue"
    ]


@pytest.mark.slow
def test_sigterm_ends_a_process_whose_plug_in_for_credentials_hangs_at_the_start(tmp_path):
    pid = tmp_path / "pid"
    plugin: dict[str, Any] = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}
    plugin["args"] = ["-c", f"echo $$ > {pid}; exec sleep 60"]
    path = kubeconfig(tmp_path / "config", {"exec": plugin})
    with subprocess.Popen([sys.executable, "-m", "gangsched", "run", "--kubeconfig", path]) as process:
        try:
            deadline = time.monotonic() + 30
            while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
                time.sleep(0.05)
            process.terminate()
            assert process.wait(10) == app.ENDED
        finally:
            process.kill()
            with suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
