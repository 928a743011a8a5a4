"""Operators that contend for leadership: each behind its fault proxy, killed, stopped and cut off, and started again.

A `Contender` is one replica, started again whenever its process ends, as a Deployment would do it. `Supervisor` does
that and says whether somebody leads: the holder of the Lease is a process that runs, is not stopped or cut off, and has
renewed within its deadline. Of that, and of whether the API server answers their account, depends which seconds are
counted.
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
"""Namespace and name of the operators' ServiceAccount; their Lease is called the same."""
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
    # Nobody else does so here: they were another term's own.
    r"|another process binds pods"
)


@dataclass(kw_only=True)
class Life:
    """One process of a contender: `started` in epoch seconds, `ended` its exit status once it has one.

    `expected` are those that it may have by what was done to it.
    """

    name: str
    started: float
    child: Child
    recording: Path
    ended: int | None = None
    expected: set[int] = field(default_factory=set)

    @property
    def log(self) -> str:
        """All that it has printed."""
        return self.child.log.read_text(errors="replace") if self.child.log.exists() else ""

    @property
    def leases_lost(self) -> int:
        """How often it went on as a standby when it had lost the lease."""
        return self.log.count(_STOOD_DOWN)

    def defects(self) -> list[str]:
        """What its log and its end say of defects."""
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
        """Start another process; it is not waited for."""
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
        """Ask it to end; one that is just starting, or is asked twice, does so at once."""
        self.life.expected |= {0, -signal.SIGTERM}
        self.life.child.signal(signal.SIGTERM)

    def pause(self) -> None:
        """Stop its process in the middle of whatever it does."""
        self.paused = True
        self.life.child.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
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
        """Whether nothing of the soak's keeps it from acting, faults of its proxy aside."""
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
    """Restarts contenders that ended, and lets the clock run while one leads and the API server answers.

    `leaders` are the holders of the Lease, one after the other: a process has another name in each of its terms.
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
        """Restart nobody any more, and let the clock stand."""
        self._ending.set()
        self.join()
        self._clock.run(False)

    def run(self) -> None:
        """Look again and again until stopped."""
        try:
            while not self._ending.wait(_LOOK_EVERY_S):
                for contender in self._contenders:
                    if not contender.running():
                        self.restarts[f"status {contender.life.ended}"] += 1
                        self._ending.wait(_RESTART_AFTER_S)
                        contender.start()
                self.leading = self.find_leader()
                self._clock.run(self.leading is not None)
        except Exception as error:  # noqa: BLE001 - whoever asks for the result must learn of it
            self.failed = error

    def find_leader(self) -> Contender | None:
        """Who leads; None also where the API server does not say so at once."""
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
        """Whether the contender's present process is the holder; it says its identity when it begins to lead."""
        if holder not in self._identities and holder in _IDENTITY.findall(contender.life.log):
            self._identities[holder] = contender.life
        return self._identities.get(holder) is contender.life


def until(condition: Callable[[], object], *, within_s: float, what: str) -> None:
    """Wait until the condition holds.

    Raises:
        TimeoutError: it does not within that time.
    """
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {within_s:g} s")
        time.sleep(0.1)
