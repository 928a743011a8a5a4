"""A small run of each kind of scenario, to show that the benchmark works; its figures mean nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import devices, runs
from bench.lab import lab
from bench.scenarios import Kind, Scenario
from tests.effort import in_turn

SMALL = (
    Scenario(kind=Kind.BACKLOG, nodes=10, gangs=4, size=3, mixed=True, fair=True),
    Scenario(kind=Kind.BACKLOG, nodes=10, gangs=4, size=3, devices=True),
    Scenario(kind=Kind.STREAM, nodes=3, gangs=4, size=3),
    Scenario(kind=Kind.CONTENTION, nodes=2, gangs=4, size=3, node_cpus=3, fitting=6),
    Scenario(kind=Kind.PARKED, nodes=2, gangs=2, size=3, pod_cpus=64, fitting=0),
    Scenario(kind=Kind.FOOTPRINT, nodes=3, gangs=0, size=0, running=30),
    Scenario(kind=Kind.IN_USE, nodes=3, gangs=4, size=3, running=30),
)
EXPECTED = {
    Kind.BACKLOG: {"bare_pods_per_s", "pods_per_s", "whole_s", "told_after_s", "cpu_s", "rss_mb"},
    Kind.STREAM: {"bare_pods_per_s", "counting_ms_p50", "gang_ms_p50", "gang_ms_p99", "span_ms_p50", "cpu_ms_per_pod"},
    Kind.CONTENTION: {"pods_per_s", "idle_cpu"},
    Kind.PARKED: {"all_told_after_s", "idle_cpu"},
    Kind.FOOTPRINT: {"rss_mb", "updates_cpu"},
    Kind.IN_USE: {"ready_s", "rss_mb", "cpu_s", "updates_cpu", "gang_ms_p50", "cpu_ms_per_pod"},
}


@in_turn("scenario", SMALL, ids=lambda scenario: scenario.title)
async def test_a_run_measures_what_it_says_leaves_nothing_behind_and_ends_at_a_gang_in_part_or_a_full_node(
    monkeypatch, scenario
):
    monkeypatch.setattr(runs, "IDLE_S", 0.2)
    monkeypatch.setattr(runs, "TOLD_WITHIN_S", 0.0)
    async with lab(scenario) as made:
        figures = await runs.run(made)
        assert figures.keys() >= EXPECTED[scenario.kind]
        assert min(figures.values()) >= 0
        assert await made.load.get_all("/api/v1/namespaces/default/pods") == []
        assert await made.load.get_all(devices.CLAIMS) == []
        if not scenario.gangs:
            return
        pods = await made.load.add_pods()
        await made.bind_bare(pods[:2])
        with pytest.raises(RuntimeError, match="bound in part"):
            await made.check()
        made.scenario = replace(scenario, size=2, node_cpus=0)
        with pytest.raises(RuntimeError, match="more than they can hold"):
            await made.check()
