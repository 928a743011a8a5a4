"""Histograms of how long groups wait, are partly bound and are preempted for, and of what they were told about it."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Histogram

from gangsched.core.objects.stats import Measured

_WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400)
_PARTIAL_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_ERROR_BUCKETS = (0, 60, 300, 900, 3600, 14400, 86400)
_BANDS = ((0, "negative"), (1, "0"), (1_000, "1-999"), (1_000_000, "1000-999999"))
_HIGHEST_BAND = "1000000+"


class Durations:
    """What the machine measures of groups, in this registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        histogram = partial(Histogram, registry=registry)
        self._gang_wait = histogram(
            "gangsched_gang_wait_seconds",
            "Time from the moment a group is complete until its minimum is bound, by the band of its priority.",
            ["priority"],
            buckets=_WAIT_BUCKETS,
        )
        self._plans = histogram(
            "gangsched_plan_seconds",
            "Time from opening a plan of preemption until its group is placed.",
            buckets=_WAIT_BUCKETS,
        )
        self._start_errors = histogram(
            "gangsched_expected_start_error_seconds",
            "Time by which a group was placed before the earliest or after the latest start that its status named five"
            " minutes before; 0 if between. By the basis of that start.",
            ["basis"],
            buckets=_ERROR_BUCKETS,
        )
        self._partial = histogram(
            "gangsched_partly_bound_seconds",
            "Time from the first binding of a quorum until it is completely bound or completely unbound, for quorums"
            " that were seen partly bound.",
            buckets=_PARTIAL_BUCKETS,
        )

    def observe(self, measured: Measured) -> None:
        """Record the measurements of a scheduling cycle."""
        for priority, waited_s in measured.waits:
            self._gang_wait.labels(_band(priority)).observe(waited_s)
        for lasted_s in measured.plans_s:
            self._plans.observe(lasted_s)
        for basis, outside_s in measured.starts:
            self._start_errors.labels(basis).observe(outside_s)
        for lasted_s in measured.partial_s:
            self._partial.observe(lasted_s)


def _band(priority: int) -> str:
    """The band of the priority. There are few bands, so that the number of time series stays small."""
    return next((name for end, name in _BANDS if priority < end), _HIGHEST_BAND)
