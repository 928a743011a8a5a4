"""One run of each kind of scenario: the steps in the lab, and the resulting figures."""

from __future__ import annotations

import asyncio
import time
from statistics import median, quantiles

from bench.lab import Figures, Lab, cpu_s, cpu_share, rss_mb
from bench.scenarios import Kind
from gangsched.operator.kopf_thread import PAUSE_S
from testbed.operator import Operator

IDLE_S = 30.0
"""Seconds over which the cost of idle waiting is measured."""
RESTING = 0.05
"""Share of one core below which an operator that has nothing to do has finished its start."""
TOLD_WITHIN_S = 60.0
UPDATES_PER_S = 100
PERCENTILES = (1, 10, 25, 50, 75, 90, 99)


async def run(lab: Lab) -> Figures:
    """Measure the bare API server and the counting client, then gangsched; deletes all created objects afterwards."""
    figures = {} if lab.scenario.running else await lab.bare()
    if lab.scenario.kind is Kind.STREAM:
        figures |= await counting(lab)
    return figures | await alone(lab)


async def alone(lab: Lab) -> Figures:
    """Measure gangsched alone; deletes all created objects afterwards."""
    figures = await _RUNS[lab.scenario.kind](lab)
    await lab.load.clear()
    return figures


async def counting(lab: Lab) -> Figures:
    """Run a stream with the client that only counts members and binds; returns the latencies of its gangs."""
    async with lab.counting():
        lab.timeline.begin()
        await lab.load.add_pods()
        await lab.until_bound()
    latencies, _ = _of_gangs(lab)
    await lab.load.clear()
    return {"counting_ms_p50": median(latencies)}


async def backlog(lab: Lab) -> Figures:
    """All pods exist beforehand; measured from the start of the process to the last status."""
    await lab.load.add_groups()
    await lab.load.add_pods()
    lab.timeline.begin()
    began = time.time()
    async with lab.operator() as operator:
        await lab.until_bound()
        told = await lab.until_told()
        figures = _of_bindings(lab, began) | {
            "whole_s": lab.timeline.last_bound - began,
            "told_after_s": told - lab.timeline.last_bound,
            "cpu_s": cpu_s(operator),
            "rss_mb": rss_mb(operator.child.pid),
        }
        if lab.scenario.kind is Kind.CONTENTION:
            await asyncio.sleep(5)
            figures["idle_cpu"] = await cpu_share(operator, over_s=IDLE_S)
        await lab.check()
    return figures


async def stream(lab: Lab) -> Figures:
    """The operator waits for pods; a gang's latency runs from its last member's creation to its last one's binding."""
    await lab.load.add_groups()
    async with lab.operator(ready=True) as operator:
        await _started(operator)
        figures = await _streamed(lab, operator)
        await lab.check()
    return figures


async def _started(operator: Operator) -> None:
    """Wait until the operator rests: it is ready before it begins to start kopf, which takes 0.3 s."""
    await asyncio.sleep(PAUSE_S)
    for _ in range(20):
        if await cpu_share(operator, over_s=0.5) < RESTING:
            return


async def _streamed(lab: Lab, operator: Operator) -> Figures:
    """Create the pods of the PodGroups and wait until all are bound and every status is written."""
    lab.timeline.begin()
    used, began = cpu_s(operator), time.time()
    await lab.load.add_pods()
    await lab.until_bound()
    await lab.until_told()
    latencies, spans = _of_gangs(lab)
    return _of_bindings(lab, began) | {
        "cpu_ms_per_pod": 1000 * (cpu_s(operator) - used) / lab.scenario.pods,
        "rss_mb": rss_mb(operator.child.pid),
        **_percentiles("gang_ms", latencies),
        **_percentiles("span_ms", spans),
    }


async def parked(lab: Lab) -> Figures:
    """Nothing fits: the time until the last pod has its reason, and the cost of letting them wait."""
    await lab.load.add_groups()
    await lab.load.add_pods()
    lab.timeline.begin()
    began = time.time()
    async with lab.operator() as operator:
        await lab.until(lambda: len(lab.timeline.explained) >= lab.scenario.pods)
        told = max(lab.timeline.explained.values()) - began
        await asyncio.sleep(max(0.0, began + TOLD_WITHIN_S - time.time()))
        idle = await cpu_share(operator, over_s=IDLE_S)
        figures = {"all_told_after_s": told, "idle_cpu": idle, "rss_mb": rss_mb(operator.child.pid)}
        await lab.check()
    return figures


async def footprint(lab: Lab) -> Figures:
    """Pods run already: the cost of listing them, and of changes to some of them."""
    await lab.load.add_bound_pods()
    async with lab.operator(ready=True) as operator:
        return await _settled(lab, operator)


async def in_use(lab: Lab) -> Figures:
    """A footprint, then gangs that arrive as in a stream."""
    await lab.load.add_bound_pods()
    await lab.load.add_groups()
    began = time.time()
    async with lab.operator(ready=True) as operator:
        figures = {"ready_s": time.time() - began} | await _settled(lab, operator) | await _streamed(lab, operator)
        await lab.check()
    return figures


async def _settled(lab: Lab, operator: Operator) -> Figures:
    """The memory and processor time for the running pods, and the cost of changes to some of them."""
    await asyncio.sleep(5)
    figures = {"rss_mb": rss_mb(operator.child.pid), "cpu_s": cpu_s(operator)}
    changing = asyncio.create_task(lab.load.change_pods(UPDATES_PER_S, over_s=IDLE_S))
    figures["updates_cpu"] = await cpu_share(operator, over_s=IDLE_S)
    await changing
    return figures


_RUNS = {
    Kind.BACKLOG: backlog,
    Kind.CONTENTION: backlog,
    Kind.STREAM: stream,
    Kind.PARKED: parked,
    Kind.FOOTPRINT: footprint,
    Kind.IN_USE: in_use,
}


def _of_bindings(lab: Lab, began: float) -> Figures:
    timeline = lab.timeline
    return {
        "pods_per_s": timeline.pods_per_s,
        "first_binding_after_s": timeline.first_bound - began,
    }


def _of_gangs(lab: Lab) -> tuple[list[float], list[float]]:
    """For each gang, in milliseconds: last member created → last bound, and first binding → last binding."""
    timeline = lab.timeline
    latencies, spans = [], []
    for gang in lab.scenario.names:
        members = [f"{gang}-{number}" for number in range(lab.scenario.size)]
        last = max(timeline.bound[name][1] for name in members)
        latencies.append(1000 * (last - max(timeline.created[name] for name in members)))
        spans.append(1000 * (last - min(timeline.bound[name][0] for name in members)))
    return latencies, spans


def _percentiles(name: str, values: list[float]) -> Figures:
    if len(values) == 1:
        values = values * 2
    cuts = quantiles(values, n=100, method="inclusive")
    return {f"{name}_p{percent}": cuts[percent - 1] for percent in PERCENTILES}
