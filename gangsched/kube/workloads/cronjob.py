"""CronJobs, RayServices and DisaggregatedSets: their annotations apply to the workloads that they create.

Their other fields describe those workloads, whose own objects count.
"""

from __future__ import annotations

from gangsched.config.workload_registry import WorkloadRow
from gangsched.kube.workloads.workload_kind import Desired, Kind, Object, makes_no_pods


class _Top(Object, gc=False):
    """Only its metadata is read."""


def _desired(_: _Top) -> Desired:
    return Desired(size=1, pods=1)


def kind(row: WorkloadRow) -> Kind[_Top]:
    return Kind(row=row, controllers=(), mark=makes_no_pods, form=_Top, desired=_desired)
