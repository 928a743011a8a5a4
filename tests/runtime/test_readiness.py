from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gangsched.runtime.probes import Readiness


def parts(**changed: Any) -> tuple[Readiness, SimpleNamespace]:
    """A leading replica with these changes."""
    world = SimpleNamespace(
        synced=True,
        silent_s=0.0,
        rivals="",
        set_aside=[],
        contact=[],
        watches=[],
        problem="",
        standby=False,
        stop=asyncio.Event(),
        dry_run=False,
    )
    vars(world).update(changed)
    engine: Any = SimpleNamespace(
        synced=world.synced,
        silent_s=lambda: world.silent_s,
        rivals_problem=lambda: world.rivals,
        set_aside=lambda: world.set_aside,
    )
    contact: Any = SimpleNamespace(problems=lambda: world.contact)
    watches: Any = SimpleNamespace(problems=lambda: world.watches)
    mandate: Any = SimpleNamespace(
        problem=world.problem, standby=world.standby, role=lambda *, decides: "leading" if decides else "standby"
    )
    return Readiness(engine, contact, watches=watches, mandate=mandate, stop=world.stop, dry_run=world.dry_run), world


NOT_YET = "this replica is neither leader nor standby yet: its first scheduling cycle has not ended"


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        ({}, []),
        ({"synced": False, "standby": True}, []),
        ({"synced": False}, [NOT_YET]),
        ({"synced": False, "watches": ["pods are not listed yet"]}, ["pods are not listed yet"]),
        ({"contact": ["a"], "watches": ["b"], "problem": "c", "rivals": "d"}, ["a", "b", "c", "d"]),
        ({"rivals": "d"}, ["d"]),
    ],
)
def test_it_says_what_keeps_it_from_being_ready(changed: dict[str, Any], problems: list[str]) -> None:
    readiness, world = parts(**changed)
    assert readiness.why_not_ready() == problems
    world.stop.set()
    assert readiness.why_not_ready() == ["shutting down"]


def test_an_engine_that_stands_still_is_not_alive() -> None:
    assert parts(silent_s=30.0)[0].why_not_alive() == []
    assert parts(silent_s=31.0)[0].why_not_alive() == ["the engine has been stuck for 31 s"]


def test_its_role_is_that_of_its_part_unless_it_only_shows_what_it_would_do() -> None:
    assert parts()[0].role() == "leading"
    assert parts(synced=False)[0].role() == "standby"
    assert parts(dry_run=True)[0].role() == "dry run"


def test_it_names_what_is_set_aside_though_it_is_ready() -> None:
    assert parts()[0].notes() == []
    [note] = parts(set_aside=["Node n1 (ValueError)"])[0].notes()
    assert note.endswith(": Node n1 (ValueError)")
    readiness, _ = parts(set_aside=[f"Node n{at} (ValueError)" for at in range(12)])
    [note] = readiness.notes()
    assert note.endswith("n9 (ValueError) and 2 more")
    assert readiness.why_not_ready() == []
