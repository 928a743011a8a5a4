"""The control plane's programs: found on the machine, or built from the Go modules in hack/.

``python3 -m testbed.binaries`` prints, as its last line, the folder with all of them. A program is taken from
KUBEBUILDER_ASSETS if that is set, then from the cache, then from PATH if it has the pinned version; the rest is built.
The cache is outside of the checkout and its key consists of the pinned versions, so that a fresh clone finds it.
Runs on a bare Python 3.11, before any virtual environment exists.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.cache import Report, SetupError, built, cache_root, locked, write_atomically
from testbed.go_build import build_failure, build_program, remove_remains
from testbed.go_toolchain import GoToolchain, find_go, required_go

HACK = Path(__file__).resolve().parent.parent / "hack"
MODULES = ("control-plane", "helm")
STAGES = "kwok-stages.yaml"
_STAGE_SOURCES = (
    "node/fast/node-initialize",
    "node/heartbeat-with-lease/node-heartbeat-with-lease",
    "pod/fast/pod-ready",
    "pod/fast/pod-delete",
)
LINK_FLAGS = "-s -w -X k8s.io/component-base/version.gitVersion={kubernetes}"
_OLDEST_ASSETS = (1, 30)
_OLDEST_ETCD = (3, 5)

Version = tuple[int, int]


@dataclass(frozen=True)
class Program:
    """One binary: the Go package it is built from, and how it reports its version."""

    name: str
    package: str
    module: str = "control-plane"
    version_arguments: tuple[str, ...] = ("--version",)


def with_digest(name: str, source: Path) -> str:
    """The name of a program built from this repository's source, with its digest, so the cache has one per state."""
    digest = hashlib.sha256()
    for file in sorted(source.glob("*.go")):
        digest.update(file.read_bytes())
    return f"{name}-{digest.hexdigest()[:12]}"


JUDGE = with_digest("judge", HACK / "control-plane" / "judge")
"""kube-scheduler's filters as a program that evaluates any pod in any cluster; for tests only."""

# In build order: the first takes only seconds, and the programs for the demo come before the rest.
PROGRAMS = {
    program.name: program
    for program in (
        Program("etcd", "go.etcd.io/etcd/server/v3"),
        Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", version_arguments=("version", "--client")),
        Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
        Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        Program(JUDGE, "./judge"),
        Program("helm", "helm.sh/helm/v4/cmd/helm", module="helm", version_arguments=("version", "--short")),
    )
}
ALL = tuple(PROGRAMS)
DEMO = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok")


@dataclass(frozen=True)
class Pins:
    """What the go.mod files pin, and the cache key that follows from it."""

    kubernetes: str
    kwok: str
    helm: str
    go: Version
    key: str

    @classmethod
    def read(cls, hack: Path = HACK) -> Pins:
        """Reads hack/*/go.mod and go.sum; the key changes with any byte of them and with the build recipe."""
        digest = hashlib.sha256(f"{LINK_FLAGS} {_STAGE_SOURCES} {platform.system()} {platform.machine()}".encode())
        for module in MODULES:
            for file in ("go.mod", "go.sum"):
                digest.update((hack / module / file).read_bytes())
        main = (hack / "control-plane" / "go.mod").read_text()
        kubernetes = pinned(main, "k8s.io/kubernetes")
        return cls(
            kubernetes=kubernetes,
            kwok=pinned(main, "sigs.k8s.io/kwok"),
            helm=pinned((hack / "helm" / "go.mod").read_text(), "helm.sh/helm/v4"),
            go=required_go(main),
            key=f"control-plane-{kubernetes}-{digest.hexdigest()[:12]}",
        )

    def accepts(self, name: str, version: Version, *, explicit: bool = False) -> bool:
        """Whether a program of that version may replace the pinned one.

        ``explicit``: it comes from KUBEBUILDER_ASSETS, which the user sets to test against another Kubernetes version.
        """
        if name == "etcd":
            return version >= _OLDEST_ETCD
        if name == "kwok":
            return version == parse_version(self.kwok)
        if name == "helm":
            return version[0] == parse_version(self.helm)[0]
        return version == parse_version(self.kubernetes) or (explicit and version >= _OLDEST_ASSETS)


def pinned(go_mod: str, module: str) -> str:
    """The version of the module that a go.mod with this text requires.

    Raises:
        SetupError: it requires none.
    """
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
    if match is None:
        raise SetupError(f"A go.mod in hack/ does not require {module}; restore the file from the repository.")
    return match[1]


def parse_version(text: str) -> Version:
    """The first MAJOR.MINOR in what a program prints; (0, 0) if there is none."""
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def find(names: Collection[str] = ALL) -> Path | None:
    """The folder with the named programs; None if one of them must be built first."""
    pins = Pins.read()
    found = _found(names, pins, report=lambda _: None)
    return None if _missing(names, found) else _folder(found, pins)


