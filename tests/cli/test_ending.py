"""How a command ends when its output cannot be written, or on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "gangsched"]
# With it, Python would not buffer output as it does for users of the program.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("argument", ["version", "--version", "--help"])
def test_a_reader_that_has_gone_is_no_fault_of_ours(argument):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [*PROGRAM, argument], stdout=writing, stderr=subprocess.PIPE, env=BUFFERED, check=False, text=True
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("argument", ["version", "--help", "crd"])
def test_a_full_disk_is_told_in_a_sentence(argument):
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*PROGRAM, argument], stdout=full, stderr=subprocess.PIPE, env=BUFFERED, check=False, text=True
        )
    told = "gangsched: error: the output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (1, told)


def test_ctrl_c_ends_a_command_in_the_middle_of_its_computing():
    code = (
        "import argparse\n"
        "from gangsched.cli.cluster_access import run\n"
        "async def work():\n"
        "    print('computing', flush=True)\n"
        "    while True: pass\n"
        "raise SystemExit(run(argparse.Namespace(prog='x'), work()))\n"
    )
    # Tests started in the background ignore it, and so would the command.
    command = ["env", "--default-signal=INT", sys.executable, "-c", code]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"computing\n"
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=20)
    finally:
        started.kill()
    assert (started.returncode, said) == (130, b"")
