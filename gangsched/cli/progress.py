"""Shows on a terminal what a command is doing, once it takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self, TextIO

from gangsched.cli.output import columns, controllable, shown

_SHOWN_AFTER_S = 1.0
_SHOWN_EVERY_S = 0.1


class Progress:
    """One line on standard error, which is erased at the end. Nothing is shown if that is not a terminal.

    `text` is shown once `after_s` seconds have passed; `say` replaces it.
    """

    def __init__(self, text: str, *, stream: TextIO | None = None, after_s: float = _SHOWN_AFTER_S) -> None:
        self._text = text
        self._stream = stream or sys.stderr
        self._lock = threading.Lock()
        self._shown = self._ended = False
        self._drawn = 0.0
        self._timer = threading.Timer(after_s, self._appear)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        if controllable(self._stream):
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._shown:
                print("\r\x1b[K", end="", file=self._stream, flush=True)

    @property
    def due(self) -> bool:
        """Whether a text would be shown now."""
        return self._shown and time.monotonic() >= self._drawn + _SHOWN_EVERY_S

    def say(self, text: str) -> None:
        """Show this instead."""
        with self._lock:
            self._text = text
            if self.due:
                self._draw()

    def _appear(self) -> None:
        with self._lock:
            if not self._ended:
                self._shown = True
                self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        # A longer line would wrap, and only its last row would be erased.
        print(f"\r\x1b[K{shown(self._text)[: columns(self._stream) - 1]}", end="", file=self._stream, flush=True)