def ensure(names: Collection[str] = ALL, *, report: Report) -> Path:
    """The folder with the named programs. Missing ones are built; ``report`` receives each step.

    Raises:
        SetupError: a program was not found and could not be built.
    """
    pins = Pins.read()
    found = _found(names, pins, report=report)
    if _missing(names, found):
        with locked(pins.key, report=report):
            found = _found(names, pins, report=lambda _: None)
            _build(_missing(names, found), pins, report=report)
        found = _found(names, pins, report=lambda _: None)
    return _folder(found, pins)


def version_of(name: str) -> Version:
    """The version of the named program in the folder that `find` returns.

    Raises:
        SetupError: it must be built first.
    """
    folder = find([name])
    if folder is None:
        raise SetupError(f"{name} is not built yet: run make control-plane first.")
    return _version_of(folder / name, PROGRAMS[name])


def _missing(names: Collection[str], found: Mapping[str, Path]) -> list[str]:
    """The programs that have to be built, in build order."""
    wanted = [STAGES] if "kwok" in names else []
    wanted += [name for name in ALL if name in names]
    return [name for name in wanted if name not in found]


def _found(names: Collection[str], pins: Pins, *, report: Report) -> dict[str, Path]:
    built = cache_root() / pins.key
    found = {STAGES: built / STAGES} if (built / STAGES).exists() else {}
    for name in names:
        program = PROGRAMS[name]
        if (asset := _asset(program, pins, report=report)) is not None:
            found[name] = asset
        elif (cached := built / name).exists():
            found[name] = cached
        elif (on_path := shutil.which(name)) and pins.accepts(name, _version_of(Path(on_path), program)):
            found[name] = Path(on_path).absolute()
    return found


def _asset(program: Program, pins: Pins, *, report: Report) -> Path | None:
    """The program in KUBEBUILDER_ASSETS, if it exists there in an acceptable version."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if not assets or not (asset := Path(assets).absolute() / program.name).is_file():
        return None
    version = _version_of(asset, program)
    said = f"{program.name} {version[0]}.{version[1]} in KUBEBUILDER_ASSETS"
    if not pins.accepts(program.name, version, explicit=True):
        report(f"{said} is too old or does not run here: the pinned one is used instead")
        return None
    if not pins.accepts(program.name, version):
        report(f"{said} is used; gangsched is tested on {pins.kubernetes}: unset the variable to get that")
    return asset


def _version_of(command: Path, program: Program) -> Version:
    try:
        answer = subprocess.run(
            [str(command), *program.version_arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    return parse_version(answer.stdout)


def _folder(found: Mapping[str, Path], pins: Pins) -> Path:
    """The cache's folder, or a folder of links if a program comes from elsewhere."""
    built = cache_root() / pins.key
    if all(path.parent == built for path in found.values()):
        return built
    digest = hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:12]
    links = cache_root() / f"{pins.key}-with-{digest}"
    links.mkdir(parents=True, exist_ok=True)
    for name, target in found.items():
        unfinished = links / f".{name}.{os.getpid()}"
        unfinished.symlink_to(target)
        unfinished.replace(links / name)
    return links


def _build(missing: list[str], pins: Pins, *, report: Report) -> None:
    if not missing:
        return
    folder = cache_root() / pins.key
    folder.mkdir(parents=True, exist_ok=True)
    go = find_go(pins.go, report=report)
    names = [name for name in missing if name != STAGES]
    report(
        f"building {', '.join(names) or STAGES} from Go modules into {folder}; "
        f"the first build of all takes about ten minutes on two cores"
    )
    remove_remains(folder)
    if STAGES in missing:
        write_atomically(folder / STAGES, _collect_stages(go))
    for position, name in enumerate(names, 1):
        program = PROGRAMS[name]
        build_program(
            folder / name,
            program.package,
            go=go,
            directory=HACK / program.module,
            options=("-ldflags", LINK_FLAGS.format(kubernetes=pins.kubernetes)),
            step=f"[{position}/{len(names)}] ",
            report=report,
        )


def _collect_stages(go: GoToolchain) -> str:
    """KWOK's Stage objects, which its binary does not include; without pod-complete, so that pods keep running."""
    download = go.run(["mod", "download", "sigs.k8s.io/kwok"], directory=HACK / "control-plane")
    where = go.run(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], directory=HACK / "control-plane")
    source = Path(where.stdout.strip() or "missing") / "kustomize" / "stage"
    if not source.is_dir():
        raise SetupError(build_failure("the stages of KWOK", download.stderr + where.stderr))
    return "---\n".join((source / f"{stage}.yaml").read_text() for stage in _STAGE_SOURCES)


def main() -> int:
    """The command line: progress and, last, the folder on standard output; a failure on standard error."""
    parser = argparse.ArgumentParser(prog="python3 -m testbed.binaries", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["demo"], help="just what make demo needs; the default is everything")
    chosen = parser.parse_args()
    return built(lambda report: [ensure(DEMO if chosen.only else ALL, report=report)])


if __name__ == "__main__":
    sys.exit(main())
