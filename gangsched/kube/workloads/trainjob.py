"""TrainJobs of Kubeflow's Trainer, and RayJobs: their controllers create a JobSet or a RayCluster, whose size counts.

The objects themselves add annotations, and no pods are wanted while they are suspended.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.kube.workloads.workload_fields import means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Object, makes_no_pods


class _TrainJobSpec(Struct, gc=False):
    suspend: Annotated[bool | None, means("no pods are wanted")] = None


class _Job(Object, gc=False):
    spec: _TrainJobSpec | None = None


def _desired(job: _Job) -> Desired:
    suspended = job.spec is not None and job.spec.suspend
    return Desired(size=1, pods=1, idle="is suspended" if suspended else "")


def kind(row: WorkloadRow) -> Kind[_Job]:
    return Kind(row=row, controllers=(), mark=makes_no_pods, form=_Job, desired=_desired)
