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
from testbed.controllers.matrix import ANNOTATION, AUTO, EXPECTED, OWN
from testbed.controllers.running import running
from testbed.controllers.table import CONTROLLERS
from testbed.operator import Operator
from tests.integration import foreign
from tests.workloads.plays import PLAYS, Setting
from tests.workloads.stage import Stage


@dataclass(frozen=True)
class Side:
    """A control plane, on which gangs are declared in one way."""

    control_plane: ControlPlane
    setting: Setting
    column: str


def pytest_itemcollected(item: pytest.Item) -> None:
    for mark in (pytest.mark.integration, pytest.mark.workloads, pytest.mark.timeout(300)):
        item.add_marker(mark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each way to declare the module's workload and, for tests that play, each play."""
    if "side" not in metafunc.fixturenames:
        return
    columns = EXPECTED[metafunc.module.SETTING.kind].columns()
    metafunc.parametrize("side", columns, indirect=True, scope="module")
    if "play" in metafunc.fixturenames:
        metafunc.parametrize("play", PLAYS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without plays that are not possible; a page has one section for both ways without a PodGroup."""
    left_out = [item for item in items if item.get_closest_marker("workloads") and not _possible(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _possible(item: pytest.Item) -> bool:
    of = getattr(item, "callspec", None)
    if of is None or "side" not in of.params:
        return True
    column, play = of.params["side"], of.params.get("play")
    setting: Setting = item.getparent(pytest.Module).obj.SETTING  # type: ignore[union-attr]
    return column != ANNOTATION if play is None else play in EXPECTED[setting.kind].plays(column)


@pytest.fixture(scope="module")
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """gangsched and the module's controller, started as that way to declare gangs asks for."""
    setting: Setting = request.module.SETTING
    column: str = request.param
    name = EXPECTED[setting.kind].controller
    if name and not is_built(CONTROLLERS[name]):
        pytest.skip(f"{name} is not built: run make workloads")
    arguments = setting.own_arguments if column == OWN else ()
    config = {**setting.config, **(setting.own_config if column == OWN else {})}
    with contextlib.ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane())
        crds.install(control_plane)
        if column == OWN and setting.dialect:
            foreign.install(control_plane, setting.dialect)
        if name:
            stack.enter_context(running(control_plane, name, *arguments, config=config))
        for number in range(2):
            control_plane.add_node(f"n{number}", cpu="4")
        operator = stack.enter_context(Operator(control_plane))
        yield Side(control_plane, setting, column)
        assert "Traceback" not in operator.log, operator.log[operator.log.index("Traceback") - 500 :]


@pytest.fixture
def stage(side: Side) -> Iterator[Stage]:
    """A namespace of the test's own; its pods are gone afterwards, so that the next test has the nodes' room."""
    labels = {"gangsched.io/gang": "auto"} if side.column == AUTO else {}
    name = f"test-{secrets.token_hex(4)}"
    side.control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
    found = Stage(side.control_plane, name, side.setting.path)
    found.until(lambda: side.control_plane.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    yield found
    found.clear()


@pytest.fixture
def played(side: Side, play: str, record_property: Callable[[str, object], None]) -> None:
    """Has `tests.workloads.written` write down how this play ends."""
    record_property("played", (side.setting.kind, side.column, play))
