"""Trace files: the meaning of each format, and the error messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangsched.whatif.traces.forms import form_of, read
from gangsched.whatif.traces.trace_values import GPU, Gang, TraceError, TraceRole

HEAD = "gang,arrival,run,members,cpu,memory,gpu,role"


def problems(text: str, form: str = "csv") -> list[str]:
    with pytest.raises(TraceError) as refused:
        read(text, "t", form)
    return list(refused.value.problems)


def as_json(**gang: Any) -> str:
    return json.dumps({"gangs": [{"name": "a", "arrival": 0, "run": 1, "members": [{"count": 1}], **gang}]})


def test_a_line_is_a_part_of_a_gang_and_the_first_arrival_is_the_start():
    text = f"{HEAD},priority,namespace,amd.com/gpu\nlate,70,5,2,500m,1Gi,,,3,team,4\nfirst,10.5,60,1,1,,8,,,,\n"
    assert read(text, "t", "csv").gangs == [
        Gang(name="first", arrival_s=0, run_s=60, parts=(TraceRole(1, (("cpu", 1000), (GPU, 8))),)),
        Gang(
            name="late",
            namespace="team",
            arrival_s=59.5,
            run_s=5,
            parts=(TraceRole(2, (("amd.com/gpu", 4), ("cpu", 500), ("memory", 1 << 30))),),
            priority=3,
        ),
    ]


def test_lines_of_one_name_are_the_roles_of_one_gang():
    [gang] = read(f"{HEAD}\na,0,1,1,1,,,ps\na,0,1,4,2,,,worker\n", "t", "csv").gangs
    assert gang.parts == (TraceRole(1, (("cpu", 1000),), "ps"), TraceRole(4, (("cpu", 2000),), "worker"))
    assert gang.members == 5


def test_json_says_the_same():
    members = [{"count": 1, "role": "ps", "requests": {"cpu": 1}}, {"count": 4, "role": "w", "requests": {GPU: "2"}}]
    [gang] = read(as_json(members=members, priority=2, namespace="n"), "t", "json").gangs
    assert gang == Gang(
        name="a",
        namespace="n",
        arrival_s=0,
        run_s=1,
        parts=(TraceRole(1, (("cpu", 1000),), "ps"), TraceRole(4, ((GPU, 2),), "w")),
        priority=2,
    )


def test_limits_and_declared_run_times_are_read_from_both_forms():
    [of_table] = read(f"{HEAD},limit,expected\na,0,90,1,1,,,,60,45.5\n", "t", "csv").gangs
    [of_json] = read(as_json(run=90, limit=60, expected=45.5), "t", "json").gangs
    for gang in (of_table, of_json):
        assert (gang.limit_s, gang.expected_s, gang.duration_s) == (60, 45.5, 60)
    [without] = read(f"{HEAD},limit,expected\na,0,90,1,1,,,,,\n", "t", "csv").gangs
    assert (without.limit_s, without.expected_s, without.duration_s) == (None, None, 90)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gang,arrival,run,members\n", "t: has no gang: write at least one"),
        (
            "gang,arival,run,members\na,0,1,1",
            "t: its first line lacks the columns arrival and has the unknown columns ar",
        ),
        (f"{HEAD}\na,0,1,0,1,,,", "t, line 2: Expected `int` >= 1 - at `$.members[0].count`: docs/replay.md describes"),
        (f"{HEAD}\na,-1,1,1,1,,,", "t, line 2: Expected `float` >= 0.0 - at `$.arrival`: docs/replay.md describes"),
        (f"{HEAD}\na,nan,1,1,1,,,", "t, line 2: "),
        (f"{HEAD}\na,0,inf,1,1,,,", "t, line 2: "),
        (
            f"{HEAD}\na,0,,1,1,,,",
            "t, line 2: Object missing required field `run`: docs/replay.md describes the columns",
        ),
        (f"{HEAD}\n,0,1,1,1,,,", "t, line 2: Expected `str` of length >= 1 - at `$.name`"),
        (f"{HEAD}\na,0,1,1,1,,", "t, line 2: does not have 8 values like the first line"),
        (f"{HEAD},limit\na,0,1,1,1,,,,0", "t, line 2: Expected `int` >= 1 - at `$.limit`"),
        (f"{HEAD},expected\na,0,1,1,1,,,,nan", "t, line 2: Expected `float` >= 0.0 - at `$.expected`"),
        (f"{HEAD}\na,0,1,1,one,,,", "t: gang default/a: cpu: 'one' is not a quantity"),
        (f"{HEAD}\na,0,1,1,-1,,,", "t: gang default/a: cpu is '-1': write a quantity of at least 0"),
        (f"{HEAD}\na,0,1,1,1,,,\na,0,2,1,1,,,x", "t, line 3: differs from the gang's first line in run"),
        (f"{HEAD}\na,0,1,1,1,,,\na,0,1,1,1,,,", "t: gang default/a: its parts have no role or the same role"),
    ],
)
def test_a_mistake_in_csv_is_told_with_its_line(text, found):
    [problem] = problems(text)
    assert problem.startswith(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "t: Input data was truncated: docs/replay.md describes the form"),
        ("[]", "t: Expected `object`, got `array`"),
        (as_json(members=[]), "t: Expected `array` of length >= 1 - at `$.gangs[0].members`"),
        (as_json(arival=1), "t: Object contains unknown field `arival` - at `$.gangs[0]`"),
        (as_json(members=[{"count": 1, "requests": {"cpu": "x"}}]), "t: gangs[0]: cpu: 'x' is not a quantity"),
    ],
)
def test_a_mistake_in_json_is_told_with_its_place(text, found):
    [problem] = problems(text, "json")
    assert problem.startswith(found)


def test_of_many_mistakes_the_first_are_told_and_the_others_counted():
    found = problems("\n".join([HEAD, *("a,0,1,0,1,,," for _ in range(50))]))
    assert len(found) == 21
    assert found[-1] == "and 30 more mistakes"


def test_the_form_follows_from_the_name_of_the_file():
    assert [form_of(name) for name in ("a.json", "a.swf", "a.csv", "-")] == ["json", "swf", "csv", "csv"]


@pytest.mark.parametrize("form", ["csv", "pai", "openb", "helios", "acme"])
def test_a_value_that_is_too_long_for_a_table_is_refused(form):
    with pytest.raises(TraceError, match="cannot be read"):
        read("x" * 200_000, "f", form)
