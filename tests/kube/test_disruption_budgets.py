"""What is read of a PodDisruptionBudget, and what the core hears while none can be read."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import BudgetGone, BudgetSeen, BudgetsHidden, BudgetsReplaced, Event
from gangsched.core.objects.shape import Requirement
from gangsched.kube.client.discovery import Discovery
from gangsched.kube.foreign.watch import ForeignWatch
from gangsched.kube.reading.disruption_values import WATCHED_BUDGETS, disruption_budget
from gangsched.kube.wire import disruption_objects as wire
from tests.kube.fake_api import FakeApi, Inbox, body, page, serving, status, stream

API = "/apis/policy/v1"
LIST = f"{API}/poddisruptionbudgets"
SERVED = body({"resources": [{"name": "poddisruptionbudgets"}]})
DENIED = status(403, "you may not", reason="Forbidden")
WHY = (
    "gangsched may not read poddisruptionbudgets.policy: install this version's chart, with its value `rbac.create` "
    "true, or give its account the verbs list and watch on them in a ClusterRole."
)


def read(**found: Any) -> DisruptionBudget:
    whole = {"metadata": {"name": "b", "namespace": "team"}, **found}
    return disruption_budget(msgspec.json.decode(msgspec.json.encode(whole), type=wire.DisruptionBudget))


@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        pytest.param(None, None, id="no spec"),
        pytest.param({"maxUnavailable": 1}, None, id="no selector"),
        pytest.param({"minAvailable": "50%", "selector": {}}, (), id="all"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, (Requirement("a", "In", ("b",)),), id="labels"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]}]}},
            (Requirement("a", "NotIn", ("b", "c")),),
            id="expressions",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}},
            (Requirement("a", "In", ("b",)), Requirement("c", "Exists")),
            id="both",
        ),
    ],
)
def test_it_selects_what_its_selector_says(spec: Any, selector: Any) -> None:
    assert read(spec=spec) == DisruptionBudget("team", "b", selector)


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        pytest.param(None, {}, id="nothing said yet"),
        pytest.param(
            {"disruptionsAllowed": 2, "expectedPods": 5},
            {"allowed": 2, "expected": 5},
            id="numbers",
        ),
        pytest.param({"disruptedPods": None}, {}, id="nothing disrupted"),
        pytest.param(
            {"disruptionsAllowed": 0, "disruptedPods": {"p-0": "2026-01-01T00:00:00Z", "p-1": None}},
            {"disrupted": frozenset({"p-0", "p-1"})},
            id="disrupted",
        ),
        pytest.param({"currentHealthy": 1, "desiredHealthy": 2}, {}, id="too few are healthy"),
        pytest.param({"currentHealthy": 2, "desiredHealthy": 2}, {"counts_unready": False}, id="enough are healthy"),
        pytest.param({"currentHealthy": 0, "desiredHealthy": 0}, {}, id="it wants none to be healthy"),
    ],
)
def test_it_allows_what_its_controller_says(status: Any, fields: Any) -> None:
    assert read(status=status) == DisruptionBudget("team", "b", None, **fields)


@pytest.mark.parametrize(("policy", "counts"), [("AlwaysAllow", False), ("IfHealthyBudget", True), (None, True)])
def test_its_policy_says_whether_unready_pods_need_its_permission(policy: str | None, counts: bool) -> None:  # noqa: FBT001
    assert read(spec={"unhealthyPodEvictionPolicy": policy}).counts_unready == counts


def sent(name: str, version: int, allowed: int = 0) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {"disruptionsAllowed": allowed}}


async def heard(api: FakeApi, number: int) -> list[Event]:
    """The first events about budgets that the core gets from this server."""
    inbox = Inbox()
    async with serving(api) as session:
        discovery = Discovery(session, every_s=0.01)
        watch = ForeignWatch(
            session, WATCHED_BUDGETS, inbox.post, observer=inbox, discovery=discovery, retry_s=0.01, patience_s=60.0
        )
        task = asyncio.create_task(watch.run())
        await inbox.until(lambda: len(inbox.events) >= number)
        assert watch.settled.is_set()
        task.cancel()
        await asyncio.wait([task])
    return inbox.events


async def test_budgets_are_listed_and_watched() -> None:
    api = FakeApi.answering("GET", API, SERVED)
    api.answer("GET", LIST, page([sent("a", 4), sent("b", 5)], 5))
    changes = ({"type": "MODIFIED", "object": sent("a", 6, 2)}, {"type": "DELETED", "object": sent("b", 7)})
    api.answer("WATCH", LIST, stream(*changes, then="hang"))
    a, b = (DisruptionBudget("team", name, None) for name in "ab")
    assert await heard(api, 3) == [
        BudgetsReplaced((a, b)),
        BudgetSeen(DisruptionBudget("team", "a", None, allowed=2)),
        BudgetGone("team/b"),
    ]


async def test_without_the_right_the_core_is_told_why_and_the_log_what_follows(caplog: Any) -> None:
    """And with the right that is granted later, everything counts as if it had been there from the start."""
    api = FakeApi.answering("GET", API, SERVED, SERVED, SERVED)
    api.answer("GET", LIST, DENIED, DENIED, page([], 5))
    api.answer("WATCH", LIST, stream(then="hang"))
    assert await heard(api, 2) == [BudgetsHidden(WHY), BudgetsReplaced(())]
    [warned] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warned.__dict__["so"] == "no pod is evicted for a group of higher priority"


async def test_a_server_that_does_not_serve_them_has_none() -> None:
    api = FakeApi.answering("GET", API, status(404, "not found", reason="NotFound"))
    api.answer("GET", "/apis", body({"groups": []}))
    assert await heard(api, 1) == [BudgetsReplaced(())]
