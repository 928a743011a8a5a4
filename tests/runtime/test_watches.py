from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gangsched.kube.client.contact import REPORTED_AFTER_S
from gangsched.runtime.watches import Watches


class Resource:
    def __init__(self, name: str) -> None:
        self.name = name


class FakeReflector:
    """A watch in a fixed state; `renewed` counts the lists requested."""

    def __init__(self, name: str, *, listed: bool = True) -> None:
        self.resource = Resource(name)
        self.synced, self.going = asyncio.Event(), asyncio.Event()
        if listed:
            self.synced.set()
            self.going.set()
        self.problem, self.interrupted_at, self.last_heard = "", float("inf"), time.monotonic()
        self.renewed = 0
        self.name = name
        self.settled = self.synced
        self.hidden = False
        self.disregarded = ""

    async def run(self) -> None:
        """Deliver no event."""

    async def renew(self, cause: str) -> None:
        self.renewed += cause == "Leading"

    def disregard_denials(self) -> None:
        self.disregarded = self.disregarded or "after the lists"

    def hide_if_unsettled(self) -> None:
        self.hidden = True


def mandate(**said: bool) -> Any:
    return SimpleNamespace(**said)


def watches(
    *, pods: Any = None, drivers: Any = None, foreign: Any = None, demands: Any = None
) -> tuple[Watches, FakeReflector]:
    groups: Any = FakeReflector("podgroups")
    pods = pods or FakeReflector("pods")
    of: Callable[[Any], list[Any]] = lambda watch: [] if watch is None else [watch]  # noqa: E731
    needed: list[Any] = [*of(drivers), pods, groups]
    return Watches(needed, pods=pods, groups=groups, foreign=of(foreign), unhurried=of(demands)), groups


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    for what in ("_CATCH_UP_S", "_FOREIGN_S", "_SETTLE_S"):
        monkeypatch.setattr(f"gangsched.runtime.watches.{what}", 0.01)


async def test_nothing_begins_before_every_kind_is_listed():
    pods = FakeReflector("pods", listed=False)
    found, _ = watches(pods=pods)
    listing = asyncio.create_task(found.listed())
    await asyncio.sleep(0.03)
    assert not listing.done()
    pods.synced.set()
    await asyncio.wait_for(listing, 5)


async def test_other_systems_groups_are_gone_on_without_after_a_while_and_demands_never_waited_for():
    foreign, demands = FakeReflector("theirs", listed=False), FakeReflector("demands", listed=False)
    found, _ = watches(foreign=foreign, demands=demands)
    await asyncio.wait_for(found.listed(), 5)
    assert (foreign.hidden, demands.hidden) == (True, False)


async def test_what_a_server_denied_before_it_listed_what_is_always_needed_is_asked_again():
    pods, foreign = FakeReflector("pods", listed=False), FakeReflector("theirs")
    found, _ = watches(pods=pods, foreign=foreign)
    listing = asyncio.create_task(found.listed())
    await asyncio.sleep(0.02)
    before = foreign.disregarded
    pods.synced.set()
    await asyncio.wait_for(listing, 5)
    assert (before, foreign.disregarded) == ("", "after the lists")


async def test_each_runs_under_a_name():
    found, _ = watches(pods=FakeReflector("pods"), foreign=FakeReflector("theirs"), demands=FakeReflector("demands"))
    tasks = dict(found.tasks())
    for work in tasks.values():
        await work
    assert list(tasks) == ["reflector of pods", "reflector of podgroups", "watch of theirs", "watch of demands"]


@pytest.mark.parametrize(("elected", "handed_over", "lists"), [(False, False, 0), (True, False, 1), (True, True, 1)])
async def test_statuses_are_read_again_where_another_may_have_led_and_what_it_did_last_waited_for(
    elected, handed_over, lists, monkeypatch
):
    monkeypatch.setattr("gangsched.runtime.watches._SETTLE_S", 0.2)
    found, groups = watches()
    began = time.monotonic()
    await found.caught_up(mandate(elected=elected, handed_over=handed_over))
    assert groups.renewed == lists
    assert (time.monotonic() - began >= 0.2) == handed_over


async def test_a_watch_that_was_interrupted_is_waited_for_but_not_for_ever(monkeypatch):
    monkeypatch.setattr("gangsched.runtime.watches._CATCH_UP_S", 0.2)
    drivers = FakeReflector("csidrivers", listed=False)
    found, _ = watches(drivers=drivers)
    catching_up = asyncio.create_task(found.caught_up(mandate(elected=False, handed_over=False)))
    await asyncio.sleep(0.02)
    assert not catching_up.done()
    await asyncio.wait_for(catching_up, 5)
    assert not drivers.going.is_set()


async def test_pods_are_waited_for_without_limit_because_they_show_what_a_former_leader_has_bound():
    """Regression (soak): their list came 84 ms after the limit, and a half-bound quorum was not recognised as one."""
    pods = FakeReflector("pods", listed=False)
    found, _ = watches(pods=pods)
    catching_up = asyncio.create_task(found.caught_up(mandate(elected=True, handed_over=False)))
    await asyncio.sleep(0.1)
    assert not catching_up.done()
    pods.going.set()
    await asyncio.wait_for(catching_up, 5)


async def test_what_keeps_news_from_coming_is_told_once_it_has_lasted():
    pods = FakeReflector("pods")
    found, _ = watches(pods=pods)
    now = time.monotonic()
    assert found.problems() == []
    pods.problem, pods.interrupted_at = "no answer", now
    assert found.problems() == []
    pods.interrupted_at = now - REPORTED_AFTER_S
    assert found.problems() == ["the watch of pods has been interrupted for 5 s: no answer"]
    pods.interrupted_at, pods.last_heard = float("inf"), now - 151
    assert found.problems() == ["the watch of pods has been silent for 151 s"]
    pods.synced.clear()
    assert found.problems() == ["pods are not listed yet: no answer"]
