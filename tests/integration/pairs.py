"""Pairs of a random cluster and a pod, judged by kube-scheduler's filters and by gangsched.

`python -m tests.integration.pairs` (make docs) writes docs/fidelity.jsonl, from which docs/fidelity.md is generated.
The pairs come from fixed seeds, so the figures are reproducible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from documentation.fidelity import FIGURES, Figures
from documentation.figures import write
from tests.integration.aims import AIMS, Aims
from tests.integration.device_aims import DEVICE_AIMS, DeviceAims
from tests.integration.judged import Bench, Json, Surroundings, Verdicts, World
from tests.integration.oracle_worlds import NAMESPACES, PRIORITIES, RUNTIME_CLASSES
from tests.integration.volume_aims import VOLUME_AIMS, VolumeAims
from tests.judge import Judge

ROOT = Path(__file__).resolve().parent.parent.parent
WORLDS = 40
"""Number of worlds that `make test` judges."""
FILTER_OF = {aim: plugin for aim, (plugin, _) in (AIMS | VOLUME_AIMS | DEVICE_AIMS).items()}
"""The filter that should decide, by aim; empty for any."""
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


def drawn(seed: int) -> list[tuple[World, list[tuple[str, Json]]]]:
    """Three worlds, one of them of volumes and one of devices, each with pods and their aims: a few of each aim."""
    aims, of_volumes, of_devices = Aims(seed), VolumeAims(seed), DeviceAims(seed)
    world = aims.world(nodes=_NODES, pods=_PODS)
    volumes = of_volumes.world(nodes=_NODES, pods=_PODS)
    devices = of_devices.world(nodes=_NODES, pods=_PODS)
    return [
        (world, [(name, draw(aims)) for name, (_, draw) in AIMS.items() for _ in range(_OF_EACH_AIM)]),
        (volumes, [(name, draw(of_volumes)) for name, (_, draw) in VOLUME_AIMS.items() for _ in range(_OF_EACH_AIM)]),
        (devices, [(name, draw(of_devices)) for name, (_, draw) in DEVICE_AIMS.items() for _ in range(_OF_EACH_AIM)]),
    ]


def judged(judge: Judge, seed: int) -> Iterator[tuple[str, Verdicts]]:
    """The pairs of one seed, each with its aim."""
    asking = bench(judge)
    for world, wanted in drawn(seed):
        with asking.world(world):
            verdicts = asking.ask([probe for _, probe in wanted])
        yield from zip([name for name, _ in wanted], verdicts, strict=True)


def pairs(judge: Judge, seeds: Iterable[int]) -> Iterator[Pair]:
    """The pairs of each seed."""
    for seed in seeds:
        for aim, verdicts in judged(judge, seed):
            assert not verdicts.unsupported, verdicts.manifest
            plugin = FILTER_OF[aim]
            # Some worlds have one node that refuses every pod.
            refusing = any(plugin in ("", each.plugin) and node != "alone" for node, each in verdicts.refused.items())
            told = f"seed {seed}, {verdicts.difference}" if verdicts.difference else ""
            yield Pair(aim, refusing, bool(verdicts.kube_scheduler), told)


def figures(found: Iterable[Pair]) -> list[Figures]:
    """The number of pairs of each aim."""
    by_aim = defaultdict(list)
    for pair in found:
        by_aim[pair.aim].append(pair)
    return [
        Figures(
            filter=FILTER_OF[aim],
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
    write(ROOT / FIGURES, found)


if __name__ == "__main__":
    main()
