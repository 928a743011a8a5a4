"""`python -m bench.quality [--instances N] [--write]`: one JSON line for the optimum and for each planner.

`--write` writes them to docs/performance.md.
"""

from __future__ import annotations

import argparse
import json

from bench import page, report
from bench.quality.comparison import compared

INSTANCES = 500


def main() -> None:
    """Compare, print, and write with `--write`."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--instances", type=int, default=INSTANCES, help=f"seeds from 1 on ({INSTANCES})")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    chosen = parser.parse_args()
    lines = compared(range(1, chosen.instances + 1))
    for line in lines:
        print(json.dumps(line, ensure_ascii=False))
    if chosen.write:
        page.write(report.keep(lines))


if __name__ == "__main__":
    main()
