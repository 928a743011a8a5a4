"""Examples in pages: what `gangsched simulate` prints about files of `examples`."""

from __future__ import annotations

import re
from pathlib import Path

from gangsched.cli.simulate import text_of
from gangsched.config.settings import Settings
from gangsched.kube.workloads.workload_table import chosen
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.building import build
from gangsched.whatif.world.manifests import read

PAGES = (Path("docs/preemption.md"), Path("docs/backfill.md"))
_WIDTH = 100
_BLOCK = re.compile(r"(```text\n\$ gangsched simulate ([^\n]+)\n).*?(```)", re.DOTALL)


def with_examples(root: Path, page: str) -> str:
    """The page with the present output of the commands that it shows."""
    return _BLOCK.sub(lambda found: found[1] + _printed(root, found[2].split()) + found[3], page)


def _printed(root: Path, files: list[str]) -> str:
    settings = Settings()
    world = build(read([str(root / file) for file in files]), chosen(settings))
    return "".join(f"{line}\n" for line in text_of(simulate(world, settings.policy()), _WIDTH))
