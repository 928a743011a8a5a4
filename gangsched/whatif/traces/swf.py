"""The Standard Workload Format, in which the Parallel Workloads Archive has the logs of batch systems.

Source: Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999, and
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html.
"""

from __future__ import annotations

import math
from io import StringIO

from gangsched.whatif.traces.trace_checks import MOST_MEMBERS, MOST_SECONDS, Problems, number_within, remark
from gangsched.whatif.traces.trace_values import Gang, Trace, TraceRole

_FIELDS = 18
_NUMBER, _SUBMITTED, _RUN, _ALLOCATED, _REQUESTED, _LIMIT, _STATUS = 0, 1, 3, 4, 7, 8, 10
_PARTIAL = (2.0, 3.0, 4.0)
"""The statuses of a part of a job that was checkpointed; the whole job has a line of its own."""


def from_swf(text: str, source: str) -> Trace:
    """Each line is a job, and each of its processors a member that requests a CPU.

    The requested processors count, else the allocated ones; the requested time is the limit. -1 stands for unknown.
    """
    gangs, left_out = [], 0
    problems = Problems()
    for number, line in enumerate(StringIO(text), start=1):
        words = line.split()
        if not words or words[0].startswith(";"):
            continue
        with problems.at(f"{source}, line {number}"):
            gang = _gang(words)
            if gang is None:
                left_out += 1
            else:
                gangs.append(gang)
    problems.end()
    clause = "jobs without a submit time, a run time or processors, and parts of jobs, are left out"
    return Trace(gangs, remark(source, left_out, clause))


def _gang(words: list[str]) -> Gang | None:
    if len(words) != _FIELDS:
        raise ValueError(
            f"has {len(words)} values, and a job has {_FIELDS}: give a log in the Standard Workload Format"
        )
    submitted = _field(words, _SUBMITTED, "the submit time", MOST_SECONDS)
    run = _field(words, _RUN, "the run time", MOST_SECONDS)
    allocated = _field(words, _ALLOCATED, "the number of allocated processors", MOST_MEMBERS)
    requested = _field(words, _REQUESTED, "the number of requested processors", MOST_MEMBERS)
    limit = math.ceil(_field(words, _LIMIT, "the requested time", MOST_SECONDS))
    status = _field(words, _STATUS, "the status", MOST_MEMBERS)
    processors = round(requested if requested >= 1 else allocated)
    if submitted < 0 or run < 0 or processors < 1 or status in _PARTIAL:
        return None
    part = TraceRole(processors, (("cpu", 1000),))
    return Gang(
        name=words[_NUMBER],
        arrival_s=submitted,
        run_s=run,
        parts=(part,),
        limit_s=limit if limit > 0 else None,
    )


def _field(words: list[str], place: int, name: str, most: float) -> float:
    return number_within(words[place], name, most, least=-1)
