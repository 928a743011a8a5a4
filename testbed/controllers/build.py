"""Builds the workload controllers from the Go modules of their releases, into the cache that all checkouts share.

``python3 -m testbed.controllers.build [--quick | NAME …]`` prints, as its last lines, the folder of each. Each is built
from its module's own folder, with the versions that its go.mod requires and its go.sum fixes. Its folder also holds the
manifests that are installed with the program, so that a later run needs neither Go nor a network.
Runs on a bare Python 3.11, before any virtual environment exists.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from collections.abc import Collection
from pathlib import Path

from testbed.binaries import Pins
from testbed.cache import Report, SetupError, built, cache_root, locked, write_atomically
from testbed.controllers.table import CONTROLLERS, Controller
from testbed.go_build import build_failure, build_program, remove_remains
from testbed.go_toolchain import GoToolchain, find_go

CRDS, WEBHOOKS = "crds.yaml", "webhooks.yaml"
_OPTIONS = ("-ldflags", "-s -w")


def folder_of(controller: Controller) -> Path:
    """The folder of the controller's build; its name changes with every input of the build."""
    recipe = (controller.module, controller.version, controller.sum, controller.package, controller.crds)
    made = (*recipe, controller.webhooks, _OPTIONS, platform.system(), platform.machine())
    digest = hashlib.sha256(repr(made).encode()).hexdigest()[:12]
    return cache_root() / f"{controller.name}-{controller.version}-{digest}"


def is_built(controller: Controller) -> bool:
    """Whether the controller's folder is complete; the program is the last file written there."""
    return (folder_of(controller) / controller.name).exists()


def ensure(names: Collection[str] = tuple(CONTROLLERS), *, report: Report) -> dict[str, Path]:
    """The folders of the named controllers. Missing ones are built; ``report`` receives each step.

    Raises:
        SetupError: one could not be built.
    """
    wanted = [row for row in CONTROLLERS.values() if row.name in names]
    if not all(map(is_built, wanted)):
        with locked("controllers", report=report):
            missing = [row for row in wanted if not is_built(row)]
            go = find_go(Pins.read().go, report=report) if missing else None
            for position, row in enumerate(missing, 1):
                assert go is not None  # noqa: S101 - something is missing
                _build(row, go, step=f"[{position}/{len(missing)}] ", report=report)
    return {row.name: folder_of(row) for row in wanted}


def _build(controller: Controller, go: GoToolchain, *, step: str, report: Report) -> None:
    folder = folder_of(controller)
    folder.mkdir(parents=True, exist_ok=True)
    remove_remains(folder)
    source = _source(controller, go, folder)
    crds = [path.read_text() for path in sorted((source / controller.crds).glob("*.yaml"))]
    definitions = [text for text in crds if "\nkind: CustomResourceDefinition\n" in f"\n{text}"]
    if not definitions:
        raise SetupError(f"{controller.module} has no CustomResourceDefinition in {controller.crds}: mend its row.")
    write_atomically(folder / CRDS, "\n---\n".join(definitions))
    if controller.webhooks:
        write_atomically(folder / WEBHOOKS, (source / controller.webhooks).read_text())
    target = folder / controller.name
    build_program(target, controller.package, go=go, directory=source, options=_OPTIONS, step=step, report=report)


def _source(controller: Controller, go: GoToolchain, folder: Path) -> Path:
    """The module's folder in Go's cache, with its content verified against the table's sum."""
    named = f"{controller.module}@{controller.version}"
    answer = go.run(["mod", "download", "-json", named], directory=folder)
    found = json.loads(answer.stdout or "{}")
    if answer.returncode != 0 or "Dir" not in found:
        raise SetupError(build_failure(controller.name, found.get("Error", answer.stderr)))
    if found["Sum"] != controller.sum:
        raise SetupError(f"{named} has the sum {found['Sum']}, not {controller.sum}: find out who has changed it.")
    return Path(found["Dir"])


def main() -> int:
    """The command line: progress and, last, the folders on standard output; a failure on standard error."""
    parser = argparse.ArgumentParser(prog="python3 -m testbed.controllers.build", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: all by default ({', '.join(CONTROLLERS)})")
    parser.add_argument("--quick", action="store_true", help="those of make samples, where none is named")
    asked = parser.parse_args()
    names = asked.names or [row.name for row in CONTROLLERS.values() if row.quick or not asked.quick]
    if unknown := [name for name in names if name not in CONTROLLERS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CONTROLLERS)}")
    return built(lambda report: ensure(names, report=report).values())


if __name__ == "__main__":
    sys.exit(main())
