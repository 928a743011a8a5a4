"""Alibaba's trace of 2023: the list of pods of cluster-trace-gpu-v2023.

Source: the README of that trace in the repository alibaba/clusterdata; Weng et al., "Beware of Fragmentation", USENIX
ATC 2023.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gangsched.whatif.traces.trace_checks import (
    MOST_SECONDS,
    MOST_UNITS,
    Problems,
    amounts,
    cell,
    complete,
    is_absent,
    remark,
    table,
)
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceRole

_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", *_TIMES)
_WHOLE = 1000


def from_openb(text: str, source: str) -> Trace:
    """A table openb_pod_list_*.csv: each pod is a gang of one member. A fraction of a GPU counts as a whole one."""
    gangs, unscheduled, shared = [], 0, 0
    problems = Problems()
    for place, row in table(text, source, _COLUMNS):
        with problems.at(place):
            if any(is_absent(complete(row)[name]) for name in _TIMES):
                unscheduled += 1
                continue
            gangs.append(_gang(row))
            shared += 0 < cell(row, "gpu_milli", MOST_UNITS) < _WHOLE
    problems.end()
    remarks = remark(source, unscheduled, "pods that were never scheduled or never deleted are left out")
    return Trace(gangs, remarks + remark(source, shared, "pods request a fraction of a GPU, and get a whole one here"))


def _gang(row: Mapping[str, str]) -> Gang:
    created, deleted, scheduled = (cell(row, name, MOST_SECONDS) for name in _TIMES)
    requests = amounts(
        {
            "cpu": f"{cell(row, 'cpu_milli', MOST_UNITS):.0f}m",
            "memory": f"{cell(row, 'memory_mib', MOST_UNITS):.0f}Mi",
            GPU: math.ceil(cell(row, "num_gpu", MOST_UNITS)),
        }
    )
    run_s = max(deleted - scheduled, 0.0)
    return Gang(name=row["name"], arrival_s=created, run_s=run_s, parts=(TraceRole(1, requests),))
