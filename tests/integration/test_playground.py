"""`make playground` as a person uses it: the printed commands, and its end."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.playground import STEPS
from testbed import leftovers
from testbed.tether import RUN_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
SHOWN = {
    "kubectl get podgroups.gangsched.io": ("first", "Running"),
    "kubectl get pods -o wide": ("first-3", "node-"),
    "gangsched explain waits": (
        "default/waits: Queued Unschedulable",
        "nvidia.com/gpu 2 more than is free",
        "default/first",
    ),
    "gangsched explain never": ("NeverFits", "each member asks nvidia.com/gpu 8, and the largest node"),
    "gangsched simulate examples/playground/nodes.yaml examples/playground/never.yaml": ("NeverFits",),
}
"""The expected final output of the query commands; the other commands only have to succeed."""
AGAIN = ("waits", "Running")
"""Expected output of the query for all groups after the first gang was deleted."""
_WITHIN_S = 60


@pytest.fixture
def marker() -> Iterator[str]:
    """Marks the playground's processes; none with the mark may be left at the end."""
    name = f"playground-{secrets.token_hex(4)}"
    yield name
    assert leftovers.report(name, within_s=10) == []


def test_the_printed_commands_show_what_they_promise_and_ctrl_c_leaves_nothing(marker: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "demo.playground"],
        cwd=ROOT,
        env=os.environ | {RUN_VARIABLE: marker},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as playground:
        assert playground.stdout is not None
        printed = []
        for line in playground.stdout:
            printed.append(line.strip())
            if "until Ctrl-C" in line:
                break
        try:
            [entrance] = [line for line in printed if "export KUBECONFIG=" in line]
            [page] = [line for line in printed if line.startswith("Open http://127.0.0.1:")]
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            with browser.open(page.split()[1], timeout=10) as answer:
                assert answer.status == 200
            gone = False
            for command in (command for step in STEPS for command in step.commands):
                assert command in printed
                gone = gone or "delete" in command
                until_shown(
                    f"{entrance}; {command}", AGAIN if gone and "get podgroups" in command else SHOWN.get(command, ())
                )
        finally:
            playground.send_signal(signal.SIGINT)
            out, _ = playground.communicate(timeout=60)
    assert playground.returncode == 0, "\n".join(printed) + out
    assert "Ended: nothing that was started is left." in out


def until_shown(command: str, wanted: tuple[str, ...]) -> None:
    """Repeat the command in a shell until its output contains everything in `wanted`."""
    deadline = time.monotonic() + _WITHIN_S
    while True:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # The operator has a Lease, as when installed, so that no message says that it is missing.
        assert "No operator leads" not in done.stdout
        if all(each in done.stdout for each in wanted):
            return
        assert time.monotonic() < deadline, (command, done.stdout)
        time.sleep(0.2)
