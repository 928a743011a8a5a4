"""Whatever stands in a file, each command that reads it ends with a sentence, never with a traceback or not at all.

`make samples` tries for about a minute, `make nightly` for about an hour.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gangsched.cli import main
from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.settings import load
from gangsched.whatif.traces.forms import FORMS, read
from gangsched.whatif.traces.trace_values import TraceError
from tests.effort import tries

pytestmark = [pytest.mark.sample, pytest.mark.slow]

NIGHT = 3
ENDS = {0, 1, 2, 3}
ROOT = Path(__file__).resolve().parents[2]
SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 10**400, 1.5, float("nan"), float("inf")),
    *("", "x", "0", "-1", "1e400", "100m", "\x00", "\ud7ff", "é" * 300, "true", "Always", "2026-01-01T00:00:00Z"),
    *("kubernetes.io/hostname", "gangsched", [], {}, [[]], [{}], {"": ""}, {"a": None}, [1, "x", None]),
]


PIECES = ["\x00", "\t", "[", "{", "&a ", "*a ", "<<: *a", "!!binary x", "!!set {a}", "---\n", "%", ": ", "'"]
WRITTEN = ["", "a", "0", "1", "-1", "nan", "inf", "-inf", "1e400", "9" * 5000, "é", "\x00", '"', ",", "1,2", "x/y"]


def examples(usual: int) -> settings:
    """The number of examples: what a minute allows, in a night an hour."""
    night = tries(100) > 1000
    return settings(
        max_examples=tries(usual) * (NIGHT if night else 1),
        suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow],
    )


@cache
def samples() -> list[list[Any]]:
    """The documents of each page about a workload, and further objects that simulate reads."""
    paths = sorted((ROOT / "docs" / "workloads").glob("*.md"))
    texts = [text for path in paths for text in re.findall(r"```yaml\n(.*?)```", path.read_text("utf-8"), re.DOTALL)]
    found = [list(yaml.safe_load_all(text)) for text in texts]
    objects = list(yaml.safe_load_all((ROOT / "tests" / "fuzz" / "objects.yaml").read_text("utf-8")))
    return [*found, objects, *([each] for each in objects)]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each part of the value."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A valid file of which a few parts are something else, or whose text is."""
    found: Any = draw(st.sampled_from(samples()))
    for _ in range(draw(st.integers(1, 3))):
        found = replaced(found, draw(st.sampled_from(list(places(found)))), draw(st.sampled_from(SCALARS)))
    text = yaml.safe_dump_all(found if isinstance(found, list) else [found], allow_unicode=True)
    if draw(st.booleans()):
        return text
    at = draw(st.integers(0, len(text)))
    pieces = st.sampled_from(PIECES)
    return text[:at] + draw(pieces) + text[at + draw(st.integers(0, 3)) :]


def ended(*words: str) -> int:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        status = main(list(words))
    assert "Traceback" not in errors.getvalue()
    return status


@given(text=spoilt())
@examples(400)
def test_simulate_ends_with_a_status_whatever_the_manifests_are(tmp_path: Path, text: str) -> None:
    file, config = tmp_path / "manifests.yaml", tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    config.write_text("")
    assert ended("simulate", "--config", str(config), str(file)) in ENDS


LINES = st.lists(st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=12), max_size=4)


HEADS = {
    "csv": "gang,arrival,run,members,cpu,priority,limit,expected",
    "helios": "job_id,vc,gpu_num,cpu_num,node_num,submit_time,start_time,end_time",
    "acme": "job_id,gpu_num,cpu_num,node_num,mem_per_pod_GB,submit_time,start_time,end_time",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time",
}
WIDTHS = {"swf": 18, "pai": 10} | {form: head.count(",") + 1 for form, head in HEADS.items()}
MOMENTS = ["2020-06-09 18:41:01", "2023-03-01 00:18:22+08:00", "9999-12-31", "0001-01-01T00:00:00+14:00", "None"]
JOB: Any = [
    {
        "jobid": "a",
        "vc": "v",
        "submitted_time": "2017-10-07 01:11:39",
        "attempts": [
            {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": [{"gpus": ["gpu0"]}]}
        ],
    }
]


@st.composite
def tables(draw: st.DrawFn, form: str) -> str:
    """A table of the width of the form, mostly with values that it may have."""
    separator, width = " " if form == "swf" else ",", WIDTHS[form]
    value = st.one_of(st.integers(-1, 9).map(str), st.sampled_from(MOMENTS), st.sampled_from(WRITTEN))
    rows = draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=1, max_size=3))
    return "\n".join([*([HEADS[form]] if form in HEADS else []), *(separator.join(row) for row in rows)])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A job of Philly of which a few parts are something else."""
    job = JOB
    for _ in range(draw(st.integers(1, 3))):
        job = replaced(job, draw(st.sampled_from(list(places(job)))), draw(st.sampled_from([*SCALARS, *MOMENTS])))
    return json.dumps(job)


@given(data=st.data(), lines=LINES, form=st.sampled_from(sorted(FORMS)))
@examples(3000)
def test_a_trace_is_read_or_refused(data: st.DataObject, lines: list[list[str]], form: str) -> None:
    """`nan` never ended, and `inf` ended in a traceback."""
    text = "\n".join(",".join(line) for line in lines)
    if data.draw(st.booleans()):
        text = data.draw(tables(form) if form in WIDTHS else documents())
    with contextlib.suppress(TraceError):
        trace = read(text, "f", form)
        assert all(0 <= gang.arrival_s <= 1e12 and 0 <= gang.run_s <= 1e12 for gang in trace.gangs)


@given(text=st.one_of(spoilt(), st.text(), st.recursive(st.sampled_from(SCALARS), st.lists).map(repr)))
@examples(700)
def test_settings_are_read_or_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    with contextlib.suppress(InvalidConfig):
        load(file)


KUBECONFIG: Any = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "x",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9", "insecure-skip-tls-verify": True}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
    "users": [{"name": "u", "user": {"token": "t", "as": "v", "as-groups": ["w"], "as-user-extra": {"k": ["l"]}}}],
}


@given(data=st.data())
@examples(700)
def test_a_kubeconfig_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    body = KUBECONFIG
    for _ in range(data.draw(st.integers(1, 3))):
        body = replaced(body, data.draw(st.sampled_from(list(places(body)))), data.draw(st.sampled_from(SCALARS)))
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(body), encoding="utf-8")
    assert ended("list", "--kubeconfig", str(file)) in {1, 2}
