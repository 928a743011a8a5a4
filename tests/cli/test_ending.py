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


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "status"), [(["version"], 0), (["--help"], 0), (["fly"], 2), (["simulate", "-"], 3)]
)
def test_streams_that_the_caller_has_closed_are_no_fault_of_ours(closed, arguments, status):
    """Regression: with standard output closed every command ended with a traceback."""
    script = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    ended = subprocess.run(
        [*script, *PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True
    )
    assert (ended.returncode, "Traceback" in ended.stderr) == (status, False)
    if "2>&-" in closed and status == 2:
        assert ended.stdout == "", "an error has no place among the output"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_is_utf_8_in_every_locale(tmp_path, encoding):
    """Regression: a name that the locale cannot write ended the command with a traceback."""
    environment = {**BUFFERED, "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    ended = subprocess.run(
        [*PROGRAM, "simulate", str(tmp_path / "漢.yaml")], capture_output=True, env=environment, check=False
    )
    assert (ended.returncode, "漢.yaml: cannot be read" in ended.stderr.decode()) == (2, True)
    shown = [sys.executable, "-c", "from gangsched.cli import main; import sys; main(['version']); print('漢·\\udcff')"]
    printed = subprocess.run(shown, capture_output=True, env=environment, check=True).stdout.decode()
    assert printed.splitlines()[1] == "漢·\\udcff"


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
