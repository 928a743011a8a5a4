"""`gangsched replay` from the command line: its table, JSON, plots and error messages."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
import sys
from argparse import _SubParsersAction
from collections.abc import Callable
from pathlib import Path

import pytest

from gangsched.cli import main, make_parser
from gangsched.whatif.baselines import BASELINES
from gangsched.whatif.traces.forms import FORMS
from gangsched.whatif.traces.own_forms import COLUMNS
from gangsched.whatif.traces.run_limits import KINDS

TRACE = "gang,arrival,run,members,cpu\nfirst,0,600,4,2\nsecond,60,300,4,2\nnever,90,10,40,1\n"


@pytest.fixture
def trace(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text(TRACE)
    return str(file)


def test_the_table_compares_strategies_and_names_what_never_fits(trace, capsys):
    assert main(["replay", trace, "--nodes", "2:cpu=4", "--strategy", "Pack", "--strategy", "Spread"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "                                     Pack  Spread",
        "bound                              2 of 3  2 of 3",
        "wait, mean                          4m30s   4m30s",
        "wait, p50                              0s      0s",
        "wait, p95                              9m      9m",
        "wait, p99                              9m      9m",
        "wait, max                              9m      9m",
        "wait of size 2-8, mean              4m30s   4m30s",
        "wait of size 2-8, p50                  0s      0s",
        "wait of size 2-8, p95                  9m      9m",
        "wait of size 2-8, p99                  9m      9m",
        "size 2-8 still waiting             1 of 2  1 of 2",
        "wait of size 32+, mean                 0s      0s",
        "wait of size 32+, p50                  0s      0s",
        "wait of size 32+, p95                  0s      0s",
        "wait of size 32+, p99                  0s      0s",
        "size 32+ still waiting             1 of 1  1 of 1",
        "completion, mean                      12m     12m",
        "bounded slowdown, mean                1.9     1.9",
        "completion, p95                       14m     14m",
        "bounded slowdown, p95                 2.8     2.8",
        "until the last end                    15m     15m",
        "cpu in use                         100.0%  100.0%",
        "cpu in use until the last arrival  100.0%  100.0%",
        "cpu fragmented                       0.0%    0.0%",
        "",
        "Pack: never bound, because they do not fit: default/never.",
        "",
        "Spread: never bound, because they do not fit: default/never.",
    ]


def test_json_has_the_figures_and_samples_over_time(trace, capsys):
    assert main(["replay", trace, "--nodes", "2:cpu=4", "--json", "--gangs", "2"]) == 0
    [found] = json.loads(capsys.readouterr().out)["strategies"]
    assert (found["strategy"], found["gangs"], found["bound"], found["neverBound"]) == ("Pack", 2, 2, [])
    assert found["waitSeconds"]["max"] == 540
    assert found["makespanSeconds"] == 900
    assert {each["waiting"] for each in found["samples"]} == {0, 1}


def test_baselines_follow_the_strategies_in_the_table_and_are_apart_in_json(trace, capsys):
    words = ["replay", trace, "--nodes", "2:cpu=4", "--baseline", "easy", "--baseline", "fifo"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["Pack", "easy", "fifo"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["strategy"] for each in found["strategies"]] == ["Pack"]
    assert [(each["baseline"], each["bound"]) for each in found["baselines"]] == [("easy", 2), ("fifo", 2)]
    assert found["baselines"][0]["sizes"]["2-8"]["waitSeconds"]["max"] == 540


def test_every_baseline_form_and_kind_of_limits_can_be_named():
    """The options list names themselves, so that printing help does not import the readers."""
    parsers = next(action.choices for action in make_parser()._actions if isinstance(action, _SubParsersAction))  # noqa: SLF001
    choices = {action.dest: action.choices for action in parsers["replay"]._actions}  # noqa: SLF001
    assert set(choices["baseline"]) == set(BASELINES)
    assert set(choices["form"]) == set(FORMS)
    assert set(choices["limits"]) == set(KINDS)


def test_a_generated_trace_needs_no_file(capsys):
    words = ["generate:mixture,load=0.5,days=0.2,seed=7", "--nodes", "4:nvidia.com/gpu=8", "--json", "--gangs", "20"]
    assert main(["replay", *words]) == 0
    [found] = json.loads(capsys.readouterr().out)["strategies"]
    assert found["bound"] == found["gangs"] > 1


def test_limits_replace_those_of_the_trace(tmp_path, capsys):
    file = tmp_path / "trace.csv"
    file.write_text("gang,arrival,run,members,cpu,limit\na,0,600,1,1,60\n")
    made = {}
    for options in ((), ("--limits", "none"), ("--limits", "exact")):
        assert main(["replay", str(file), "--nodes", "1:cpu=1", "--json", *options]) == 0
        [found] = json.loads(capsys.readouterr().out)["strategies"]
        made[options[:2]] = found["makespanSeconds"]
    assert made == {(): 60, ("--limits", "none"): 600, ("--limits", "exact"): 600}


def test_a_checksum_is_checked(trace, capsys):
    right = hashlib.sha256(TRACE.encode()).hexdigest()
    assert main(["replay", trace, "--nodes", "1:cpu=8", "--sha256", right.upper()]) == 0
    assert main(["replay", trace, "--nodes", "1:cpu=8", "--sha256", "0" * 64]) == 2
    assert right in capsys.readouterr().err


def test_nodes_come_from_manifests_too_and_the_trace_from_standard_input(tmp_path, capsys, monkeypatch):
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '8', pods: '10'}}\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TRACE.encode())))
    assert main(["replay", "-", str(nodes)]) == 0
    assert re.search(r"^bound +2 of 3$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.slow
def test_plots_are_drawn_for_what_waits_and_for_each_resource(trace, tmp_path, capsys):
    folder = tmp_path / "plots"
    assert main(["replay", trace, "--nodes", "2:cpu=4", "--plots", str(folder)]) == 0
    names = sorted(file.name for file in folder.iterdir())
    assert names == ["cpu-fragmented.svg", "cpu-used.svg", "waiting.svg"]
    assert all((folder / name).read_text().startswith("<?xml") for name in names)
    assert f"drew {folder / 'waiting.svg'}" in capsys.readouterr().err


def test_an_error_of_the_plug_in_names_the_plug_in(trace, capsys):
    assert main(["replay", trace], parser=make_parser(plugin=True)) == 2
    assert capsys.readouterr().err.startswith("kubectl gang replay: error: there are no nodes")


def test_ctrl_c_ends_it_without_a_traceback(trace, monkeypatch):
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gangsched.whatif.measures.measure", interrupted)
    assert main(["replay", trace, "--nodes", "2:cpu=4"]) == 130


class AtOnce:
    """A timer whose time is over when it starts."""

    def __init__(self, _: float, action: Callable[[], None]) -> None:
        self.start = action

    def cancel(self) -> None:
        """Too late."""


def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(trace, capsys, monkeypatch):
    monkeypatch.setattr("gangsched.cli.progress._SHOWN_EVERY_S", 0.0)
    monkeypatch.setattr("gangsched.cli.progress.threading.Timer", AtOnce)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["replay", trace, "--nodes", "2:cpu=4"]) == 0
    told = capsys.readouterr().err
    assert "Pack: 1 of 3 gangs have ended, after 10m of the trace" in told
    assert told.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "there are no nodes: name files with Node manifests, or use --nodes, such as --nodes 10:cpu=8"),
        (
            ["--nodes", "x:cpu=1"],
            "--nodes 'x:cpu=1' has not the form N:RESOURCES with N up to 99999: write, for example, 100:cpu=64,memory",
        ),
        (["--nodes", "0:cpu=1"], "--nodes '0:cpu=1' has not the form N:RESOURCES"),
        (["--nodes", "100000:cpu=1"], "--nodes '100000:cpu=1' has not the form N:RESOURCES with N up to 99999"),
        (["--nodes", f"{'9' * 5000}:cpu=1"], f"--nodes '{'9' * 99}…' has not the form N:RESOURCES"),
        (["--nodes", "²:cpu=1"], "--nodes '²:cpu=1' has not the form N:RESOURCES"),
        (["--nodes", "1:cpu=one"], "--nodes '1:cpu=one': 'one' is not a quantity"),
        (["--nodes", "1:cpu=1", "--strategy", "Packed"], "there is no strategy Packed: choose from Pack, Spread"),
        (["--nodes", "1:cpu=1", "--gangs", "0"], "--gangs must be at least 1"),
        (["--nodes", "1:cpu=1", "--form", "json"], "trace.csv: JSON is malformed"),
        (["--nodes", "1:cpu=1", "--form", "helios"], "trace.csv: its first line lacks the columns vc, job_id"),
        (["nosuch.yaml"], "nosuch.yaml: cannot be read (No such file or directory): name a file with manifests"),
    ],
)
def test_a_mistake_ends_with_a_sentence_that_says_what_to_write(trace, arguments, told, capsys):
    assert main(["replay", trace, *arguments]) == 2
    assert re.search(re.escape(told), capsys.readouterr().err)


@pytest.mark.parametrize("option", [["--sha256", "0"], ["--form", "csv"]])
def test_options_for_files_are_refused_for_a_generated_trace(option, capsys):
    assert main(["replay", "generate:mixture", "--nodes", "1:nvidia.com/gpu=8", *option]) == 2
    assert option[0] in capsys.readouterr().err


def test_plots_without_matplotlib_name_what_to_install(trace, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["replay", trace, "--nodes", "1:cpu=1", "--plots", "x"]) == 2
    assert "--plots needs matplotlib: install it with pip install 'gangsched[plots]'" in capsys.readouterr().err


def test_a_trace_that_is_not_there_is_told(capsys):
    assert main(["replay", "nosuch.csv", "--nodes", "1:cpu=1"]) == 2
    assert "nosuch.csv: cannot be read (No such file or directory): name a file with a trace" in capsys.readouterr().err


@pytest.mark.slow
def test_the_examples_of_the_page_run_as_they_are_written(capsys, monkeypatch):
    root = Path(__file__).resolve().parent.parent.parent
    monkeypatch.chdir(root)
    page = (root / "docs" / "replay.md").read_text().replace("\\\n", "")
    commands = re.findall(r"^gangsched (replay .*)$", page, re.MULTILINE)
    made = []
    for command in commands:
        assert main(shlex.split(command)) == 0
        made.append(capsys.readouterr().out.splitlines())
    assert [lines[0].split() for lines in made] == [["Pack", "Spread"], ["Pack", "fifo", "first-fit", "easy"]]
    assert made[0][1].split() == ["bound", *("6", "of", "6") * 2]


def test_the_page_lists_every_column():
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "replay.md").read_text()
    listed = {name for line in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall("`(.*?)`", line)}
    assert listed == set(COLUMNS)
