"""gangsched as a process beside the control plane, for tests, the demo and benchmarks."""

from __future__ import annotations

import itertools
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from testbed.control_plane import ControlPlane, ControlPlaneError

_READY_WITHIN_S = 60
_NUMBERS = itertools.count(1)
HERE = (sys.executable, "-m", "gangsched")
_PAGE = re.compile(r"serving the page: .* open=\"?(http://127\.0\.0\.1:\d+/\?token=[\w-]+)")
_LISTEN = re.compile(r"listen=(?:\")?(127\.0\.0\.1:\d+)")


class Operator:
    """Starts `gangsched run` and waits until it is ready; ends it with SIGTERM.

    `arguments` are added to the command line. Without `kubeconfig` it acts as cluster-admin. With `leader_elect` it is
    also ready as a standby. `program` is the command of gangsched, by default that of this checkout.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        *arguments: str,
        kubeconfig: Path | None = None,
        leader_elect: bool = False,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = HERE,
    ) -> None:
        self._control_plane = control_plane
        self._program = program
        self._arguments = arguments if leader_elect else ("--no-leader-elect", *arguments)
        self._kubeconfig = kubeconfig or control_plane.kubeconfig
        self._env = env
        self._address = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def log(self) -> str:
        """The operator's output since its last start."""
        return self.child.log.read_text(errors="replace")

    @property
    def address(self) -> str:
        """The operator's listen address, as HOST:PORT.

        Raises:
            LookupError: it has not logged the address yet.
        """
        found = _LISTEN.findall(self.log)
        if not found:
            raise LookupError("it has not said yet where it listens")
        return str(found[-1])

    def start(self) -> None:
        """Start it and wait until /readyz answers.

        Raises:
            ControlPlaneError: it ended or was not ready in time; the message includes the end of its log.
        """
        self.launch()
        deadline = time.monotonic() + _READY_WITHIN_S
        while not self._ready():
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise ControlPlaneError(f"gangsched did not become ready; its log ends with:\n{self.child.log_tail()}")
            time.sleep(0.02)

    def launch(self) -> None:
        """Start it without waiting until it is ready."""
        command = [*self._program, "run", "--kubeconfig", str(self._kubeconfig), "--listen", "127.0.0.1:0"]
        command += self._arguments
        self.child = self._control_plane.spawn(f"operator-{next(_NUMBERS)}", command, env=self._env)

    def stop(self) -> int:
        """End it with SIGTERM and return its exit status."""
        return self.child.stop(timeout_s=30)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self.child.signal(signal.SIGKILL)
        self.child.wait(timeout_s=10)

    def get(self, path: str) -> tuple[int, str]:
        """The status and body of a GET of a path such as /metrics; status 0 while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()
        except (OSError, LookupError):
            return 0, ""

    def metric(self, name: str, **labels: str) -> float:
        """The value of a metric, summed over the series with these labels; 0.0 if there is none, or nothing listens.

        Raises:
            ControlPlaneError: it listens but does not answer; the message includes the end of its log.
        """
        total = 0.0
        for line in self._metrics().splitlines():
            series, _, value = line.rpartition(" ")
            if re.split(r"[{ ]", series)[0] == name and all(
                f'{key}="{label}"' in series for key, label in labels.items()
            ):
                total += float(value)
        return total

    def _metrics(self) -> str:
        """The metrics, also of an operator that is too busy to answer at once."""
        deadline = time.monotonic() + _READY_WITHIN_S
        status, text = self.get("/metrics")
        while status == 0 and self._listens():
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"gangsched does not answer; its log ends with:\n{self.child.log_tail()}")
            time.sleep(0.1)
            status, text = self.get("/metrics")
        return text

    def _listens(self) -> bool:
        return self.child.poll() is None and bool(_LISTEN.search(self.log))

    def _ready(self) -> bool:
        return self.get("/readyz")[0] == 200  # noqa: PLR2004 - HTTP's OK


def address_of_page(operator: Operator) -> str:
    """The last address of its page that the operator logged, which is valid for one browser.

    Raises:
        LookupError: it has logged none.
    """
    found = _PAGE.findall(operator.log)
    if not found:
        raise LookupError(f"the operator has logged no address of its page: {operator.log[-2000:]}")
    return str(found[-1])
