"""What the composition root must not forget: the question that is asked before every write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gangsched import app
from gangsched.config.settings import Settings
from gangsched.core.machine import Machine
from gangsched.core.policy import Policy
from gangsched.kube.session import ApiSession
from gangsched.runtime.executor import Executor
from tests.kube.fake_api import FakeApi, body, serving, status

LEASE = "/apis/coordination.k8s.io/v1/namespaces/sys/leases/gangsched"
SETTINGS = Settings.model_validate({"leaderElection": {"resourceNamespace": "sys"}})


@pytest.fixture
def allowed(monkeypatch) -> list[Callable[[], bool]]:
    """What the executor has been given to ask."""
    asked: list[Callable[[], bool]] = []

    def executor(*args: Any, allowed: Callable[[], bool], **kwargs: Any) -> Executor:
        asked.append(allowed)
        return Executor(*args, allowed=allowed, **kwargs)

    monkeypatch.setattr(app, "Executor", executor)
    return asked


def shell_of(session: ApiSession, *, dry_run: bool, leader_elect: bool) -> Any:
    machine = Machine(Policy())
    return app._Shell(  # noqa: SLF001
        session, SETTINGS, asyncio.Event(), machine=machine, dry_run=dry_run, leader_elect=leader_elect
    )


@pytest.mark.parametrize(("dry_run", "may_write"), [(False, True), (True, False)])
async def test_without_leader_election_everything_may_be_written_unless_the_run_is_dry(allowed, dry_run, may_write):
    async with serving(FakeApi()) as session:
        shell_of(session, dry_run=dry_run, leader_elect=False)
    assert [may() for may in allowed] == [may_write]


async def test_with_leader_election_nothing_is_written_before_the_lease_is_held_and_after_it_was_released(allowed):
    api = FakeApi()

    async def grant(request):
        sent = await request.json()
        return await body({"metadata": {"resourceVersion": "1"}, "spec": sent["spec"]})(request)

    api.answer("GET", LEASE, status(404))
    api.answer("POST", LEASE.removesuffix("/gangsched"), grant)
    api.answer("PATCH", LEASE, grant)
    async with serving(api) as session:
        shell = shell_of(session, dry_run=False, leader_elect=True)
        leadership = shell._leadership  # noqa: SLF001
        assert leadership is not None
        (may,) = allowed
        before = may()
        await leadership.acquire()
        while_held = may()
        await leadership.release()
        assert (before, while_held, may()) == (False, True, False)
    assert [asked.method for asked in api.asked] == ["GET", "POST", "PATCH"]
