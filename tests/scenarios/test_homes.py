"""Each container of the core is changed by one module, to whatever other it is handed on."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from gangsched.core.machine import Machine
from tests.homes import Homes
from tests.scenarios import (
    test_caps,
    test_news,
    test_parts,
    test_placeholders,
    test_prebinding,
    test_recovery,
    test_restarts,
    test_rollback,
    test_topology,
)

pytestmark = [pytest.mark.slow, pytest.mark.without("all", why="plays stories of other modules")]

MODULES = (
    *(test_caps, test_news, test_parts, test_placeholders, test_prebinding),
    *(test_recovery, test_restarts, test_rollback, test_topology),
)
STORIES = [
    function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("test_")
    and not inspect.signature(function).parameters
    and function.__module__ == module.__name__
]


def test_each_container_of_the_core_is_changed_by_one_module(monkeypatch: pytest.MonkeyPatch) -> None:
    homes, handle = Homes(), Machine.handle

    def following(machine: Machine, *args: object) -> object:
        homes.follow(machine)
        return handle(machine, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "handle", following)
    for story in STORIES:
        story()
    assert {what: sorted(who) for what, who in homes.changed.items() if len(who) > 1} == {}
    assert len(homes.changed) > 100
    assert {"Operations.bindings", "Ledger.claims", "Wait.refused_members"} <= homes.changed.keys()


def changed_elsewhere(values: dict[str, int]) -> None:
    """What the test has to notice: the dictionary of another module's object."""
    values["a"] = 1


def test_a_container_is_followed_to_whoever_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    homes, machine = Homes(), Machine.__new__(Machine)
    held: Callable[..., None] = changed_elsewhere
    monkeypatch.setitem(held.__globals__, "__name__", "gangsched.core.elsewhere")
    machine.held = {}  # type: ignore[attr-defined]
    homes.follow(machine)
    held(machine.held)  # type: ignore[attr-defined]
    assert homes.changed == {"Machine.held": {"elsewhere"}}
