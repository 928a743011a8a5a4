"""Puts the repository's root on the path, loads the checks that end every test run, and sets up hypothesis."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from itertools import accumulate
from pathlib import Path

import hypothesis
import pytest

# No test talks to a cluster that it has not started.
os.environ["KUBECONFIG"] = "/nonexistent/kubeconfig"

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest_plugins = ["tests.run_checks"]

# The duration of an example depends on the machine's load, not on the code.
_COMMON = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
# `make check` and CI try the same examples each time, so that a failure is due to the change, not to chance.
hypothesis.settings.register_profile("check", _COMMON, max_examples=5, derandomize=True)
# A failing example is enough: shrinking it takes minutes.
_UNSHRUNK = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
hypothesis.settings.register_profile("mutations", hypothesis.settings.get_profile("check"), phases=_UNSHRUNK)
hypothesis.settings.register_profile("test", _COMMON, max_examples=40, derandomize=os.environ.get("CI") == "true")
# No database of earlier failures, so that the seed alone reproduces a run.
hypothesis.settings.register_profile("nightly", _COMMON, max_examples=2000, database=None)
hypothesis.settings.load_profile("test")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--hypothesis-seed")
    if seed is not None:
        from tests import effort

        effort.first_seed = int(seed)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop most cases of long tables in quick runs, except those of pure functions, and mix the files."""
    from tests import effort

    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for cases in tests.values() for item in (cases if _is_table(cases[0]) else effort.few(cases))}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = _mixed([item for item in items if item in kept])


def _is_table(item: pytest.Item) -> bool:
    """Whether the test is one of pure functions, whose cases take no time."""
    return item.path.parent == Path(__file__).parent / "core"


def _mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """Mix the files that wait for processes with those that compute, so that all workers together use the processors.

    Files that wait begin a little earlier, because each takes longer.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = {path: found for path, found in files.items() if _marked(found, "integration")}
    computing = {path: found for path, found in files.items() if path not in waiting}
    places = {path: 0.9 * place for path, place in _places(waiting).items()} | _places(computing)
    return sorted(items, key=lambda item: places[item.path])


def _places(files: dict[Path, list[pytest.Item]]) -> dict[Path, float]:
    """After which part of the whole time each file begins if one runs after the other."""
    ends = list(accumulate(sum(map(_usual_s, found)) for found in files.values()))
    return {path: begin / ends[-1] for path, begin in zip(files, [0.0, *ends], strict=False)}


def _usual_s(item: pytest.Item) -> float:
    return 2.5 if _marked([item], "slow", "integration", "hypothesis") else 0.07


def _marked(items: list[pytest.Item], *marks: str) -> bool:
    return any(item.get_closest_marker(mark) is not None for item in items for mark in marks)


def pytest_collectstart() -> None:
    """What is collected stays, so that the garbage collector would look at ever more for nothing."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt everything loaded by now from garbage collection, which costs time and disturbs tests that measure it.

    What tests leave behind is collected more seldom than usual, which saves a tenth of the processor time of stories.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """While a test runs, faults of the core fail it, and machines rest. Fixtures for that would take thrice as long."""
    watching = [*_watching(item)]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in watching]
    for owner, name, method in watching:
        setattr(owner, name, method)
    try:
        return (yield)
    finally:
        for owner, name, method in before:
            setattr(owner, name, method)


def _watching(item: pytest.Item) -> Iterator[tuple[type, str, object]]:
    """The methods of the core that are replaced in a test, each with its class and its name.

    An exception in the core fails the test, unless it is about such faults (marker `faults`). A call of the machine
    that is due at once changes something, or the machine rests soon (`tests.rest`).
    """
    # If nothing has imported the core yet, importing it here would count towards its coverage.
    containment = sys.modules.get("gangsched.core.containment")
    if containment is not None and item.get_closest_marker("faults") is None:
        yield containment.Containment, "park", _fail
        yield sys.modules["gangsched.core.contention.forecasting"].Forecasting, "omit", _omit
    machine = sys.modules.get("gangsched.core.machine")
    if machine is not None:
        from tests.rest import watched

        yield machine.Machine, "handle", watched(machine.Machine.handle)


def _fail(_self: object, _key: object, _step: object, error: Exception, _now: float) -> None:
    raise error


def _omit(_self: object, error: Exception, _now: float) -> None:
    raise error
