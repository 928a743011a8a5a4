"""Finds leftovers of a run of the testbed: processes, folders and listening sockets with its marker."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from testbed.tether import RUN_VARIABLE

_PROC = Path("/proc")
_LISTENING = "0A"


def processes(marker: str) -> dict[int, str]:
    """Running processes of that run except this one, with their command lines; empty without /proc."""
    wanted = f"{RUN_VARIABLE}={marker}".encode()
    found = {}
    for entry in _PROC.glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue  # it has ended in the meantime, or belongs to another user
    return found


def folders(marker: str) -> list[Path]:
    """Temporary folders of that run."""
    return sorted(Path(tempfile.gettempdir()).glob(f"gangsched-{marker}-*"))


def listening(pid: int) -> list[str]:
    """The TCP addresses on which a process listens: ADDRESS:PORT, in the kernel's hexadecimal notation."""
    held = set()
    for descriptor in (_PROC / str(pid) / "fd").glob("*"):
        try:
            held.add(descriptor.readlink().name)
        except OSError:
            continue
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        if (file := _PROC / str(pid) / "net" / table).exists()
        for line in file.read_text().splitlines()[1:]
    ]
    return [row[1] for row in rows if row[3] == _LISTENING and f"socket:[{row[9]}]" in held]


def report(marker: str, *, within_s: float) -> list[str]:
    """One line for each leftover; waits up to ``within_s`` for those that are just ending."""
    deadline = time.monotonic() + within_s
    if not _lines(marker):
        # A program's environment is empty while it starts, although the process that started it already continues.
        time.sleep(0.05)
    while lines := _lines(marker):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return lines


def _lines(marker: str) -> list[str]:
    return [
        *(f"process {pid} still runs: {command}" for pid, command in processes(marker).items()),
        *(f"folder {folder} is still there" for folder in folders(marker)),
        *(f"this process still listens on {address}" for address in listening(os.getpid())),
    ]
