"""The files for the forge and its tools agree with the Makefile and the chart."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.binaries import Pins
from testbed.environment import UV

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted(path.name for path in (ROOT / ".github" / "workflows").iterdir())


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def commands(workflow: str) -> str:
    jobs = read(f".github/workflows/{workflow}")["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_the_forges_ci_is_the_repositorys_and_nothing_is_released_without_it() -> None:
    assert ".ci/run" in commands("ci.yaml")
    assert ".ci/run" in commands("release.yaml")
    jobs = read(".github/workflows/release.yaml")["jobs"]
    assert (jobs["plugin"]["needs"], jobs["publish"]["needs"]) == ("test", ["test", "plugin"])


def test_ci_tests_the_python_of_the_image_and_a_newer_one_and_the_night_what_takes_hours() -> None:
    pythons = read(".github/workflows/ci.yaml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert re.findall(r"^FROM python:([\d.]+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE) == [pythons[0]] * 2
    assert [int(python.removeprefix("3.")) for python in pythons] == [11, 14]
    nightly = read(".github/workflows/nightly.yaml")
    assert nightly[True]["schedule"], "`on` is a truth value in YAML 1.1"
    assert nightly["jobs"]["explore"]["strategy"]["matrix"]["target"] == ["nightly", "versions", "workloads"]
    assert {"make audit", "make coverage"} <= set(commands("ci.yaml").splitlines())


def test_a_release_is_refused_whose_tag_is_not_the_version_of_package_and_chart() -> None:
    chart = read("charts/gangsched/Chart.yaml")
    assert f'version = "{chart["version"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert f'appVersion: "{chart["version"]}"' in (ROOT / "charts/gangsched/Chart.yaml").read_text().splitlines()
    for line in ('version = \\"$version\\"', "version: $version", 'appVersion: \\"$version\\"'):
        assert f'grep -qx "{line}"' in commands("release.yaml")


def test_what_a_workflow_may_do_is_said_and_no_more_than_reading_by_default() -> None:
    for name in WORKFLOWS:
        assert read(f".github/workflows/{name}")["permissions"] == {"contents": "read"}


def test_krew_gets_an_archive_for_each_platform_and_a_manifest_without_gaps() -> None:
    """Runs the release step that fills in the manifest, on archives of one byte."""
    jobs = read(".github/workflows/release.yaml")["jobs"]
    built = [each["platform"] for each in jobs["plugin"]["strategy"]["matrix"]["include"]]
    [step] = [each for each in jobs["publish"]["steps"] if each.get("name", "").startswith("The krew manifest")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "dist").mkdir()
        (folder / "cosign").write_text("#!/bin/sh\n")
        (folder / "cosign").chmod(0o755)
        (folder / ".krew.yaml").write_bytes((ROOT / ".krew.yaml").read_bytes())
        for platform in built:
            (folder / "dist" / f"kubectl-gang-{platform}.tar.gz").write_text(platform[0])
        env = {"PATH": f"{folder}:{os.environ['PATH']}", "REPOSITORY": "https://forge/o/r", "GITHUB_REF_NAME": "v1.2.3"}
        subprocess.run(["bash", "-ec", step["run"]], cwd=folder, env=env, check=True)
        filled = (folder / "dist" / "gang.yaml").read_text()
    assert "@" not in filled.replace('"$@"', "")
    spec = yaml.safe_load(filled)["spec"]
    assert (spec["version"], spec["homepage"]) == ("v1.2.3", "https://forge/o/r")
    assert [each["uri"].rpartition("kubectl-gang-")[2] for each in spec["platforms"]] == [f"{p}.tar.gz" for p in built]
    assert spec["platforms"][0]["sha256"] == hashlib.sha256(b"l").hexdigest()
    assert all(each["uri"].startswith("https://forge/o/r/releases/download/v1.2.3/") for each in spec["platforms"])
    assert len(spec["shortDescription"]) <= 50


def test_what_is_signed_is_built_from_the_lock_by_what_is_named_by_commit_digest_or_hash() -> None:
    """Regression: actions, base images and build tools were named by tags and ranges, which others can move."""
    for name in WORKFLOWS:
        steps = [step for job in read(f".github/workflows/{name}")["jobs"].values() for step in job["steps"]]
        actions = [step["uses"] for step in steps if "uses" in step]
        assert actions
        assert [each for each in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []
    images = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(images) == 2
    assert [each for each in images if not re.fullmatch(r"[\w.:-]+@sha256:[0-9a-f]{64}", each)] == []
    [helm] = [
        step["with"]["version"]
        for step in read(".github/workflows/release.yaml")["jobs"]["publish"]["steps"]
        if step.get("uses", "").startswith("azure/setup-helm@")
    ]
    assert helm == Pins.read().helm
    scripts = (ROOT / "hack/release.sh").read_text(encoding="utf-8") + (ROOT / "Dockerfile").read_text(encoding="utf-8")
    syncs = re.findall(r"\buv\"? sync.*", scripts)
    assert len(syncs) == 5
    assert all("--locked" in each for each in syncs)
    assert "uvx" not in commands("release.yaml")
    assert "uv build" not in commands("release.yaml")


def locked(*extras: str, group: str = "") -> set[str]:
    """The packages that uv installs from the lock beside gangsched: with these extras, and with this group."""
    packages = {each["name"]: each for each in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    own = packages["gangsched"]
    waiting = [*own["dependencies"], *own.get("dev-dependencies", {}).get(group, ())]
    waiting += [needed for extra in extras for needed in own["optional-dependencies"][extra]]
    names = set[str]()
    while waiting:
        needed = waiting.pop()
        if needed["name"] not in names and "win32" not in needed.get("marker", ""):
            names.add(needed["name"])
            waiting += packages[needed["name"]].get("dependencies", ())
    return names


@pytest.mark.slow
def test_kopf_finds_no_client_library_where_the_operator_runs_or_is_measured() -> None:
    """Regression: kopf imports those that are installed, which cost each operator 40 MB for nothing (ADR 51)."""
    libraries = {"kubernetes", "kubernetes-asyncio", "pykube-ng"}
    assert not (locked() | locked(group="dev")) & libraries
    assert "kubernetes-asyncio" in locked("auth-providers")


def test_the_image_has_at_most_thirty_packages_and_what_evaluates_device_selectors() -> None:
    image = locked("devices")
    assert len(image) <= 30, sorted(image)
    assert "cel-expr-python" in image - locked()
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert dockerfile.count("--no-default-groups --extra devices") == dockerfile.count("--no-default-groups") == 2


def test_the_uv_of_a_release_is_that_of_make_setup() -> None:
    assert f"{UV} \\" in (ROOT / "hack/uv.txt").read_text(encoding="utf-8").splitlines()
