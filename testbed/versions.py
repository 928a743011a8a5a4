"""Older versions of Kubernetes, built from the Go modules in hack/versions, for make versions.

``python3 -m testbed.versions [VERSION …]`` prints, as its last lines, the folder of each. A folder has the programs
that come from Kubernetes itself. Where KUBEBUILDER_ASSETS names it, the tests use these beside the etcd, KWOK and helm
of the main version (testbed.binaries).
Runs on a bare Python 3.11, before any virtual environment exists.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from testbed.binaries import HACK, LINK_FLAGS, PROGRAMS, pinned
from testbed.cache import Report, built, cache_root, locked
from testbed.go_build import build_program, remove_remains
from testbed.go_toolchain import find_go, required_go

PACKAGES = {
    name: PROGRAMS[name].package for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
}
"""What is built of each version, in build order."""


@dataclass(frozen=True)
class Older:
    """One version: its minor one, such as v1.34, its full one, the folder of its module, and that of its programs."""

    name: str
    kubernetes: str
    module: Path
    folder: Path

    @property
    def missing(self) -> list[str]:
        """The programs that have to be built."""
        return [name for name in PACKAGES if not (self.folder / name).exists()]


def _read(module: Path) -> Older:
    """The version that the module pins; the name of its programs' folder changes with any input of the build."""
    digest = hashlib.sha256(f"{LINK_FLAGS} {platform.system()} {platform.machine()}".encode())
    for file in ("go.mod", "go.sum"):
        digest.update((module / file).read_bytes())
    kubernetes = pinned((module / "go.mod").read_text(), "k8s.io/kubernetes")
    folder = cache_root() / f"kubernetes-{kubernetes}-{digest.hexdigest()[:12]}"
    return Older(module.name, kubernetes, module, folder)


def older(hack: Path = HACK) -> dict[str, Older]:
    """All of them by minor version, the oldest first."""
    found = map(_read, sorted((hack / "versions").iterdir(), key=lambda module: int(module.name.rpartition(".")[2])))
    return {each.name: each for each in found}


def ensure(names: Collection[str], *, report: Report) -> dict[str, Path]:
    """The folders of the named versions. Missing programs are built; ``report`` receives each step.

    Raises:
        SetupError: one could not be built.
    """
    wanted = [each for each in older().values() if each.name in names]
    for each in wanted:
        if each.missing:
            with locked(each.folder.name, report=report):
                _build(each, report=report)
    return {each.name: each.folder for each in wanted}


def _build(version: Older, *, report: Report) -> None:
    version.folder.mkdir(parents=True, exist_ok=True)
    go = find_go(required_go((version.module / "go.mod").read_text()), report=report)
    remove_remains(version.folder)
    missing = version.missing
    for position, name in enumerate(missing, 1):
        build_program(
            version.folder / name,
            PACKAGES[name],
            go=go,
            directory=version.module,
            options=("-ldflags", LINK_FLAGS.format(kubernetes=version.kubernetes)),
            step=f"{version.kubernetes} [{position}/{len(missing)}] ",
            report=report,
        )


def main() -> int:
    """The command line: progress and, last, the folders on standard output; a failure on standard error."""
    known = older()
    parser = argparse.ArgumentParser(prog="python3 -m testbed.versions", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="VERSION", help=f"which: all by default ({', '.join(known)})")
    names = parser.parse_args().names or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return built(lambda report: ensure(names, report=report).values())


if __name__ == "__main__":
    sys.exit(main())
