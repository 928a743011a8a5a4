"""`python -m tests.faults.replay FILE…`: give recorded events to a fresh machine and compare what it decides.

Exits with status 0 if every effect is equal, else 1; an exception of the machine is not caught.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.faults.recording import read, replay


def main(arguments: Sequence[str]) -> int:
    """Replay the files; the exit status."""
    if not arguments:
        sys.stderr.write("usage: python -m tests.faults.replay FILE…\n")
        return 2
    differing = 0
    for name in arguments:
        recording = read(Path(name))
        difference = replay(recording)
        differing += bool(difference)
        sys.stdout.write(f"{name}: {len(recording.turns)} turns: {difference or 'equal effects'}\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
