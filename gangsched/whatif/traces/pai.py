"""Alibaba's trace of 2020: the table of tasks of cluster-trace-gpu-v2020.

Source: the README of that trace in the repository alibaba/clusterdata, which describes the columns; Weng et al., "MLaaS
in the Wild", NSDI 2022.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from io import StringIO

from gangsched.whatif.traces.trace_checks import (
    MOST_MEMBERS,
    MOST_SECONDS,
    MOST_UNITS,
    Problems,
    amounts,
    distinct,
    number_within,
    remark,
)
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceRole

_COLUMNS = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)


def from_pai(text: str, source: str) -> Trace:
    """A job is a gang, and each of its tasks a role.

    The table has no header. CPUs and GPUs are in percent, memory in GB. A gang arrives when its first task was started,
    because the table does not say when it was submitted, and runs until its last task ended. A fraction of a GPU counts
    as a whole one.
    """
    jobs: dict[str, list[Mapping[str, str]]] = {}
    problems = Problems()
    for number, row in enumerate(csv.reader(StringIO(text)), start=1):
        with problems.at(f"{source}, line {number}"):
            if len(row) != len(_COLUMNS):
                raise ValueError(f"has {len(row)} values, and pai_task_table has {len(_COLUMNS)}: give that table")
            if row[0] != _COLUMNS[0]:
                jobs.setdefault(row[0], []).append(dict(zip(_COLUMNS, row, strict=True)))
    problems.end()
    gangs, unfinished, shared = [], 0, 0
    for name, tasks in jobs.items():
        with problems.at(f"{source}: job {name}"):
            if any(not (task["start_time"] and task["end_time"] and task["inst_num"]) for task in tasks):
                unfinished += 1
                continue
            began = min(_within(task, "start_time", MOST_SECONDS) for task in tasks)
            ended = max(_within(task, "end_time", MOST_SECONDS) for task in tasks)
            shared += any(_within(task, "plan_gpu", MOST_UNITS) % 100 for task in tasks)
            parts = distinct(_part(task) for task in tasks)
            gangs.append(Gang(name=name, arrival_s=began, run_s=max(ended - began, 0.0), parts=parts))
    problems.end()
    remarks = remark(source, unfinished, "jobs without a start, an end or instances are left out")
    return Trace(gangs, remarks + remark(source, shared, "jobs request a fraction of a GPU, and get a whole one here"))


def _part(task: Mapping[str, str]) -> TraceRole:
    requests: dict[str, str | int | float] = {
        "cpu": f"{_within(task, 'plan_cpu', MOST_UNITS) * 10:.0f}m",
        "memory": f"{_within(task, 'plan_mem', MOST_UNITS) * 10**9:.0f}",
        GPU: math.ceil(_within(task, "plan_gpu", MOST_UNITS) / 100),
    }
    members = max(1, round(_within(task, "inst_num", MOST_MEMBERS)))
    return TraceRole(members, amounts(requests), task["task_name"].lower())


def _within(task: Mapping[str, str], column: str, most: float) -> float:
    return number_within(task[column], column, most)
