"""Who leaves for a gang: gangsched's choice and those of others, against the least lost work. One line for each.

`python -m bench.quality.evictors [--instances N]`
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from statistics import mean

from bench.quality.crowded import Crowded, crowded
from bench.quality.least_lost import least_lost
from bench.report import Line
from gangsched.core.planning.after import After
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.leaving import Search

TITLE, OWN, KUBE, VOLCANO, OPTIMUM = "victims: ", "gangsched", "remove all and reprieve", "bundles by sum", "optimum"
INSTANCES = 500
_PLENTY = 1 << 40

Evictor = Callable[[Crowded], frozenset[int]]
"""Who leaves in an instance, by number."""


def own(instance: Crowded) -> frozenset[int]:
    """Gangsched's search.

    Raises:
        RuntimeError: it finds nobody, though there is a way.
    """
    search = Search(instance.ask, instance.removable, {})
    found = search.go_on(Snapshot(instance.cluster, budget=Budget(_PLENTY)))
    if not isinstance(found, After):
        raise RuntimeError(f"nobody was found to leave in instance {instance.seed}: {found}")  # noqa: TRY004
    names = {unit.name for unit in found.leaving}
    return frozenset(at for at, unit in enumerate(instance.units) if unit.name in names)


def reprieved(instance: Crowded) -> frozenset[int]:
    """As kube-scheduler does for groups: all of lower priority leave, and one by one stays if the group fits still.

    The most important first: by priority, gangs before pods, the older, the larger.
    """
    removable, leaving = instance.removable, set(range(len(instance.units)))

    def order(at: int) -> tuple[int, bool, float, int]:
        unit = instance.units[at]
        return -unit.level, not unit.whole, unit.since, -len(unit.claims)

    for at in sorted(leaving, key=order):
        # Members above a gang's minimum do not stay without it.
        fewer = leaving - {at}
        if leaving.isdisjoint(removable.takers.get(at, ())) and instance.suffices(fewer):
            leaving = fewer
    return frozenset(leaving)


def bundled(instance: Crowded) -> frozenset[int]:
    """As Volcano's gangpreempt: bundles leave until the sum suffices and the gang is placed; none is put back.

    Members above a minimum are before whole gangs, and what frees more CPUs for a pod that is evicted is before others.
    """
    removable, capacity = instance.removable, instance.cluster.capacity

    def cpus(at: int) -> int:
        return sum(dict(claim.pod.shape.requests)["cpu"] for claim in instance.units[at].claims)

    def order(at: int) -> tuple[int, bool, float]:
        unit = instance.units[at]
        return unit.level, unit.whole, -cpus(at) / len(unit.claims)

    asked = sum(dict(pod.shape.requests)["cpu"] for pod in instance.ask.members)
    leaving = set[int]()
    free = sum(max(0, capacity.free_of(row, "cpu")) for row in capacity.rows.values())
    for at in sorted(range(len(instance.units)), key=order):
        if free + sum(map(cpus, leaving)) >= asked and instance.suffices(leaving):
            break
        leaving |= removable.closure((at,))
    return frozenset(leaving)


EVICTORS: dict[str, Evictor] = {OPTIMUM: least_lost, OWN: own, KUBE: reprieved, VOLCANO: bundled}


def compared(seeds: Iterable[int]) -> list[Line]:
    """A line for each way: its lost work and its evictions, beside the optimum's and kube-scheduler's.

    Raises:
        RuntimeError: a way beats the optimum, so the two do not solve the same problem.
    """
    found: dict[str, list[tuple[Crowded, frozenset[int]]]] = {name: [] for name in EVICTORS}
    for seed in seeds:
        instance = crowded(seed)
        for name, evictor in EVICTORS.items():
            found[name].append((instance, evictor(instance)))
    return [_line(name, several, found[OPTIMUM], found[KUBE]) for name, several in found.items()]


def _line(
    name: str,
    found: Sequence[tuple[Crowded, frozenset[int]]],
    best: Sequence[tuple[Crowded, frozenset[int]]],
    kube: Sequence[tuple[Crowded, frozenset[int]]],
) -> Line:
    ratios, same = [], 0
    for (instance, leaving), (_, least) in zip(found, best, strict=True):
        level, lowest = instance.level(leaving), instance.level(least)
        ratio = instance.lost(leaving) / instance.lost(least)
        if level < lowest or (level == lowest and ratio < 1 - 1e-6):
            raise RuntimeError(f"{name} beats the optimum of instance {instance.seed}")
        same += level == lowest
        if level == lowest:
            ratios.append(ratio)
    pods = [instance.pods(leaving) for instance, leaving in found]
    fewer = [instance.pods(leaving) for instance, leaving in kube]
    return {
        "scenario": TITLE + name,
        "instances": len(found),
        "lowest_level": same / len(found),
        "mean_ratio": round(mean(ratios), 4),
        "worst_ratio": round(max(ratios), 4),
        "lost": round(mean(instance.lost(leaving) for instance, leaving in found), 2),
        "pods": round(mean(pods), 3),
        "more_pods_than_kube": sum(one > other for one, other in zip(pods, fewer, strict=True)),
    }


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.evictors", description=__doc__)
    parser.add_argument("--instances", type=int, default=INSTANCES, help=f"seeds from 1 on ({INSTANCES})")
    for line in compared(range(1, parser.parse_args().instances + 1)):
        print(json.dumps(line, ensure_ascii=False))


if __name__ == "__main__":
    main()
