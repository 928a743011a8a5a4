"""The command line of a run that ends with findings: how long it lasts, and its seed."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from typing import Protocol

from tests.faults.report import line, table


class Findings(Protocol):
    """What a run has found."""

    def wrong(self) -> list[str]:
        """The violations; empty if there are none."""

    def report(self) -> dict[str, object]:
        """The figures by name."""


class Play(Protocol):
    """One run on a control plane of its own."""

    def __call__(self, *, duration_s: float, seed: int) -> Findings:
        """Run and judge."""


def main(play: Play, *, name: str, what: str, lasts_s: float) -> int:
    """Run as the command line says, or for `lasts_s`; the exit status is 0 if all rules held."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--duration", type=float, default=lasts_s, metavar="SECONDS", help=f"default: {lasts_s:.0f}")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    _say(f"{name} for {arguments.duration:.0f} s with seed {seed}")
    found = play(duration_s=arguments.duration, seed=seed)
    report = json.loads(line({"seed": seed, **found.report()}))
    _say(table(report))
    for violation in found.wrong():
        _say(f"VIOLATION: {violation}")
    _say(line(report))
    return 1 if found.wrong() else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
