"""Process faults: operators are killed, stopped, cut off or terminated, and the API server and etcd fail as well.

Faults come one at a time, each drawn from the seed. Each is over when `trouble` returns; its consequences may last.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from random import Random

from testbed import leftovers
from testbed.control_plane import ControlPlane
from testbed.tether import run_marker
from tests.faults.contenders import Contender, Supervisor
from tests.faults.plan import Fault

LEASE_S = 15.0
"""Default lease duration in seconds; a leader gives up a third of that earlier."""
_BEYOND_S = 5.0


class Chaos:
    """Faults by name, counted in `done`."""

    def __init__(
        self,
        control_plane: ControlPlane,
        contenders: list[Contender],
        supervisor: Supervisor,
        *,
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self.done: Counter[str] = Counter()
        self._control_plane = control_plane
        self._contenders = contenders
        self._supervisor = supervisor
        self._random = Random(seed)
        self._say = say
        self._etcd = _etcd(control_plane)
        self._troubles: list[tuple[int, Callable[[threading.Event], None]]] = [
            (5, self.kill),
            (3, self.pause),
            (2, self.terminate),
            (3, self.cut_off),
            (3, self.kill_apiserver),
            (3, self.pause_etcd),
            (4, self.refuse_bindings),
            (3, self.refuse_evictions),
        ]

    def trouble(self, over: threading.Event) -> None:
        """Inject one fault, the first time one of the API server's; it is cut short when `over` is set."""
        weights, troubles = zip(*self._troubles, strict=True)
        (trouble,) = self._random.choices(troubles, weights) if self.done else (self.kill_apiserver,)
        self.done[trouble.__name__] += 1
        trouble(over)

    def kill(self, _: threading.Event) -> None:
        """kill -9 of an operator."""
        self._victim("killed").kill()

    def terminate(self, _: threading.Event) -> None:
        """SIGTERM to an operator."""
        self._victim("ended").terminate()

    def pause(self, over: threading.Event) -> None:
        """SIGSTOP an operator for less or more than its lease duration, then SIGCONT."""
        victim = self._victim("stopped for a while")
        victim.pause()
        over.wait(self._random.uniform(0.5, LEASE_S + _BEYOND_S))
        victim.resume()

    def cut_off(self, over: threading.Event) -> None:
        """Cut an operator off from the API server for a while."""
        victim = self._victim("cut off for a while")
        victim.block()
        over.wait(self._random.uniform(0.5, LEASE_S))
        victim.unblock()

    def kill_apiserver(self, over: threading.Event) -> None:
        """kill -9 of the API server; it is started again at once, soon, or when every lease has run out."""
        shortest, longest = self._random.choice(((0.0, 0.0), (0.0, LEASE_S), (LEASE_S, LEASE_S + _BEYOND_S)))
        away_s = self._random.uniform(shortest, longest)
        self._say(f"the API server is killed, for up to {away_s:.1f} s")
        self._control_plane.kill_apiserver()
        over.wait(away_s)
        self._control_plane.start_apiserver()

    def pause_etcd(self, over: threading.Event) -> None:
        """The API server's store does not answer for a while."""
        self._say("etcd is stopped for a while")
        os.kill(self._etcd, signal.SIGSTOP)
        over.wait(self._random.uniform(1.0, 5.0))
        os.kill(self._etcd, signal.SIGCONT)

    def refuse_bindings(self, _: threading.Event) -> None:
        """Refuse to bind the second pod of the next workload for longer than a quorum may stay partly bound."""
        self._refuse("-1/binding", times=self._random.randint(15, 40))

    def refuse_evictions(self, _: threading.Event) -> None:
        """The next evictions fail."""
        self._refuse("/eviction", times=self._random.randint(1, 4))

    def _refuse(self, path: str, *, times: int) -> None:
        fault = self._random.choice((Fault.ERROR, Fault.THROTTLED, Fault.UNAVAILABLE, Fault.TIMEOUT, Fault.CONFLICT))
        for contender in self._contenders:
            contender.proxy.next(fault=fault, method="POST", path_contains=path, times=times)

    def _victim(self, what: str) -> Contender:
        """Choose an operator, most often the leader, and log what is done to it."""
        leader = self._supervisor.leading
        led = leader is not None and self._random.random() < 0.6
        victim = leader if led and leader is not None else self._random.choice(self._contenders)
        self._say(f"{victim.life.name}{', which leads,' if victim is leader else ''} is {what}")
        return victim


def _etcd(control_plane: ControlPlane) -> int:
    """The process id of this control plane's etcd, which lives as long as the control plane."""
    mine = f"--data-dir={control_plane.folder / 'etcd'}"
    return next(pid for pid, command in leftovers.processes(run_marker()).items() if mine in command)
