"""Operators that contend for leadership: each behind its fault proxy, killed, stopped and cut off, and restarted.

A `Contender` is one replica. `Supervisor` restarts it whenever its process ends, as a Deployment would, and determines
whether there is a leader: the holder of the Lease must be a process that runs, is neither stopped nor cut off, and has
renewed within its deadline. The counted clock runs only while there is one and the API server answers the operators'
account.
"""

from __future__ import annotations

import http.client
import json
import re
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gangsched.api.times import parse_time
from testbed.control_plane import ControlPlane
from testbed.tether import Child
from tests.faults.history import CountedClock
from tests.faults.proxy import ProxyProcess
from tests.faults.recorded_operator import RECORD_TO
from tests.faults.watching import Probe

ACCOUNT = ("gangsched-system", "gangsched")
"""Namespace and name of the operators' ServiceAccount and of their Lease."""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}".format(*ACCOUNT)
_ROOT = Path(__file__).resolve().parent.parent.parent
_RESTART_AFTER_S = 0.5
_LOOK_EVERY_S = 0.1
_ANSWER_WITHIN_S = 5.0
_IDENTITY = re.compile(r'"identity": ?"([^"]+)"')
_LISTEN = re.compile(r'"listen": ?"([^"]+)"')
_STOOD_DOWN = "no longer leading"
_DEFECT = re.compile(
    r"Traceback \(most recent call last\)|this is a bug|gangsched failed|never retrieved|never awaited"
    # No other process binds pods here: such bindings were those of another term.
    r"|another process binds pods"
)


@dataclass(kw_only=True)
class Life:
    """One process of a contender: `started` in epoch seconds, `ended` its exit status once it has one.

    `expected` are the exit statuses allowed by what was done to the process.
    """

    name: str
    started: float
    child: Child
    recording: Path
    ended: int | None = None
    expected: set[int] = field(default_factory=set)

    @property
    def log(self) -> str:
        """Its whole output."""
        return self.child.log.read_text(errors="replace") if self.child.log.exists() else ""

    @property
    def leases_lost(self) -> int:
        """How often it lost the lease and continued as a standby."""
        return self.log.count(_STOOD_DOWN)

    def defects(self) -> list[str]:
        """The defects that its log and its exit status reveal."""
        found = [f"{self.name}'s log says: {line}" for line in self.log.splitlines() if _DEFECT.search(line)]
        if self.ended is not None and self.ended not in self.expected:
            found.append(f"{self.name} ended with status {self.ended}")
        return found


class Contender:
    """One replica behind a fault proxy. `lives` are its processes, the present one last."""

    def __init__(self, control_plane: ControlPlane, name: str, *, proxy: ProxyProcess, config: Path) -> None:
        self.lives: list[Life] = []
        self.paused = False
        self.blocked = False
        self.proxy = proxy
        self._control_plane = control_plane
        self._name = name
        self._config = config
        self._kubeconfig = proxy.kubeconfig_for(account=ACCOUNT)

    @property
    def life(self) -> Life:
        """The present or last process."""
        return self.lives[-1]

    def start(self) -> None:
        """Start another process without waiting for it."""
        name = f"{self._name}-{len(self.lives) + 1}"
        recording = self._control_plane.folder / "recordings" / name / "machine.rec"
        recording.parent.mkdir(parents=True)
        command: list[str | Path] = [sys.executable, "-m", "tests.faults.recorded_operator", "run"]
        command += [
            "--kubeconfig",
            self._kubeconfig,
            "--config",
            self._config,
            "--listen",
            "127.0.0.1:0",
            "--log-format",
            "json",
        ]
        started = time.time()
        child = self._control_plane.spawn(name, command, env={RECORD_TO: str(recording), "PYTHONPATH": str(_ROOT)})
        self.lives.append(Life(name=name, started=started, child=child, recording=recording))

    def running(self) -> bool:
        """Whether its process has not ended."""
        if self.life.ended is None:
            self.life.ended = self.life.child.poll()
        return self.life.ended is None

    def kill(self) -> None:
        """End it as a crash would."""
        self.life.expected.add(-signal.SIGKILL)
        self.life.child.signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM; a process that is just starting, or receives it twice, ends at once."""
        self.life.expected |= {0, -signal.SIGTERM}
        self.life.child.signal(signal.SIGTERM)

    def pause(self) -> None:
        """Suspend its process, whatever it is doing."""
        self.paused = True
        self.life.child.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume its process."""
        self.life.child.signal(signal.SIGCONT)
        self.paused = False

    def block(self) -> None:
        """Cut it off from the API server."""
        self.blocked = True
        self.proxy.block()

    def unblock(self) -> None:
        """Let it reach the API server again."""
        self.proxy.unblock()
        self.blocked = False

    def able(self) -> bool:
        """Whether it can act: the soak is not blocking it, apart from faults of its proxy."""
        return self.running() and not self.paused and not self.blocked

    def problem(self) -> str:
        """Why its process is not ready, in its own words; empty if it is."""
        listening = _LISTEN.findall(self.life.log)
        if not listening:
            return "it does not listen yet"
        try:
            with urllib.request.urlopen(f"http://{listening[-1]}/readyz", timeout=_ANSWER_WITHIN_S):
                return ""
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.read().decode().strip()
        except OSError as error:
            return f"it does not answer: {error}"


