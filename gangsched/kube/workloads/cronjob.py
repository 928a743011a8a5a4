"""CronJobs: their annotations apply to the Jobs that they create. Their other fields describe future Jobs only."""

from __future__ import annotations

from gangsched.config.workloads import Row
from gangsched.kube.workloads.kind import Desired, Kind, Object, makes_no_pods


class _CronJob(Object, gc=False):
    """Only its metadata is read."""


def _desired(_: _CronJob) -> Desired:
    return Desired(size=1, pods=1)


def kind(row: Row) -> Kind[_CronJob]:
    return Kind(row=row, controllers=(), mark=makes_no_pods, form=_CronJob, desired=_desired)
