"""`make demo` as a person runs it: to the end, and interrupted."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import leftovers
from testbed.tether import RUN_VARIABLE
from tests.effort import in_turn

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _hangups_end_programs():
    """Restore SIGHUP as at a terminal: under nohup, as on a build server, the demo would rightly ignore a hangup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def marker():
    """Marks the demo's processes; none with the mark may be left at the end."""
    name = f"demo-{secrets.token_hex(4)}"
    yield name
    assert leftovers.report(name, within_s=10) == []


def start(marker):
    return subprocess.Popen(
        [sys.executable, "-m", "demo.show"],
        cwd=ROOT,
        env=os.environ | {RUN_VARIABLE: marker},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_demo_ends_by_itself_with_a_verdict(marker):
    with start(marker) as demo:
        out, _ = demo.communicate(timeout=240)
    assert demo.returncode == 0, out
    assert out.splitlines()[-1].startswith("VERDICT: PASSED in "), out
    assert "told why (Only 2 of 5 members fit; missing on the nodes that accept them: cpu 2.9" in out


@in_turn(
    "number, reached",
    [
        (signal.SIGHUP, "starting etcd"),
        (signal.SIGTERM, "starting the operator"),
        (signal.SIGINT, "NODES"),
    ],
)
def test_broken_off_at_any_time_it_leaves_nothing(marker, number, reached):
    with start(marker) as demo:
        seen = ""
        for line in demo.stdout:
            seen += line
            if reached in line:
                break
        demo.send_signal(number)
        out, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, seen + out
    assert "Interrupted: everything that was started has been ended." in out
