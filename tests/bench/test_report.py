"""The benchmark's lines, bars and page, from given figures."""

from __future__ import annotations

import json

import pytest

from bench import beside, calls, commands, core, podgroups, report
from bench.bars import BARS, Bar
from bench.scenarios import ALL, NODES_SWEPT, QUICK, SIZED, SIZES_SWEPT
from bench.timeline import Timeline


def test_a_line_has_least_median_and_most_of_each_figure_and_the_ratio_run_by_run():
    runs = [
        {"bare_pods_per_s": 1000.0, "bare_s": 2.0, "pods_per_s": 900.0, "whole_s": 4.0},
        {"bare_pods_per_s": 2000.0, "bare_s": 1.0, "pods_per_s": 1000.0, "whole_s": 3.0},
        {"bare_pods_per_s": 1000.0, "bare_s": 2.0, "pods_per_s": 700.0, "whole_s": 5.0},
    ]
    line = report.line("a", runs)
    assert line["scenario"] == "a"
    assert line["runs"] == 3
    assert line["ratio"] == [0.5, 0.7, 0.9]
    assert line["whole_ratio"] == [1.0, 1.0, 1.5]
    assert line["pods_per_s"] == [700.0, 900.0, 1000.0]


@pytest.mark.parametrize(
    ("bar", "line", "met"),
    [
        pytest.param(Bar(what="", scenario="a", figure="x", least=0.7), {"x": [0.1, 0.7, 0.9]}, True, id="median"),
        pytest.param(
            Bar(what="", scenario="a", figure="x", least=0.7), {"x": [0.1, 0.69, 0.9]}, False, id="too little"
        ),
        pytest.param(Bar(what="", scenario="a", figure="x", most=10), {"x": [9, 10, 11]}, True, id="at most"),
        pytest.param(Bar(what="", scenario="a", figure="x", most=10), {"x": [9, 10.1, 11]}, False, id="too much"),
        pytest.param(
            Bar(what="", scenario="a", figure="x", most=10, scales=True),
            {"x": [9, 19, 20], "bare_pods_per_s": [600, 637.5, 700]},
            True,
            id="a slower machine may take longer",
        ),
        pytest.param(
            Bar(what="", scenario="a", figure="x", most=10, scales=True),
            {"x": [9, 11, 20], "bare_pods_per_s": [2000, 3000, 4000]},
            False,
            id="a faster one has no less time and no more",
        ),
    ],
)
def test_the_median_is_held_against_the_bar(bar, line, met):
    assert bar.met(line) is met


def test_every_bar_is_read_from_a_scenario_that_is_measured():
    titles = {scenario.title for scenario in (*ALL, *QUICK, *NODES_SWEPT, *SIZES_SWEPT, *SIZED)}
    titles |= {crowd.title for crowd in beside.ALL} | {podgroups.TITLE, commands.TITLE}
    titles |= {title for title, _ in core.benchmarks(quick=False)}
    assert {bar.scenario for bar in BARS} <= titles


@pytest.mark.slow
def test_a_bar_whose_figure_a_line_does_not_have_yet_is_not_measured(tmp_path, monkeypatch):
    from bench import page

    monkeypatch.setattr(page, "PAGE", tmp_path / "performance.md")
    monkeypatch.setattr(page, "IMAGES", tmp_path / "images")
    line = {"idle_cpu": [0.001, 0.002, 0.003], "rss_mb": [1.0, 2.0, 3.0]}
    page.write([{"scenario": "parked 500 × 500 × 20", "runs": 3, **line}])
    text = (tmp_path / "performance.md").read_text()
    assert "| 10,000 parked pods: then, of one core | ≤ 0.01 | 0.001 / **0.002** / 0.003 | met |" in text
    assert "| 10,000 parked pods: all told | | not measured | |" in text


def test_a_timeline_reads_what_was_written_since_it_began_also_in_pieces(tmp_path):
    log = tmp_path / "audit.log"

    def entry(resource: str, subresource: str, name: str, second: int, code: int = 201) -> str:
        return json.dumps(
            {
                "objectRef": {"resource": resource, "subresource": subresource, "name": name},
                "responseStatus": {"code": code},
                "requestReceivedTimestamp": f"2026-01-01T00:00:0{second}.000000Z",
                "stageTimestamp": f"2026-01-01T00:00:0{second}.500000Z",
            }
        )

    log.write_text(entry("pods", "binding", "before", 0) + "\n")
    timeline = Timeline(log)
    text = "\n".join(
        [
            entry("pods", "", "a", 1),
            entry("pods", "binding", "a", 2),
            entry("pods", "binding", "refused", 2, code=409),
            entry("pods", "binding", "b", 4),
            entry("podgroups", "status", "g", 5, code=200),
            entry("pods", "status", "c", 6, code=200),
            "",
        ]
    )
    for piece in (text[:100], text[100:]):
        with log.open("a") as file:
            file.write(piece)
        timeline.read()
    assert timeline.bound.keys() == {"a", "b"}
    assert timeline.last_bound - timeline.first_bound == 2.5
    assert timeline.pods_per_s == pytest.approx(2 / 2.5)
    assert timeline.created["a"] - timeline.first_bound == -0.5
    assert timeline.told.keys() == {"g"}
    assert timeline.explained.keys() == {"c"}


@pytest.mark.slow
def test_the_longest_call_is_measured_of_what_it_says():
    """Each measurement raises unless its members are bound, or its gangs refused, as intended."""
    for found in (calls.members(40, 3), calls.parked(6, 2), calls.racks(8, 2)):
        assert 0 < found["longest_ms"] <= found["cpu_ms"]
        assert found["calls"] > 1
