from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest

from gangsched.config import settings
from gangsched.config.plugins import ENTRY_POINTS, InvalidPlugin, installed_strategies
from gangsched.config.settings import InvalidConfig, Settings
from gangsched.core.strategies import STRATEGIES, Room, Scarce

ROOM = Room(
    rows=np.array([3, 7]),
    caps=np.array([2, 4]),
    fullness=np.array([0.0, 0.5]),
    own=np.array([0, 0]),
    rank=np.array([0, 1]),
    preference=None,
    scarce=lambda: Scarce(np.array([2, 4]), np.array([0, 0])),
)


class Answer:
    """A strategy that says what it was told to say."""

    says: object = None

    def distribute(self, _room, _count):
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class NeedsArguments:
    def __init__(self, something):
        self.something = something


class WithoutMethod:
    pass


def point(name: str, what: str = "Answer") -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{what}", group=ENTRY_POINTS)


def test_without_plug_ins_there_are_the_strategies_of_gangsched():
    assert installed_strategies([]) == STRATEGIES


def test_a_plug_in_is_found_by_its_name_beside_the_others(monkeypatch):
    monkeypatch.setattr(Answer, "says", [(7, 3)])
    found = installed_strategies([point("example.com/answer")])
    assert found.keys() == {*STRATEGIES, "example.com/answer"}
    assert found["example.com/answer"].distribute(ROOM, 3) == [(7, 3)]


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([point("Answer")], "'Answer' cannot be named by a PodGroup: name its entry point like example.com/name"),
        ([point("Pack")], "'Pack' cannot be named by a PodGroup"),
        ([point("a/" + "b" * 252)], "with at most 253 characters"),
        ([point("a/b"), point("a/b")], "'a/b' is brought by another package as well: uninstall one of them"),
        ([point("a/b", "Missing")], "cannot be loaded (AttributeError: "),
        ([point("a/b", "NeedsArguments")], "cannot be loaded (TypeError: "),
        ([point("a/b", "WithoutMethod")], "it has no method distribute(room, count)): correct or uninstall"),
        ([EntryPoint("a/b", "no.such.module:X", ENTRY_POINTS)], "cannot be loaded (ModuleNotFoundError: "),
    ],
)
def test_one_that_cannot_be_used_is_named_with_the_remedy(points, says):
    with pytest.raises(InvalidPlugin) as refused:
        installed_strategies(points)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (ValueError("no"), "it failed (ValueError: no)"),
        (None, "it failed (TypeError: "),
        ([(3, 1), (3, 2)], "it names a node twice"),
        ([(3, 3)], "it gives a node more members than it has room for, or none"),
        ([(3, -1), (7, 4)], "it gives a node more members than it has room for, or none"),
        ([(3, 0), (7, 3)], "it gives a node more members than it has room for, or none"),
        ([(4, 3)], "it gives a node more members than it has room for, or none"),
        ([(7, 2)], "it gives places to more or fewer members than there are"),
        ([(3, 2), (7, 4)], "it gives places to more or fewer members than there are"),
    ],
)
def test_what_makes_no_sense_is_handed_out_to_nobody_and_logged_once(monkeypatch, caplog, says, why):
    monkeypatch.setattr(Answer, "says", says)
    strategy = installed_strategies([point("a/b")])["a/b"]
    assert strategy.distribute(ROOM, 3) == []
    assert strategy.distribute(ROOM, 3) == []
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.strategy == "a/b"
    assert record.why.startswith(why)


def test_a_broken_plug_in_is_an_error_of_the_configuration(monkeypatch):
    monkeypatch.setattr(settings, "installed_strategies", lambda: installed_strategies([point("Answer")]))
    with pytest.raises(InvalidConfig, match="cannot be named by a PodGroup"):
        Settings().policy()


def test_the_strategy_of_gpu_pods_must_be_there(monkeypatch):
    chosen = Settings.model_validate({"gpuStrategy": "example.com/answer"})
    with pytest.raises(
        InvalidConfig, match=r"gpuStrategy: 'example\.com/answer' is not installed: install the plug-in"
    ):
        chosen.policy()
    monkeypatch.setattr(settings, "installed_strategies", lambda: installed_strategies([point("example.com/answer")]))
    assert chosen.policy().gpu_strategy == "example.com/answer"
