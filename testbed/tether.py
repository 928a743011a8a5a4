"""A process that ends the testbed's servers when their owner is gone, even after a crash.

The owner starts this module as a process in a separate session and sends it lines of JSON. It is the parent of every
server, so a process id cannot be reused by another process. When its standard input ends, because the owner closed it,
crashed or was killed, it ends the servers (SIGTERM, then SIGKILL) and removes their folder.
Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

RUN_VARIABLE = "GANGSCHED_TESTBED_RUN"
"""Marks every process and folder of one run, so that the tests can find leftovers."""

_END_WITHIN_S = 10.0
# kube-apiserver takes 10 s and more to shut down cleanly, which nothing here needs.
_END_ALL_WITHIN_S = 2.0
_PR_SET_PDEATHSIG = 1


def run_marker() -> str:
    """The name of this run, from RUN_VARIABLE; by default this process's id."""
    return os.environ.get(RUN_VARIABLE) or str(os.getpid())


class TetherError(Exception):
    """A process could not be started, or the tether itself is gone."""


class Child:
    """A process held by the tether."""

    def __init__(self, tether: Tether, *, pid: int, log: Path) -> None:
        self._tether = tether
        self.pid = pid
        self.log = log
        """The file for its standard output and standard error."""

    def poll(self) -> int | None:
        """The exit status (negative: ended by that signal), None while it runs."""
        status: int | None = self._tether.ask(do="poll", pid=self.pid)
        return status

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; does nothing if the process has ended."""
        self._tether.ask(do="signal", pid=self.pid, number=int(number))

    def wait(self, *, timeout_s: float) -> int:
        """Wait for the process to end and return its exit status.

        Raises:
            TimeoutError: it still runs after ``timeout_s``.
        """
        deadline = time.monotonic() + timeout_s
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} still runs after {timeout_s:g} s; its log is {self.log}")
            time.sleep(0.02)
        return status

    def stop(self, *, timeout_s: float = _END_WITHIN_S) -> int:
        """Send SIGTERM and, if that does not end it in time, SIGKILL; returns the exit status."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait(timeout_s=timeout_s)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            return self.wait(timeout_s=timeout_s)

    def log_tail(self, lines: int = 15) -> str:
        """The last lines of its log, indented for an error message."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(f"    {line}" for line in text.splitlines()[-lines:]) or "    (its log is empty)"


class Tether:
    """The owner's end. A context manager: leaving it ends every process and removes the folder."""

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._asked = 0
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {RUN_VARIABLE: run_marker()},
        )
        self.folder = Path(self._answer())
        """A temporary folder that the tether removes at its end."""
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for above
        assert self._process.stdout is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def start(self, name: str, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> Child:
        """Starts a process in a separate session, with its output appended to FOLDER/logs/NAME.log.

        ``env`` is added to this process's own environment.

        Raises:
            TetherError: the program cannot be run.
        """
        log = self.folder / "logs" / f"{name}.log"
        pid = self.ask(do="start", command=[str(part) for part in command], env=dict(env or {}), log=str(log))
        return Child(self, pid=pid, log=log)

    def ask(self, **request: Any) -> Any:  # noqa: ANN401 - the answer's type depends on the request
        """Sends one request to the tether and returns the response."""
        with self._lock:
            assert self._process.stdin is not None  # noqa: S101
            self._asked += 1
            try:
                self._process.stdin.write(json.dumps(request | {"id": self._asked}) + "\n")
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError) as error:
                raise TetherError("the testbed's tether process has ended, and its servers with it") from error
            return self._answer()

    def _answer(self) -> Any:  # noqa: ANN401
        assert self._process.stdout is not None  # noqa: S101
        answer: dict[str, Any] = {"id": None}
        # The response to an earlier request is still in the pipe if a Ctrl-C interrupted that request.
        while answer["id"] != self._asked:
            line = self._process.stdout.readline()
            if not line:
                raise TetherError("the testbed's tether process has ended, and its servers with it")
            answer = json.loads(line)
        if "error" in answer:
            raise TetherError(answer["error"])
        return answer["answer"]


class _Holder:
    """The tether's own end: the parent of the processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def serve(self) -> None:
        """Answers requests until the owner's end of the pipe is closed."""
        self._reply(id=0, answer=str(self._folder))
        for line in sys.stdin:
            request = json.loads(line)
            try:
                self._reply(id=request["id"], answer=self._do(request))
            except OSError as error:
                self._reply(
                    id=request["id"], error=f"cannot {request['do']} {request.get('command', [''])[0]}: {error}"
                )

    def _do(self, request: dict[str, Any]) -> int | None:
        if request["do"] == "start":
            return self._start(request)
        child = self._children[request["pid"]]
        if request["do"] == "signal":
            child.send_signal(request["number"])
            return None
        return child.poll()

    def _start(self, request: dict[str, Any]) -> int:
        log = Path(request["log"])
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                request["command"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | request["env"],
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - no threads here
            )
        self._children[child.pid] = child
        return child.pid

    def end(self) -> None:
        """Ends the processes and removes the folder."""
        for child in self._children.values():
            child.terminate()
        deadline = time.monotonic() + _END_ALL_WITHIN_S
        for child in self._children.values():
            try:
                child.wait(timeout=max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _reply(**reply: Any) -> None:  # noqa: ANN401
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _die_with_parent() -> None:
    """Runs between fork and exec: makes Linux kill the process if the tether itself is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Holds the servers until the owner is gone."""
    # Only the end of standard input ends this process. A handler instead of SIG_IGN, which children would inherit.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    holder = _Holder(Path(tempfile.mkdtemp(prefix=f"gangsched-{run_marker()}-")))
    try:
        # An owner that died between a request and its response leaves a broken pipe, which is the same as the end.
        with contextlib.suppress(BrokenPipeError):
            holder.serve()
    finally:
        holder.end()


if __name__ == "__main__":
    main()
