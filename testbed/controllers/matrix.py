"""Which workloads run as gangs, and how they can be declared: what is expected, what was seen, and the table of both.

`EXPECTED` is what tests/workloads plays; ``make workloads`` writes what it has seen into FIGURES, from which and from
EXPECTED the tables of docs/workloads/README.md follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from testbed.controllers.table import CONTROLLERS
from testbed.filling import put

PAGE = Path("docs") / "workloads" / "README.md"
FIGURES = Path("docs") / "workloads" / "seen.jsonl"

AUTO, ANNOTATION, OWN, BY_HAND = "nothing", "annotation", "own", "podgroup"
COLUMNS = {
    AUTO: "nothing declared but `schedulerName`, in a namespace with the label `gangsched.io/gang: auto`",
    ANNOTATION: 'annotation `gangsched.io/gang: "true"` on the workload',
    OWN: "the controller's own integration",
    BY_HAND: "PodGroup by hand",
}
"""How a gang can be declared, in the order of the table."""

RACE, FAILURE, SCALE, SUSPENSION = "race", "failure", "scale", "suspension"
PLAYS = {
    RACE: "Two where one fits: one runs whole, the other waits whole and runs once the first is deleted",
    FAILURE: "A member fails, its controller makes it again",
    SCALE: "Scaled up and down",
    SUSPENSION: "Suspended and resumed, or scaled to 0 and back where it cannot be suspended",
}
"""What is played with each workload, by its name in FIGURES."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One kind of workload: the page that tells how to declare it, and what is not possible with it, and why.

    `not_declared` is by the column that it leaves empty, `not_played` by the play and, where only one way to declare
    gangs is concerned, the column.
    """

    kind: str
    page: str
    controller: str = ""
    """Its name in CONTROLLERS; empty for kube-controller-manager's own."""
    not_declared: Mapping[str, str] = field(default_factory=dict)
    not_played: Mapping[str | tuple[str, str], str] = field(default_factory=dict)

    def columns(self) -> list[str]:
        """The ways in which it can be declared."""
        return [column for column in COLUMNS if column not in self.not_declared]

    def plays(self, column: str) -> list[str]:
        """What can be played with it when it is declared in that way."""
        return [play for play in PLAYS if not self.why_not(play, column)]

    def why_not(self, play: str, column: str) -> str:
        """Why something cannot be played with it; empty if it can."""
        return self.not_played.get(play) or self.not_played.get((play, column), "")

    @property
    def of(self) -> str:
        """The controller and its version."""
        if not self.controller:
            return "Kubernetes"
        return f"{self.controller} {CONTROLLERS[self.controller].version.removeprefix('v')}"


EXPECTED = {
    row.kind: row
    for row in (
        Workload(
            kind="Job",
            page="job.md",
            not_declared={OWN: "only behind alpha feature gates ([native](../migrate/native.md))"},
        ),
        Workload(
            kind="StatefulSet",
            page="statefulset.md",
            not_declared={OWN: "its controller declares no group"},
        ),
        Workload(
            kind="JobSet",
            page="jobset.md",
            controller="jobset",
            not_declared={OWN: "JobSet 0.10 has no gang scheduling of its own"},
            not_played={SCALE: "a JobSet's number of jobs and their parallelism cannot be changed"},
        ),
        Workload(
            kind="LeaderWorkerSet",
            page="leaderworkerset.md",
            controller="lws",
            not_played={(SCALE, BY_HAND): "one label is one group for all replicas"},
        ),
        Workload(kind="RayCluster", page="raycluster.md", controller="kuberay"),
        Workload(kind="MPIJob", page="mpijob.md", controller="mpi-operator"),
        Workload(kind="PyTorchJob", page="pytorchjob.md", controller="training-operator"),
        Workload(
            kind="TrainJob",
            page="trainjob.md",
            controller="trainer",
            not_played={SCALE: "the number of a TrainJob's nodes cannot be changed"},
        ),
        Workload(
            kind="Job in a queue",
            page="kueue.md",
            controller="kueue",
            not_declared={OWN: "Kueue makes groups of plain pods only ([from Kueue](../migrate/kueue.md))"},
            not_played={
                SCALE: "Kueue admits a Job for the size that it has",
                SUSPENSION: "`spec.suspend` is Kueue's to set",
            },
        ),
    )
}
"""What the tests play, in the order of the table. Everything that is not excluded ends whole."""


class Seen(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """How a play with a workload that is declared in one of the ways ended on the real API server."""

    workload: str
    column: str
    play: str
    whole: bool


def read(root: Path) -> list[Seen]:
    """What the last runs have seen."""
    lines = (root / FIGURES).read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Seen) for line in lines]


def merged(before: Iterable[Seen], now: Sequence[Seen]) -> list[Seen]:
    """What is known after a run: its own plays in place of earlier ones, without those that are no longer expected."""
    found = {(each.workload, each.column, each.play): each for each in [*before, *now]}
    return [found[key] for key in _expected() if key in found]


def write(root: Path, seen: Iterable[Seen]) -> None:
    """Keeps what was seen, one line each."""
    lines = [msgspec.json.encode(each).decode() for each in seen]
    (root / FIGURES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _expected() -> list[tuple[str, str, str]]:
    return [
        (row.kind, column, play) for row in EXPECTED.values() for column in row.columns() for play in row.plays(column)
    ]


def page(root: Path, text: str) -> str:
    """The page's text with both tables as they follow from EXPECTED and what was seen.

    Raises:
        ValueError: the text has no place for one of them.
    """
    seen = {(each.workload, each.column, each.play): each.whole for each in read(root)}
    for name, lines in (("matrix", _matrix(seen)), ("plays", _plays(seen))):
        begin, end = f"<!-- {name}, written by make workloads -->\n", f"<!-- end of {name} -->"
        text = put(f"(?s){begin}.*?{end}", begin + "\n" + "\n".join(lines) + "\n\n" + end, text)
    return text


def _matrix(seen: Mapping[tuple[str, str, str], bool]) -> list[str]:
    lines = [f"| workload | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in EXPECTED.values():
        cells = [
            f"not possible: {row.not_declared[column]}"
            if column in row.not_declared
            else _verdict(seen.get((row.kind, column, RACE)))
            for column in COLUMNS
        ]
        lines.append(f"| [{row.kind}]({row.page}) ({row.of}) | {' | '.join(cells)} |")
    return lines


def _plays(seen: Mapping[tuple[str, str, str], bool]) -> list[str]:
    further = [play for play in PLAYS if play != RACE]
    lines = [f"| workload | {' | '.join(PLAYS[play] for play in further)} |", "|---" * (len(further) + 1) + "|"]
    for row in EXPECTED.values():
        cells = [_cell(row, play, seen) for play in further]
        lines.append(f"| {row.kind} | {' | '.join(cells)} |")
    return lines


def _cell(row: Workload, play: str, seen: Mapping[tuple[str, str, str], bool]) -> str:
    """How the play ended in each way to declare the workload; once, if it ended alike in all."""
    verdicts: dict[str, list[str]] = {}
    for column in row.columns():
        why_not = row.why_not(play, column)
        verdict = f"not possible: {why_not}" if why_not else _verdict(seen.get((row.kind, column, play)))
        verdicts.setdefault(verdict, []).append(column)
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return "; ".join(f"{', '.join(columns)}: {verdict}" for verdict, columns in verdicts.items())


def _verdict(whole: bool | None) -> str:  # noqa: FBT001 - it is the verdict
    return {True: "whole/whole", False: "**not whole**", None: "not played yet"}[whole]
