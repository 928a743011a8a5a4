"""JobSet's exclusive topology with its own webhooks: one domain per Job, and no Job partly bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.controllers.build import is_built
from testbed.controllers.running import running
from testbed.controllers.table import CONTROLLERS
from testbed.operator import Operator
from tests.workloads.stage import Stage

POOL = "example.com/pool"
JOBS, PODS = 2, 3
JOB_SET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: {name}
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: {key}
spec:
  replicatedJobs:
  - name: workers
    replicas: {jobs}
    template:
      spec:
        parallelism: {pods}
        completions: {pods}
        backoffLimit: 0
        template:
          spec:
            schedulerName: gangsched
            restartPolicy: Never
            containers:
            - name: main
              image: registry.example.com/bert
              resources: {{requests: {{cpu: "1"}}}}
"""

pytestmark = pytest.mark.workloads


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Two pools with room for one Job each, and one that is too small for a Job."""
    if not is_built(CONTROLLERS["jobset"]):
        pytest.skip("jobset is not built: run make workloads")
    with ControlPlane() as control_plane:
        crds.install(control_plane)
        with running(control_plane, "jobset"), Operator(control_plane) as operator:
            for name, pool, cpu in (("n0", "a", "2"), ("n1", "a", "1"), ("n2", "b", "3"), ("n3", "c", "2")):
                control_plane.add_node(name, cpu=cpu, labels={POOL: pool})
            control_plane.api.merge(
                "/api/v1/namespaces/default", {"metadata": {"labels": {"gangsched.io/gang": "auto"}}}
            )
            yield Stage(control_plane, "default", "apis/jobset.x-k8s.io/v1alpha2/jobsets")
            assert "Traceback" not in operator.log


def job_set(name: str) -> str:
    return JOB_SET.format(name=name, key=POOL, jobs=JOBS, pods=PODS)


def pools(stage: Stage, name: str) -> list[set[str]]:
    """The pools of each Job's bound pods."""
    found = []
    for job in range(JOBS):
        nodes = {pod["spec"].get("nodeName") for pod in stage.live(f"{name}-workers-{job}")} - {None}
        found.append(
            {stage.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"][POOL] for node in nodes},
        )
    return found


def test_of_two_that_fit_one_by_one_one_runs_whole_with_a_pool_for_each_job_and_the_other_follows(stage: Stage) -> None:
    stage.apply(job_set("first") + "---" + job_set("second"))
    whole, leaders = (JOBS * PODS, JOBS * PODS), (JOBS, 0)
    stage.until(lambda: sorted(stage.counts("first", "second")) == [leaders, whole], within_s=90)
    runs, waits = sorted(("first", "second"), key=lambda name: stage.counts(name)[0][1] == 0)
    assert sorted(map(sorted, pools(stage, runs))) == [["a"], ["b"]]
    stage.remove(runs)
    stage.until(lambda: stage.counts(waits) == [whole], within_s=90)
    assert sorted(map(sorted, pools(stage, waits))) == [["a"], ["b"]]
