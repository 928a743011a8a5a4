"""Plays the main stories on each version of Kubernetes: ``make versions``.

``python -m tests.versions.played [--write] [VERSION …]``. Each version's programs are built first if necessary. With
``--write`` the results of all versions go to docs/tested.jsonl. The exit status is 1 if any test fails or is skipped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from documentation import tested
from documentation.generate import ROOT
from documentation.tested import Played
from testbed import binaries, versions
from testbed.binaries import Pins
from tests.versions.stories import LACKS, STORIES

_WORKERS = ("-n", "2", "--dist", "loadfile")
UPGRADE = "tests/versions/test_upgrade.py"


class StoryError(Exception):
    """A version did not play all stories."""


def main(arguments: list[str]) -> int:
    """Plays what is asked for; returns the exit status."""
    newest = Pins.read().kubernetes
    known = {**{each.name: each.kubernetes for each in versions.older().values()}, _minor(newest): newest}
    parser = argparse.ArgumentParser(prog="python -m tests.versions.played", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*known, []], metavar="VERSION", help="by default all")
    parser.add_argument("--write", action="store_true", help="write docs/tested.jsonl; only for all versions")
    asked = parser.parse_args(arguments)
    names = asked.names or list(known)
    if asked.write and set(names) != set(known):
        parser.error("--write is for a run with all versions")
    seen, failed = [], []
    folders = versions.ensure(names, report=_say)
    for name in names:
        try:
            seen.append(_played(known[name], folders.get(name)))
        except StoryError as error:
            _say(f"error: Kubernetes {known[name]}: {error}")
            failed.append(name)
    if failed:
        _say(f"FAILED on {', '.join(failed)}")
        return 1
    if asked.write:
        tested.write(ROOT, seen)
    return 0


def _played(kubernetes: str, folder: Path | None) -> Played:
    """The results on this version, whose programs are in the folder; None for the version that is pinned.

    Raises:
        StoryError: a test failed, was skipped or is missing.
    """
    environment = dict(os.environ)
    environment.pop("KUBEBUILDER_ASSETS", None)
    if folder is not None:
        environment["KUBEBUILDER_ASSETS"] = str(folder)
    files = [file for story in STORIES.values() for file in story] + ([] if folder is not None else [UPGRADE])
    _say(f"Kubernetes {kubernetes}: playing {', '.join(STORIES)}")
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        options = ("-q", "-p", "tests.versions.lacking", f"--junitxml={report}", "-o", "junit_family=xunit1", *_WORKERS)
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *files], cwd=ROOT, env=environment, check=False
        )
        if status.returncode:
            raise StoryError(f"pytest ended with status {status.returncode}")
        passed, lacking = counted(ET.parse(report))
    lacks = LACKS[binaries.parse_version(kubernetes)]
    if lacking != {lack.why for lack in lacks.values()}:
        raise StoryError(f"the tests of what it lacks are {sorted(lacking)}, not those of tests/versions/stories.py")
    return Played(
        kubernetes=kubernetes,
        passed={story: sum(passed[file] for file in files) for story, files in STORIES.items()},
        lacks={what: lack.why for what, lack in lacks.items()},
    )


def counted(report: ET.ElementTree[Any]) -> tuple[Counter[str], set[str]]:
    """The number of passed tests by file, and the reasons for which tests had to fail.

    Raises:
        StoryError: a test was skipped.
    """
    passed: Counter[str] = Counter()
    lacking = set()
    for case in report.iter("testcase"):
        skipped = case.find("skipped")
        if skipped is None:
            passed[case.get("file", "")] += 1
        elif skipped.get("type") == "pytest.xfail":
            lacking.add(skipped.get("message", ""))
        else:
            raise StoryError(f"{case.get('name')} was skipped: {skipped.get('message')}")
    return passed, lacking


def _minor(kubernetes: str) -> str:
    return kubernetes.rpartition(".")[0]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
