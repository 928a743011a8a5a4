from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest

from gangsched.config import settings
from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.plugins import ENTRY_POINTS, InvalidPlugin, installed_strategies
from gangsched.config.settings import Settings
from gangsched.core.objects.strategy import Room, Scarce

CAPS = [2, 4]


def room() -> Room:
    return Room(
        rows=np.array([3, 7]),
        caps=np.array(CAPS),
        fullness=np.array([0.0, 0.5]),
        own=np.array([0, 0]),
        rank=np.array([0, 1]),
        preferences=(),
        scarce=lambda: Scarce(np.array(CAPS), np.array([0, 0])),
    )


class Answer:
    """A strategy that returns a given answer."""

    says: object = None

    def distribute(self, _room, _count):
        if isinstance(self.says, Exception | SystemExit):
            raise self.says
        return self.says


class NeedsArguments:
    def __init__(self, something):
        self.something = something


class WithoutMethod:
    pass


class Quits:
    def __init__(self):
        raise SystemExit(0)


class Rude(Exception):  # noqa: N818 - a plug-in's
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def point(name: str, what: str = "Answer") -> EntryPoint:
    return EntryPoint(name=name, value=f"{__name__}:{what}", group=ENTRY_POINTS)


def test_a_plug_in_is_found_by_its_name(monkeypatch):
    monkeypatch.setattr(Answer, "says", [(7, 3)])
    found = installed_strategies([point("example.com/answer")])
    assert found.keys() == {"example.com/answer"}
    assert found["example.com/answer"].distribute(room(), 3) == [(7, 3)]


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([point("Answer")], "'Answer' cannot be named by a PodGroup: name its entry point like example.com/name"),
        ([point("Pack")], "'Pack' cannot be named by a PodGroup"),
        ([point("a/" + "b" * 252)], "with at most 253 characters"),
        ([point("a/b"), point("a/b")], "'a/b' is also provided by another package: uninstall one of them"),
        ([point("a/b", "Missing")], "cannot be loaded (AttributeError: "),
        ([point("a/b", "NeedsArguments")], "cannot be loaded (TypeError: "),
        ([point("a/b", "Quits")], "cannot be loaded (SystemExit: 0)"),
        ([point("a/b", "WithoutMethod")], "the class has no method distribute(room, count)): correct or uninstall"),
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
        (SystemExit(0), "it failed (SystemExit: 0)"),
        (Rude(), "it failed (Rude: )"),
        ([(3, 1.9), (7, 1)], "it failed (TypeError: "),
        ([("3", 3)], "it failed (TypeError: "),
        (None, "it failed (TypeError: "),
        ([(3, 1), (3, 2)], "it names a node twice"),
        ([(3, 3)], "it gives a node no members, or more than the node has room for"),
        ([(3, -1), (7, 4)], "it gives a node no members, or more than the node has room for"),
        ([(3, 0), (7, 3)], "it gives a node no members, or more than the node has room for"),
        ([(4, 3)], "it gives a node no members, or more than the node has room for"),
        ([(7, 2)], "it places more or fewer members than the gang has"),
        ([(3, 2), (7, 4)], "it places more or fewer members than the gang has"),
    ],
)
def test_what_makes_no_sense_is_handed_out_to_nobody_and_logged_once(monkeypatch, caplog, says, why):
    monkeypatch.setattr(Answer, "says", says)
    strategy = installed_strategies([point("a/b")])["a/b"]
    assert strategy.distribute(room(), 3) == []
    assert strategy.distribute(room(), 3) == []
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith(f"the strategy plug-in a/b failed, and gangs that name it are packed: {why}")
    assert bool(record.exc_info) is why.startswith("it failed")


class Greedy:
    """Strategies that modify their arguments."""

    def distribute(self, room, count):
        room.caps.sort()
        return [(7, count)]


class Sly:
    def distribute(self, room, count):
        object.__setattr__(room, "caps", np.array([99, 99]))
        return [(3, count)]


class Endless:
    def distribute(self, _room, _count):
        return ((3, 1) for _ in iter(int, 1))


@pytest.mark.parametrize("plugin", ["Greedy", "Sly", "Endless"])
def test_one_that_tampers_with_what_it_sees_or_never_ends_harms_nobody(plugin):
    assert installed_strategies([point("a/b", plugin)])["a/b"].distribute(room(), 3) == []


def test_different_faults_are_logged_each_once_and_not_without_end(monkeypatch, caplog):
    strategy = installed_strategies([point("a/b")])["a/b"]
    for number in range(20):
        monkeypatch.setattr(Answer, "says", ValueError(f"fault {number % 12}\nof many"))
        strategy.distribute(room(), 3)
    told = [record.getMessage().rpartition("(")[2] for record in caplog.records]
    assert told == [f"ValueError: fault {number} of many)" for number in range(8)]


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
