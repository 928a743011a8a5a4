"""TrainJobs of Kubeflow's Trainer, and RayJobs: their controllers create a JobSet or a RayCluster, whose size counts.

The objects themselves add annotations, and no pods are wanted while they are suspended.
"""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Desired, Kind, makes_no_pods


class _Spec(Struct, gc=False):
    suspend: bool | None = None


class _Job(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None


def _desired(job: _Job) -> Desired:
    suspended = job.spec is not None and job.spec.suspend
    return Desired(size=1, pods=1, idle="is suspended" if suspended else "")


def kind(row: Row) -> Kind[_Job]:
    return Kind(row=row, controllers=(), mark=makes_no_pods, form=_Job, desired=_desired)
