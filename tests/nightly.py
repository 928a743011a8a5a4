"""`make nightly [SEED=n] [DURATION=3600]`: what takes hours or explores at random, one part after the other.

The properties try twenty times as many examples as in `make test`, and tests marked `explores` as many more worlds,
among them those that kube-scheduler judges; then the soak runs for an hour, and the API server is killed again and
again. All parts take the same seed, another one each night, and each tells the command that repeats it. A part that
fails stops none of the others; the status is 1 if any did.
"""

from __future__ import annotations

import argparse
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

SOAK_S = 3600
_TEST_WITHIN_S = 4 * 3600


@dataclass(frozen=True)
class Part:
    """One command of the night; its arguments hold the seed."""

    name: str
    seed: int
    command: tuple[str, ...]

    def line(self) -> str:
        """The command as it is typed into a shell."""
        return shlex.join(self.command)


def night(*, seed: int, soak_s: float) -> list[Part]:
    """The parts, cheapest discoveries first."""
    explore = ["pytest", "-n", "2", "--dist", "loadfile", "-m", "hypothesis or explores", f"--timeout={_TEST_WITHIN_S}"]
    explore += ["--hypothesis-profile=nightly", f"--hypothesis-seed={seed}"]
    soak = ["tests.faults.soak", "--duration", f"{soak_s:g}", "--seed", str(seed)]
    outages = ["tests.faults.outages", "--seed", str(seed)]
    parts = {"properties and random worlds": explore, "soak": soak, "outages": outages}
    return [Part(name, seed, (sys.executable, "-m", *arguments)) for name, arguments in parts.items()]


def run(parts: Sequence[Part]) -> int:
    """Run them all and tell how each ended; the exit status."""
    told = []
    failed = False
    for part in parts:
        _say(f"== {part.name}, seed {part.seed}; again with: {part.line()}")
        began = time.monotonic()
        passed = subprocess.run(part.command, check=False).returncode == 0
        failed |= not passed
        ended = f"after {(time.monotonic() - began) / 60:.0f} min with seed {part.seed}: {part.name}"
        told.append(f"passed {ended}" if passed else f"FAILED {ended}; again with: {part.line()}")
    for line in told:
        _say(line)
    return int(failed)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run as the command line says; the exit status."""
    parser = argparse.ArgumentParser(description="What takes hours or explores at random.")
    parser.add_argument("--duration", type=float, default=SOAK_S, metavar="SECONDS", help="of the soak")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    return run(night(seed=seed, soak_s=arguments.duration))


if __name__ == "__main__":
    sys.exit(main())
