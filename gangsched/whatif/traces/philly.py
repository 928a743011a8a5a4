"""Microsoft's Philly trace: the JSON document cluster_job_log.

Source: the README of the repository msr-fiddle/philly-traces and Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU
Clusters for DNN Training Workloads", USENIX ATC 2019.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import Struct

from gangsched.whatif.traces.trace_checks import Problems, amounts, is_absent, moment, remark
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceError, TraceRole


class _Server(Struct):
    gpus: list[str] = []


class _Attempt(Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Server] | None = None

    def run_s(self) -> float:
        """How long it ran; 0 if the log lacks its start or its end."""
        if self.start_time is None or is_absent(self.start_time) or self.end_time is None or is_absent(self.end_time):
            return 0.0
        return max(moment(self.end_time, "end_time") - moment(self.start_time, "start_time"), 0.0)


class _Job(Struct):
    jobid: str
    attempts: list[_Attempt]
    submitted_time: str | None = None
    vc: str = ""

    def gang(self) -> Gang | None:
        """The gang; None if the job was never placed or has not ended, or if its submit time is unknown."""
        placed = [attempt.detail for attempt in self.attempts if attempt.detail]
        if not placed or self.submitted_time is None or is_absent(self.submitted_time):
            return None
        if is_absent(self.attempts[-1].end_time):
            return None
        return Gang(
            name=self.jobid,
            namespace=self.vc or "default",
            arrival_s=moment(self.submitted_time, "submitted_time"),
            run_s=sum(attempt.run_s() for attempt in self.attempts),
            parts=_parts(placed[-1]),
        )


def from_philly(text: str, source: str) -> Trace:
    """Each server of a job's last attempt that names servers is a member, with the GPUs that it used there.

    The run time is that of all attempts together, and the virtual cluster is the namespace.
    """
    try:
        jobs = msgspec.json.decode(text, type=list[_Job])
    except msgspec.DecodeError as error:
        raise TraceError([f"{source}: {error}: give the original cluster_job_log"]) from None
    gangs, left_out = [], 0
    problems = Problems()
    for number, job in enumerate(jobs):
        with problems.at(f"{source}: [{number}]"):
            gang = job.gang()
            if gang is None:
                left_out += 1
            else:
                gangs.append(gang)
    problems.end()
    clause = "jobs that were never placed or have not ended, or without a submit time, are left out"
    return Trace(gangs, remark(source, left_out, clause))


def _parts(servers: list[_Server]) -> tuple[TraceRole, ...]:
    """Servers with the same number of GPUs are one role."""
    kinds = sorted(Counter(len(server.gpus) for server in servers).items(), reverse=True)
    return tuple(
        TraceRole(number, amounts({GPU: gpus}), f"gpus-{gpus}" if len(kinds) > 1 else "") for gpus, number in kinds
    )
