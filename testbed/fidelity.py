"""docs/fidelity.md: how each filter of kube-scheduler's default profile is decided, and how often both were compared."""

from __future__ import annotations

from pathlib import Path

import msgspec

FIGURES = Path("docs/fidelity.jsonl")


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """How often pods aimed at one filter were judged, and with which verdicts."""

    filter: str
    aim: str
    pairs: int
    refusing: int
    accepting: int
    disagreements: int


def read(root: Path) -> list[Figures]:
    """The committed figures."""
    lines = (root / FIGURES).read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Figures) for line in lines]
