"""Run a command on its own terminal, as a person would see it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self


class Terminal:
    """The command's standard output and error are a terminal of this many columns; `shown` is what arrived there."""

    def __init__(self, command: Sequence[str | Path], *, env: Mapping[str, str], columns: int = 80) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        # Tests started in the background ignore SIGINT, and so would the command.
        heeding = ["env", "--default-signal=INT", *command]
        self._child = subprocess.Popen(heeding, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env)
        os.close(theirs)
        self._ours = ours
        self._pieces: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        self._reader.join(timeout=10)
        os.close(self._ours)

    @property
    def shown(self) -> str:
        return b"".join(self._pieces).decode()

    @property
    def lines(self) -> list[str]:
        return self.shown.replace("\r\n", "\n").splitlines()

    def until(self, holds: Callable[[str], bool], *, within_s: float = 60) -> str:
        """Wait until the condition holds for the shown text."""
        deadline = time.monotonic() + within_s
        while not holds(self.shown):
            assert time.monotonic() < deadline, self.shown
            time.sleep(0.02)
        return self.shown

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._child.send_signal(signal.SIGINT)

    def ended(self, *, within_s: float = 60) -> int:
        """The exit status, once the command has ended and all its output has been read."""
        status = self._child.wait(timeout=within_s)
        self._reader.join(timeout=10)
        return status

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._ours, 65536)
            except OSError:
                # Linux returns EIO once the other end is closed.
                return
            if not piece:
                return
            self._pieces.append(piece)
