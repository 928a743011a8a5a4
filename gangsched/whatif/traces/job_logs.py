"""The job logs of Helios and Acme: tables of jobs with the number of their nodes, GPUs and CPUs.

Sources: the README of the repository S-Lab-System-Group/HeliosData and Hu et al., "Characterization and Prediction of
Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021; the README of the repository InternLM/AcmeTrace and
Hu et al., "Characterization of Large Language Model Development in the Datacenter", NSDI 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gangsched.whatif.traces.trace_checks import (
    MOST_MEMBERS,
    MOST_UNITS,
    Problems,
    amounts,
    cell,
    complete,
    is_absent,
    moment,
    remark,
    table,
)
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceRole

_COLUMNS = ("job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "start_time", "end_time")
_MEMORY = "mem_per_pod_GB"


def from_helios(text: str, source: str) -> Trace:
    """The table cluster_log.csv of a cluster of Helios: the virtual cluster of a job is its namespace."""
    return _jobs(text, source, ("vc", *_COLUMNS))


def from_acme(text: str, source: str) -> Trace:
    """The table trace_seren.csv or trace_kalos.csv of Acme; that of Kalos also has the memory of each pod."""
    return _jobs(text, source, _COLUMNS)


def _jobs(text: str, source: str, needed: tuple[str, ...]) -> Trace:
    """Each node of a job is a member, with an equal share of its GPUs and CPUs, rounded up to whole GPUs.

    The run time is the time between start and end, because the column `duration` contains the wait in Kalos.
    """
    gangs, unstarted, uneven = [], 0, 0
    problems = Problems()
    for place, row in table(text, source, needed):
        with problems.at(place):
            if any(is_absent(complete(row)[name]) for name in ("submit_time", "start_time", "end_time")):
                unstarted += 1
                continue
            gang, even = _gang(row)
            gangs.append(gang)
            uneven += not even
    problems.end()
    remarks = remark(source, unstarted, "jobs without a submit time, a start or an end are left out")
    remarks += remark(source, uneven, "jobs have GPUs that their nodes cannot share equally, and get more here")
    return Trace(gangs, remarks)


def _gang(row: Mapping[str, str]) -> tuple[Gang, bool]:
    nodes = max(1, round(cell(row, "node_num", MOST_MEMBERS)))
    gpus = math.ceil(cell(row, "gpu_num", MOST_UNITS))
    cpu = math.ceil(cell(row, "cpu_num", MOST_UNITS) * 1000 / nodes)
    memory = round(cell(row, _MEMORY, MOST_UNITS) * 10**9) if _MEMORY in row else 0
    requests = amounts({"cpu": f"{cpu}m", "memory": memory, GPU: math.ceil(gpus / nodes)})
    started, ended = moment(row["start_time"], "start_time"), moment(row["end_time"], "end_time")
    gang = Gang(
        name=row["job_id"],
        namespace=row.get("vc") or "default",
        arrival_s=moment(row["submit_time"], "submit_time"),
        run_s=max(ended - started, 0.0),
        parts=(TraceRole(nodes, requests),),
    )
    return gang, gpus % nodes == 0
