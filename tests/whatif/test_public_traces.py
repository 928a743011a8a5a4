"""Public traces: what becomes of the lines of each original, what is left out, and impossible values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangsched.whatif.traces.forms import read
from gangsched.whatif.traces.trace_values import GPU, Gang, TraceError, TraceRole


def problems(text: str, form: str) -> list[str]:
    with pytest.raises(TraceError) as refused:
        read(text, "t", form)
    return list(refused.value.problems)


def counts(remarks) -> list[int]:
    """How many jobs each remark is about."""
    return [int(remark.split()[1]) for remark in remarks]


def test_alibabas_tasks_are_the_roles_of_a_job_which_gets_whole_gpus():
    text = (
        "j1,ps,1.0,Terminated,100.0,400.0,600.0,29.296875,0.0,MISC\n"
        "j1,worker,2.0,Terminated,150.0,500.0,400.0,10,50.0,T4\n"
        "j2,tensorflow,1.0,Running,90.0,,600.0,1,100.0,MISC\n"
        "j3,tensorflow,3.0,Failed,110.0,120.0,,,,\n"
    )
    trace = read(text, "t", "pai")
    assert trace.gangs == [
        Gang(
            name="j1",
            arrival_s=0,
            run_s=400,
            parts=(
                TraceRole(1, (("cpu", 6000), ("memory", 29_296_875_000)), "ps"),
                TraceRole(2, (("cpu", 4000), ("memory", 10_000_000_000), (GPU, 1)), "worker"),
            ),
        ),
        Gang(name="j3", arrival_s=10, run_s=10, parts=(TraceRole(3, (), "tensorflow"),)),
    ]
    assert trace.remarks == [
        "t: 1 jobs without a start, an end or instances are left out",
        "t: 1 jobs request a fraction of a GPU, and get a whole one here",
    ]


def test_another_table_of_alibaba_is_refused():
    assert problems("a,b,c\n", "pai") == ["t, line 1: has 3 values, and pai_task_table has 10: give that table"]


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "1e400", "x"])
@pytest.mark.parametrize("column", ["inst_num", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu"])
def test_an_impossible_number_in_the_table_of_tasks_is_named(column, text):
    """With `nan` the replay never ended, with `inf` it ended in a traceback."""
    task = {"inst_num": "1", "start_time": "1", "end_time": "2", "plan_cpu": "100", "plan_mem": "1", "plan_gpu": "100"}
    task |= {column: text}
    line = ["j", "t", task["inst_num"], "s", task["start_time"], task["end_time"]]
    line += [task["plan_cpu"], task["plan_mem"], task["plan_gpu"], "V100"]
    with pytest.raises(TraceError) as error:
        read(",".join(line), "f", "pai")
    [problem] = error.value.problems
    assert problem.startswith("f: job j: ")


class TestSwf:
    HEAD = "; Version: 2.2\n;  MaxProcs: 128\n\n"

    def test_each_processor_of_a_job_is_a_member_and_the_requested_time_its_limit(self):
        text = (
            f"{self.HEAD}"
            "    1  100  5  3600  8 -1 -1   8  7200 -1 1 3 1 -1 1 -1 -1 -1\n"
            "2 160 -1 60 4 -1 -1 -1 -1 -1 0 3 1 -1 1 -1 -1 -1\n"
            "3 170 -1 90 4 -1 -1 6 60 -1 1 3 1 -1 1 -1 -1 -1\n"
        )
        trace = read(text, "t", "swf")
        cpu = (("cpu", 1000),)
        assert trace.gangs == [
            Gang(name="1", arrival_s=0, run_s=3600, parts=(TraceRole(8, cpu),), limit_s=7200),
            Gang(name="2", arrival_s=60, run_s=60, parts=(TraceRole(4, cpu),)),
            Gang(name="3", arrival_s=70, run_s=90, parts=(TraceRole(6, cpu),), limit_s=60),
        ]
        assert [gang.duration_s for gang in trace.gangs] == [3600, 60, 60]
        assert trace.remarks == []

    def test_jobs_of_which_something_is_unknown_and_parts_of_jobs_are_left_out(self):
        good = "9 0 0 1 1 0 0 1 1 0 1 0 0 0 0 0 0 0"
        unknown = {1: "-1", 3: "-1", 10: "3"}
        lines = [good]
        for place, value in unknown.items():
            words = good.split()
            words[place] = value
            lines.append(" ".join(words))
        lines.append("9 0 0 1 -1 0 0 0 1 0 1 0 0 0 0 0 0 0")
        trace = read("\n".join(lines), "t", "swf")
        assert len(trace.gangs) == 1
        assert counts(trace.remarks) == [4]

    @pytest.mark.parametrize("place", [1, 3, 4, 7, 8, 10])
    @pytest.mark.parametrize("value", ["nan", "inf", "-2", "1e400", "x"])
    def test_an_impossible_value_is_told_with_its_line(self, place, value):
        words = ["9", "0", "0", "1", "1", "0", "0", "1", "1", "0", "1", "0", "0", "0", "0", "0", "0", "0"]
        words[place] = value
        [problem] = problems(f"{self.HEAD}{' '.join(words)}", "swf")
        assert problem.startswith("t, line 4: ")
        assert repr(value) in problem

    def test_a_line_of_another_length_is_told(self):
        [problem] = problems("1 2 3", "swf")
        assert problem.startswith("t, line 1: has 3 values")


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
SEREN = "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,"
    "end_time,fail_time,stop_time,duration,queue,gpu_time\n"
)


class TestHelios:
    def test_each_node_of_a_job_is_a_member_with_its_share(self):
        text = (
            f"{HELIOS}"
            "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-10 04:55:09,36788,60\n"
            "1425512,uVMrF,vchbv,16,33,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
            "3,u,v,10,0,4,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:41:28,0,0\n"
            "4,u,v,8,8,1,CANCELLED,2020-06-09 18:41:28,None,2020-06-09 18:41:28,0,0\n"
        )
        trace = read(text, "t", "helios")
        assert trace.gangs == [
            Gang(
                name="1425511",
                namespace="vcJkd",
                arrival_s=0,
                run_s=36788,
                parts=(TraceRole(1, (("cpu", 1000), (GPU, 1))),),
            ),
            Gang(
                name="1425512",
                namespace="vchbv",
                arrival_s=26,
                run_s=249,
                parts=(TraceRole(2, (("cpu", 16500), (GPU, 8))),),
            ),
            Gang(name="3", namespace="v", arrival_s=27, run_s=0, parts=(TraceRole(4, ((GPU, 3),)),)),
        ]
        assert counts(trace.remarks) == [1, 1]

    @pytest.mark.parametrize(
        ("column", "value"),
        [("node_num", "1e9"), ("gpu_num", "-1"), ("cpu_num", "x"), ("submit_time", "0"), ("end_time", "yesterday")],
    )
    def test_an_impossible_value_is_told_with_its_line(self, column, value):
        row = dict.fromkeys(HELIOS.strip().split(","), "1")
        row |= dict.fromkeys(("submit_time", "start_time", "end_time"), "2020-06-09 18:41:28") | {column: value}
        [problem] = problems(f"{HELIOS}{','.join(row.values())}\n", "helios")
        assert problem.startswith(f"t, line 2: {column} is {value!r}")

    def test_a_line_that_is_too_short_and_a_missing_column_are_told(self):
        assert problems(f"{HELIOS}1,2\n", "helios")[0].startswith("t, line 2: ")
        assert "vc" in problems(SEREN, "helios")[0]


class TestAcme:
    def test_the_run_time_is_between_start_and_end_and_zones_count(self):
        """In Kalos the column `duration` contains the wait."""
        text = (
            f"{KALOS}"
            "dlctk,uf794,8,64,960,1000,100.0,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,"
            "2023-05-17 11:01:16+00:00,2023-05-17 11:01:16+00:00,,18,10.0,1152.0\n"
        )
        requests = (("cpu", 120_000), ("memory", 10**12), (GPU, 8))
        assert read(text, "t", "acme").gangs == [
            Gang(name="dlctk", arrival_s=0, run_s=8, parts=(TraceRole(8, requests),))
        ]
        text = (
            f"{SEREN}"
            "5778432,u5907,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,"
            "2023-03-01 00:20:51+08:00,117,32,936.0\n"
            "2,u,1,8,128,Other,FAILED,2023-02-28 16:18:32+00:00,2023-02-28 16:18:32+00:00,"
            "2023-02-28 16:18:33+00:00,,,\n"
        )
        assert [(gang.arrival_s, gang.run_s) for gang in read(text, "t", "acme").gangs] == [(0, 117), (10, 1)]


def philly(*attempts: Any, **more: Any) -> dict[str, Any]:
    job = {"status": "Pass", "vc": "ee9e8c", "jobid": "application_1", "user": "ce2f4c"}
    return {**job, "submitted_time": "2017-10-07 01:11:39", "attempts": list(attempts), **more}


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    detail = [{"ip": f"m{place}", "gpus": [f"gpu{each}" for each in range(size)]} for place, size in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


class TestPhilly:
    def test_the_last_servers_are_members_and_all_attempts_run(self):
        first = attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 8)
        second = attempt("2017-10-07 01:13:30", "2017-10-07 01:14:30", 4, 8, 8)
        unplaced = attempt("None", "2017-10-07 01:15:00")
        trace = read(json.dumps([philly(first, second, unplaced)]), "t", "philly")
        assert trace.gangs == [
            Gang(
                name="application_1",
                namespace="ee9e8c",
                arrival_s=0,
                run_s=74 + 60,
                parts=(TraceRole(2, ((GPU, 8),), "gpus-8"), TraceRole(1, ((GPU, 4),), "gpus-4")),
            )
        ]

    def test_jobs_without_servers_that_run_or_without_a_submit_time_are_left_out(self):
        placed = attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 1)
        running = attempt("2017-10-07 01:12:09", None, 1)
        jobs = [philly(placed), philly(), philly(attempt(None, None)), philly(placed, running)]
        trace = read(json.dumps([*jobs, philly(placed, submitted_time=None)]), "t", "philly")
        assert len(trace.gangs) == 1
        assert counts(trace.remarks) == [4]

    def test_an_impossible_time_and_another_document_are_told(self):
        wrong = philly(attempt("2017-10-07 01:12:09", "x", 1))
        assert problems(json.dumps([philly(attempt("2017-10-07", "2017-10-08", 1)), wrong]), "philly")[0].startswith(
            "t: [1]: end_time is 'x'"
        )
        assert problems("{}", "philly")[0].startswith("t: Expected `array`")


class TestOpenb:
    HEAD = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
        "scheduled_time\n"
    )

    def test_each_pod_is_a_gang_that_gets_whole_gpus(self):
        text = (
            f"{self.HEAD}"
            "openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437500\n"
            "openb-pod-0022,4000,15258,1,220,V100M16|V100M32,BE,Running,9437498,9437598,9437498.0\n"
            "openb-pod-0023,4000,15258,0,0,nan,BE,Pending,9437499,9437599,\n"
        )
        trace = read(text, "t", "openb")
        assert trace.gangs == [
            Gang(
                name="openb-pod-0017",
                arrival_s=0,
                run_s=10769854 - 9437500,
                parts=(TraceRole(1, (("cpu", 88000), ("memory", 320 << 30), (GPU, 8))),),
            ),
            Gang(
                name="openb-pod-0022",
                arrival_s=1,
                run_s=100,
                parts=(TraceRole(1, (("cpu", 4000), ("memory", 15258 << 20), (GPU, 1))),),
            ),
        ]
        assert counts(trace.remarks) == [1, 1]

    @pytest.mark.parametrize("column", ["cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time"])
    def test_an_impossible_value_is_told_with_its_line(self, column):
        row = dict.fromkeys(self.HEAD.strip().split(","), "1") | {column: "-1"}
        [problem] = problems(f"{self.HEAD}{','.join(row.values())}\n", "openb")
        assert problem.startswith(f"t, line 2: {column} is '-1'")


def test_a_trace_of_which_nothing_is_left_says_what_was_left_out():
    told = problems(f"{HELIOS}4,u,v,8,8,1,CANCELLED,,,,0,0\n", "helios")
    assert counts(told[1:]) == [1]
