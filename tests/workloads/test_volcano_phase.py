"""training-operator with Volcano's gang scheduling but no Volcano: it creates no pods before the phase is Inqueue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.controllers.build import is_built
from testbed.controllers.expected import AUTO
from testbed.controllers.running import running
from testbed.controllers.table import CONTROLLERS
from testbed.operator import Operator
from tests.integration.foreign import as_before_1_11, install
from tests.workloads.pages import manifest
from tests.workloads.plays import SIZE
from tests.workloads.stage import Stage

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"

pytestmark = pytest.mark.workloads


@pytest.fixture(params=[nullcontext, as_before_1_11], ids=["now", "Volcano 1.10"])
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    if not is_built(CONTROLLERS["training-operator"]):
        pytest.skip("training-operator is not built: run make workloads")
    stored: Callable[[ControlPlane], AbstractContextManager[object]] = request.param
    with ControlPlane() as control_plane:
        crds.install(control_plane)
        install(control_plane, "volcano")
        with stored(control_plane), running(control_plane, "training-operator", "--gang-scheduler-name=volcano"):
            for number in range(2):
                control_plane.add_node(f"n{number}", cpu="4")
            yield Stage(control_plane, "default", "apis/kubeflow.org/v1/pytorchjobs")


def phases(stage: Stage) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each.get("status", {}).get("phase", "") for each in stage.api.get(GROUPS)["items"]
    }


def test_its_pods_are_made_once_gangsched_writes_the_phase_and_then_one_job_runs_whole(
    stage: Stage, tmp_path: Path
) -> None:
    names = ("first", "second")
    with Operator(stage.control_plane):
        stage.apply("---\n".join(manifest("PyTorchJob", AUTO, name) for name in names))
        stage.until(lambda: sorted(phases(stage)) == [*names])
        time.sleep(3)
        without = (phases(stage), stage.counts(*names))
    config = tmp_path / "config.yaml"
    config.write_text("volcano: {writePhase: [default]}\n")
    with Operator(stage.control_plane, "--config", str(config)) as operator:
        stage.until(lambda: sorted(stage.counts(*names)) == [(SIZE, 0), (SIZE, SIZE)])
        runs, waits = sorted(names, key=lambda name: stage.counts(name)[0][1] == 0)
        stage.until(lambda: phases(stage) == {runs: "Running", waits: "Inqueue"})
        stage.remove(runs)
        stage.until(lambda: stage.counts(waits) == [(SIZE, SIZE)])
        stage.until(lambda: phases(stage) == {waits: "Running"})
        assert "Traceback" not in operator.log

    assert without == ({"first": "", "second": ""}, [(0, 0), (0, 0)])
    assert stage.counts(waits) == [(SIZE, SIZE)]
