"""Pairs of a random cluster and a pod, judged by kube-scheduler's filters and by gangsched.

`python -m tests.integration.pairs` (make docs) writes docs/fidelity.jsonl, from which docs/fidelity.md is made. The
pairs follow from fixed seeds, so that the figures are the same each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from testbed.fidelity import FIGURES, Figures
from tests.integration.aims import AIMS, Aims
from tests.integration.judged import Bench, Json, Surroundings, Verdicts, World
from tests.integration.oracle_worlds import NAMESPACES, PRIORITIES, RUNTIME_CLASSES
from tests.judge import Judge

ROOT = Path(__file__).resolve().parent.parent.parent
WORLDS = 50
"""So many are judged in `make test`."""
_OF_EACH_AIM = 5
_NODES = 9
_PODS = 24


@dataclass(frozen=True)
class Pair:
    """One pod in one cluster. `refusing`: the filter in question refuses a node; `accepting`: a node takes the pod."""

    aim: str
    refusing: bool
    accepting: bool
    difference: str


def bench(judge: Judge) -> Bench:
    return Bench(judge, Surroundings(NAMESPACES, RUNTIME_CLASSES, PRIORITIES))


def drawn(seed: int) -> tuple[World, list[tuple[str, Json]]]:
    """A world, and pods with their aims: a few of each."""
    aims = Aims(seed)
    world = aims.world(nodes=_NODES, pods=_PODS)
    return world, [(name, draw(aims)) for name, (_, draw) in AIMS.items() for _ in range(_OF_EACH_AIM)]


def judged(judge: Judge, seed: int) -> Iterator[tuple[str, Verdicts]]:
    """The pairs of one world by their aims."""
    world, wanted = drawn(seed)
    asking = bench(judge)
    with asking.world(world):
        verdicts = asking.ask([probe for _, probe in wanted])
    yield from zip([name for name, _ in wanted], verdicts, strict=True)


def pairs(judge: Judge, seeds: Iterable[int]) -> Iterator[Pair]:
    """The pairs of one world for each seed."""
    for seed in seeds:
        for aim, verdicts in judged(judge, seed):
            assert not verdicts.unsupported, verdicts.manifest
            plugin, _ = AIMS[aim]
            # The worlds have one node that refuses every pod.
            refusing = any(plugin in ("", each.plugin) and node != "alone" for node, each in verdicts.refused.items())
            told = f"seed {seed}, {verdicts.difference}" if verdicts.difference else ""
            yield Pair(aim, refusing, bool(verdicts.kube_scheduler), told)


def figures(found: Iterable[Pair]) -> list[Figures]:
    """How many pairs of each aim there are."""
    by_aim = defaultdict(list)
    for pair in found:
        by_aim[pair.aim].append(pair)
    return [
        Figures(
            filter=AIMS[aim][0],
            aim=aim,
            pairs=len(each),
            refusing=sum(pair.refusing for pair in each),
            accepting=sum(pair.accepting for pair in each),
            disagreements=sum(bool(pair.difference) for pair in each),
        )
        for aim, each in by_aim.items()
    ]


def main() -> None:
    with Judge() as judge:
        found = figures(pairs(judge, range(1, WORLDS + 1)))
    lines = [msgspec.json.encode(each).decode() for each in found]
    (ROOT / FIGURES).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