class Supervisor(threading.Thread):
    """Restarts contenders that ended, and runs the clock while one of them leads and the API server answers.

    `leaders` are the successive holders of the Lease: a process has a different identity in each of its terms.
    """

    def __init__(self, contenders: Sequence[Contender], probe: Probe, clock: CountedClock, *, renew_s: float) -> None:
        super().__init__(name="supervisor", daemon=True)
        self.leaders: list[str] = []
        self.restarts: Counter[str] = Counter()
        self.failed: Exception | None = None
        self.leading: Contender | None = None
        self._contenders = contenders
        self._probe = probe
        self._clock = clock
        self._renew_s = renew_s
        self._identities: dict[str, Life] = {}
        self._ending = threading.Event()

    def stop(self) -> None:
        """Stop restarting contenders, and stop the clock."""
        self._ending.set()
        self.join()
        self._clock.run(False)

    def run(self) -> None:
        """Poll until stopped."""
        try:
            while not self._ending.wait(_LOOK_EVERY_S):
                for contender in self._contenders:
                    if not contender.running():
                        self.restarts[f"status {contender.life.ended}"] += 1
                        self._ending.wait(_RESTART_AFTER_S)
                        contender.start()
                self.leading = self.find_leader()
                self._clock.run(self.leading is not None)
        except Exception as error:  # noqa: BLE001 - the caller that reads the result must see it
            self.failed = error

    def find_leader(self) -> Contender | None:
        """The leader; None if there is none or the API server does not answer at once."""
        try:
            lease = json.loads(self._probe.get(LEASE)).get("spec", {})
        except (OSError, http.client.HTTPException, ValueError):
            return None
        holder = lease.get("holderIdentity") or ""
        if not holder or time.time() - parse_time(lease["renewTime"]) > self._renew_s:
            return None
        leader = next((each for each in self._contenders if self._holds(each, holder)), None)
        if leader is None:
            return None
        if self.leaders[-1:] != [holder]:
            self.leaders.append(holder)
        return leader if leader.able() else None

    def _holds(self, contender: Contender, holder: str) -> bool:
        """Whether the contender's present process is the holder; it logs its identity when it begins to lead."""
        if holder not in self._identities and holder in _IDENTITY.findall(contender.life.log):
            self._identities[holder] = contender.life
        return self._identities.get(holder) is contender.life


def until(condition: Callable[[], object], *, within_s: float, what: str) -> None:
    """Wait until the condition holds.

    Raises:
        TimeoutError: the condition does not hold within that time.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {within_s:g} s")
        time.sleep(0.1)
