"""The real workload controllers beside gangsched; `make workloads` builds them and runs these tests.

Each way to declare gangs has a control plane, a controller and an operator of its own, each test a namespace.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.controllers.build import is_built
from testbed.controllers.expected import ANNOTATION, AUTO, OWN, RACE, READY_AFTER_S
from testbed.controllers.running import running
from testbed.controllers.table import CONTROLLERS
from testbed.operator import Operator
from tests.integration import foreign
from tests.workloads.plays import Setting
from tests.workloads.settings import CONTROLLED, SETTINGS
from tests.workloads.sides import Kind, Scheduling, kind_for
from tests.workloads.stage import Stage


@dataclass(frozen=True)
class Side:
    """A control plane, on which gangs are declared in one way."""

    control_plane: ControlPlane
    column: str
    revive: Callable[[], None]
    """Starts the controller again if it has ended."""


def pytest_itemcollected(item: pytest.Item) -> None:
    for mark in (pytest.mark.integration, pytest.mark.workloads, pytest.mark.timeout(900)):
        item.add_marker(mark)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling | None:
    """The scheduler of workers for these tests."""
    return Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests of this folder by control plane, the longest first; all others stay where they are."""

    def order(item: pytest.Item) -> tuple[bool, bool, bool, str]:
        kind = _kind_of(item)
        return bool(kind), not (kind and kind.is_alone), not (kind and kind.late), str(kind)

    ordered = iter(sorted(filter(_is_here, items), key=order))
    items[:] = [next(ordered) if _is_here(item) else item for item in items]


def _is_here(item: pytest.Item) -> bool:
    return item.get_closest_marker("workloads") is not None


def _kind_of(item: pytest.Item) -> Kind | None:
    of = getattr(item, "callspec", None)
    found = of.params.get("side") if of else None
    return found if isinstance(found, Kind) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise by workload and way to declare it, and by play where a test has plays, else by the page's section."""
    if "side" not in metafunc.fixturenames:
        return
    plays = "play" in metafunc.fixturenames
    chosen = [
        (setting, column)
        for setting in SETTINGS
        for column in setting.row.columns()
        if plays or _has_section(setting, column)
    ]
    names = ["side", "setting", *(["play"] if plays else [])]
    told = [
        pytest.param(
            *(kind_for(setting.row, column), setting, *play),
            id="-".join((setting.kind, column, *play)),
            marks=[pytest.mark.sample] if _is_quick(setting, column, play) else [],
        )
        for setting, column in chosen
        for play in ([[play] for play in setting.row.plays(column)] if plays else [[]])
    ]
    metafunc.parametrize(names, told, indirect=["side"], scope="module")


def _is_quick(setting: Setting, column: str, play: list[str]) -> bool:
    """Whether `make samples` plays it: the race of the controllers that build quickly, without any declaration."""
    row = setting.row
    quick = row.controller and CONTROLLERS[row.controller].quick and row.kind == _first_of(row.controller)
    return bool(quick) and column == AUTO and play == [RACE]


def _first_of(controller: str) -> str:
    return next(setting.kind for setting in SETTINGS if setting.row.controller == controller)


def _has_section(setting: Setting, column: str) -> bool:
    """Whether its page has a section of its own for it; both ways without a PodGroup share one.

    Objects of another kind, which share a section too, have their own.
    """
    others = {
        (other.row.file, other.path, other.row.section(column))
        for other in SETTINGS[: SETTINGS.index(setting)]
        if column in other.row.columns()
    }
    return column != ANNOTATION and (setting.row.file, setting.path, setting.row.section(column)) not in others


@pytest.fixture(scope="module")
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """gangsched and a controller, started as that way to declare gangs requires."""
    kind: Kind = request.param
    name, own = kind.controller, kind.column == OWN
    if name and not is_built(CONTROLLERS[name]):
        pytest.skip(f"{name} is not built: run make workloads")
    controlled = CONTROLLED[name]
    arguments = controlled.own_arguments if own else ()
    config = {**controlled.config, **(controlled.own_config if own else {})}
    gates, served = (controlled.gates, controlled.served) if own or kind.gated else ((), ())
    with contextlib.ExitStack() as stack:
        control_plane = stack.enter_context(
            ControlPlane(
                extra_apiserver_args=(*gates, *served),
                extra_controller_args=gates,
                ready_after_s=READY_AFTER_S if kind.late else 0,
            )
        )
        crds.install(control_plane)
        if own and controlled.dialect:
            foreign.install(control_plane, controlled.dialect)
        nothing = contextlib.nullcontext(lambda: None)
        revive = stack.enter_context(running(control_plane, name, *arguments, config=config) if name else nothing)
        for number in range(2):
            control_plane.add_node(f"n{number}", cpu="4")
        served_names = ("gangsched", controlled.scheduler if own else "")
        names = [f"--scheduler-name={each}" for each in served_names if each]
        operator = stack.enter_context(Operator(control_plane, *names))
        yield Side(control_plane, kind.column, revive)
        assert "Traceback" not in operator.log, operator.log[operator.log.index("Traceback") - 500 :]


@pytest.fixture
def stage(side: Side, setting: Setting) -> Iterator[Stage]:
    """The test's own namespace; its pods are deleted afterwards to free the nodes for the next test."""
    side.revive()
    labels = {"gangsched.io/gang": "auto"} if side.column == AUTO else {}
    name = f"test-{secrets.token_hex(4)}"
    side.control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    found = Stage(side.control_plane, name, setting.path)
    found.until(lambda: side.control_plane.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    yield found
    found.clear()


@pytest.fixture
def played(side: Side, setting: Setting, play: str, record_property: Callable[[str, object], None]) -> None:
    """Record how this play ends, for `tests.workloads.written`."""
    record_property("played", (setting.kind, side.column, play))
