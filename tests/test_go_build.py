"""The progress and the end of builds of Go programs, with a stand-in for Go that ends when it is told to."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from testbed import go_build
from testbed.cache import SetupError
from testbed.go_toolchain import GoToolchain

GO = """#!/bin/sh
if [ "$1" = list ]; then printf 'fmt\\nexample.com/a\\nexample.com/b\\n'; exit; fi
printf 'example.com/a\\n'
while [ ! -e go-on ]; do sleep 0.01; done
printf 'example.com/b\\n# example.com/b\\nb.go:1: it is wrong\\n'
for last; do :; done
[ "$last" = example.com/b ] && exit 1
while [ "$1" != -o ]; do shift; done
printf built > "$2"
"""


def built(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> list[str]:
    """Build it; the stand-in goes on once progress was reported. What was reported, without times."""
    (folder / "go").write_text(GO)
    (folder / "go").chmod(0o755)
    monkeypatch.setattr(go_build, "PROGRESS_EVERY_S", 0.05)
    reports: list[str] = []

    def report(line: str) -> None:
        reports.append(re.sub(r"\d+ s\b", "N s", line))
        if "1 of" in line:
            (folder / "go-on").touch()

    go = GoToolchain(folder / "go", dict(os.environ))
    try:
        go_build.build_program(folder / "program", package, go=go, directory=folder, report=report)
    finally:
        assert [path.name for path in folder.glob(".build-*")] == []
    return reports


def test_a_build_tells_how_many_packages_are_compiled(tmp_path, monkeypatch):
    reports = built(tmp_path, monkeypatch, "example.com/a")
    assert reports[0] == "building program: fetching its modules …"
    assert "building program: 1 of at most 3 packages compiled (N s)" in reports
    assert reports[-1] == "built program in N s"
    assert (tmp_path / "program").read_text() == "built"


def test_a_build_that_fails_says_what_go_said_without_the_packages_that_were_compiled(tmp_path, monkeypatch):
    with pytest.raises(SetupError) as failed:
        built(tmp_path, monkeypatch, "example.com/b")
    assert [line.strip() for line in str(failed.value).splitlines()[1:]] == ["# example.com/b", "b.go:1: it is wrong"]
    assert not (tmp_path / "program").exists()


def test_a_build_that_is_interrupted_ends_at_once(tmp_path, monkeypatch):
    (tmp_path / "go").write_text(
        # As Go itself, and unlike a shell, it hears the signal also if this process was started with it ignored.
        f"#!{sys.executable}\nimport signal, sys, time\nif sys.argv[1] == 'list':\n    sys.exit()\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\nopen('ready', 'w').close()\n"
        "while True:\n    time.sleep(0.05)\n"
    )
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setattr(go_build, "PROGRESS_EVERY_S", 0.05)

    def report(line: str) -> None:
        if "compiled" in line and (tmp_path / "ready").exists():
            raise KeyboardInterrupt

    go = GoToolchain(tmp_path / "go", dict(os.environ))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        go_build.build_program(tmp_path / "program", "a", go=go, directory=tmp_path, report=report)
    assert time.monotonic() - began < 8
    assert [path.name for path in tmp_path.glob(".build-*")] == []
