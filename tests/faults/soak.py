"""`make soak DURATION=600 [SEED=n]`: two operators, a random world, all faults, and independent checks of the rules.

Storm and quiet take turns. In a storm users, nodes, other schedulers and kubelets act at random (`world`), both
operators reach the API server through proxies with faults (`proxy`), and processes are killed, stopped and cut off
(`chaos`). In the quiet that follows nothing acts and nothing fails; as soon as the cluster has settled the API server's
own lists must satisfy the rules (`audit`). `history` measures throughout how long any group is partial. At the end
every recorded decision is checked against what was known (`decisions`), every request against what is allowed
(`requests`), and every recording is replayed. Exits with status 0 if all rules held, else with 1 and a folder with
everything needed to find out why.
"""

from __future__ import annotations

import argparse
import http.client
import json
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from testbed import crds
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from testbed.nodes import wait_until_ready
from testbed.rights import chart_account
from tests.faults.audit import Lists, audit
from tests.faults.chaos import Chaos
from tests.faults.contenders import ACCOUNT, Contender, Supervisor, until
from tests.faults.decisions import Term, overbound, overcommitted, sent_by
from tests.faults.history import CountedClock, History
from tests.faults.kubelet import Kubelets
from tests.faults.proxy import ProxyProcess
from tests.faults.recording import NoRecording, read, replay
from tests.faults.report import line, table
from tests.faults.requests import examine, read_log
from tests.faults.watching import Probe, Watch, kinds
from tests.faults.world import World

NODES = 8
REPAIR_DEADLINE_S = 10.0
SLACK_S = 5.0
"""Seconds allowed beyond the repair deadline for retried requests and for the delay of the soak's watch."""
HELD_FOR_NOBODY_S = 15.0
"""Longest time, in seconds, that reservations may outlive the last member. They are released at once; the margin is for
a new leader's lists and for failed status writes, whose back-off is up to 4 s after the fourth failure and up to 8 s
after the fifth."""
RENEW_S = 10.0
"""Default renew deadline in seconds: a leader that has not renewed its lease for this long stops leading."""
CONFIG = {
    "repairDeadline": f"{REPAIR_DEADLINE_S:g}s",
    "defaultMaxScheduleTime": "5s",
    "backoff": {"initial": "1s", "max": "3s"},
    "leaderElection": {"resourceNamespace": ACCOUNT[0]},
}
_STORM_S = (20.0, 40.0)
_ACT_EVERY_S = (0.0, 0.2)
_TROUBLE_EVERY_S = (1.0, 5.0)
_REST_WITHIN_S = 120.0
_LOOK_EVERY_S = 1.0
_START_WITHIN_S = 60.0
_SYNC_WITHIN_S = 30.0
_END_WITHIN_S = 15.0
_OTHER_FAILURES = (ApiError, OSError, http.client.HTTPException)
"""Errors that the soak's own requests may get while the API server restarts."""


class Soak:
    """One run on a control plane of its own."""

    def __init__(self, *, duration_s: float, seed: int, say: Callable[[str], None]) -> None:
        self.seed = seed
        self.violations: list[str] = []
        self.report: dict[str, Any] = {"seed": seed, "quiet_periods": 0, "slowest_rest_s": 0.0, "replayed_turns": 0}
        self._duration_s = duration_s
        self._say = say
        self._random = Random(seed)
        self._clock = CountedClock()

    def run(self) -> Path | None:
        """Run and fill the report; returns the folder that was kept, None if all rules held."""
        with ExitStack() as stack:
            self._control_plane = stack.enter_context(ControlPlane(audit=True))
            crds.install(self._control_plane)
            self._set_up(stack)
            began = time.monotonic()
            try:
                while time.monotonic() - began < self._duration_s and not self.violations:
                    self._storm()
                    self._quiet()
                self._end()
            except Exception as error:  # noqa: BLE001 - the recordings are needed after a failure above all
                self.violations.append(f"the soak itself failed: {type(error).__name__}: {error}")
            self.report["seconds"] = time.monotonic() - began
            self._measure()
            return self._keep() if self.violations else None

    def _set_up(self, stack: ExitStack) -> None:
        control_plane, seed = self._control_plane, self.seed
        self._kubelets = Kubelets(control_plane.new_api())
        self._history = History(self._clock, on_bound=self._kubelets.take)
        self._watches = [Watch(control_plane, kind) for kind in kinds(self._history)]
        self._world = World(
            control_plane.new_api(), self._history, seed=seed, nodes=NODES, spoiled=self._kubelets.spoiled
        )
        self._world.prepare()
        for number in range(NODES):
            wait_until_ready(control_plane.api, f"n{number}")
        for watch in self._watches:
            watch.start()
            stack.callback(watch.stop)
        for watch in self._watches:
            watch.synced.wait(_SYNC_WITHIN_S)
        self._kubelets.serve(self._history)
        stack.callback(self._kubelets.stop)
        stack.enter_context(chart_account(control_plane, ACCOUNT[0]))
        config = control_plane.folder / "config.yaml"
        config.write_text(json.dumps(CONFIG))
        self._proxies = [stack.enter_context(ProxyProcess(control_plane, seed=seed + number)) for number in (1, 2)]
        self._contenders = []
        for name, proxy in zip("ab", self._proxies, strict=True):
            proxy.calm()
            self._contenders.append(Contender(control_plane, f"operator-{name}", proxy=proxy, config=config))
            self._contenders[-1].start()
        probe = Probe(control_plane, control_plane.kubeconfig_of_service_account(*ACCOUNT))
        self._supervisor = Supervisor(self._contenders, probe, self._clock, renew_s=RENEW_S)
        self._supervisor.start()
        stack.callback(self._supervisor.stop)
        until(lambda: self._supervisor.leading, within_s=_START_WITHIN_S, what="the first leader's election")
        self._chaos = Chaos(control_plane, self._contenders, self._supervisor, seed=seed + 3, say=self._say)

    # Storm and quiet

    def _storm(self) -> None:
        lasts_s = self._random.uniform(*_STORM_S)
        self._say(f"storm for {lasts_s:.0f} s")
        for proxy in self._proxies:
            proxy.storm()
        over = threading.Event()
        failures: list[Exception] = []
        threads = [
            threading.Thread(target=_repeat, args=(work, pause, over, self._random.random(), failures), daemon=True)
            for work, pause in (
                (self._world.act, _ACT_EVERY_S),
                (lambda: self._chaos.trouble(over), _TROUBLE_EVERY_S),
            )
        ]
        for thread in threads:
            thread.start()
        over.wait(lasts_s)
        over.set()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _quiet(self) -> None:
        for proxy in self._proxies:
            proxy.calm()
            proxy.forget()
        began = time.monotonic()
        found = ["nothing was looked at"]
        clean, last = 0, ""
        while clean < 2 and time.monotonic() - began < _REST_WITHIN_S:
            time.sleep(_LOOK_EVERY_S)
            self._world.settle()
            found = self._look()
            clean, last = (0, found[0]) if found else (clean + 1, last)
        rest_s = time.monotonic() - began
        self.report["quiet_periods"] += 1
        self.report["slowest_rest_s"] = max(self.report["slowest_rest_s"], rest_s)
        self.violations += [f"at rest after {rest_s:.0f} s of quiet: {what}" for what in found]
        self.violations += self._too_long_partial() + self._held_too_long_for_nobody()
        self._say(f"quiet for {rest_s:.0f} s: {'; '.join(self.violations) or 'all rules hold'}")
        if last and not found:
            self._say(f"the last to come to rest: {last}")

    def _look(self) -> list[str]:
        """What is unsettled or wrong at this moment."""
        waits = [f"{contender.life.name} does not run" for contender in self._contenders if not contender.able()]
        waits += [f"{each.life.name} is not ready: {why}" for each in self._contenders if (why := each.problem())]
        waits += [] if self._supervisor.leading is not None else ["nobody leads"]
        waits += [] if self._kubelets.idle else ["the kubelets have work"]
        try:
            lists = Lists(
                nodes=self._list("/api/v1/nodes"),
                pods=self._list("/api/v1/pods"),
                groups=self._list("/apis/gangsched.io/v1alpha1/podgroups"),
            )
        except _OTHER_FAILURES as error:
            return [*waits, f"the API server does not answer: {error}"]
        with self._history.lock:
            stayed = frozenset(self._history.stayed)
        return waits + audit(lists, was_whole=self._history.was_whole, owed=self._history.owed, stayed=stayed)

    def _list(self, path: str) -> list[dict[str, object]]:
        items: list[dict[str, object]] = self._control_plane.api.get(path)["items"] or []
        return items

    def _too_long_partial(self) -> list[str]:
        limit_s = REPAIR_DEADLINE_S + SLACK_S
        return [
            f"longer than the repair deadline of {REPAIR_DEADLINE_S:g} s and {SLACK_S:g} s of slack: {episode}"
            for episode in self._history.partial()
            if episode.seconds > limit_s
        ]

    def _held_too_long_for_nobody(self) -> list[str]:
        return [
            f"longer than {HELD_FOR_NOBODY_S:g} s: {desertion}"
            for desertion in self._history.deserted()
            if desertion.seconds > HELD_FOR_NOBODY_S
        ]

    # The end

    def _end(self) -> None:
        """Terminate the operators cleanly and check everything recorded."""
        self._supervisor.stop()
        for contender in self._contenders:
            contender.terminate()
        for contender in self._contenders:
            status = contender.life.child.wait(timeout_s=_END_WITHIN_S)
            if status != 0:
                self.violations.append(f"{contender.life.name} ended with status {status} on SIGTERM in calm")
        failed = [self._supervisor.failed, *(watch.failed for watch in self._watches)]
        self.violations += [f"the soak itself failed: {error!r}" for error in failed if error is not None]

    def _measure(self) -> None:
        """Fill the report from the recordings, and add the violations found there."""
        history = self._history
        lives = [life for contender in self._contenders for life in contender.lives]
        for life in lives:
            self.violations += life.defects()
        self.violations += self._check_decisions()
        requests = examine(read_log(self._control_plane.folder), spares=self._world.spares)
        self.violations += requests.wrong
        self.violations += self._kubelets.rejections.wrong
        with history.lock:
            longest, held = next(iter(history.partial()), None), next(iter(history.deserted()), None)
            self.report |= {
                "groups": len(history.groups_seen),
                "groups_with_places": len(history.groups_with_places),
                "groups_ran_out": len(history.groups_ran_out),
                "pods_bound": sum(bound.ours for bound in history.bindings),
                "longest_partial_s": longest.seconds if longest is not None else 0.0,
                "longest_partial": str(longest or "no group was ever partial"),
                "longest_held_for_nobody_s": held.seconds if held is not None else 0.0,
            }
        self.report |= {
            "bindings": requests.bound.total(),
            "evictions": requests.evicted.total(),
            "actions": self._world.done,
            "actions_refused": self._world.refused,
            "faults": sum((proxy.injected for proxy in self._proxies), Counter()),
            "troubles": self._chaos.done,
            "restarts": self._supervisor.restarts,
            "rejected_by_kubelet": self._kubelets.rejected,
            "leader_changes": max(0, len(self._supervisor.leaders) - 1),
            "leases_lost": sum(life.leases_lost for life in lives),
            "violations": self.violations,
        }

    def _check_decisions(self) -> list[str]:
        wrong, terms = [], []
        for life in [life for contender in self._contenders for life in contender.lives]:
            for path in sorted(life.recording.parent.iterdir()):
                try:
                    recording = read(path)
                except NoRecording:
                    continue
                name = f"{life.name}/{path.name}"
                self.report["replayed_turns"] += len(recording.turns)
                difference = replay(recording)
                wrong += [f"{name} does not replay with equal effects: {difference}"] if difference else []
                wrong += [f"{name}: {what}" for what in overcommitted(recording)]
                terms.append(Term(name=name, started=life.started, sent=sent_by(recording)))
        with self._history.lock:
            wrong += overbound(self._history.bindings, self._history.allocatables, terms)
        return wrong

    def _keep(self) -> Path:
        """Copy everything needed to find the cause to a folder that is kept."""
        kept = Path(tempfile.mkdtemp(prefix=f"gangsched-soak-seed-{self.seed}-"))
        folder = self._control_plane.folder
        for name in ("logs", "recordings"):
            shutil.copytree(folder / name, kept / name)
        for file in folder.glob("audit*.log"):
            shutil.copy(file, kept)
        (kept / "report.json").write_text(line(self.report))
        with self._history.lock:
            lists = {
                "pods": list(self._history.pods.values()),
                "nodes": list(self._history.nodes.values()),
                "groups": list(self._history.groups.values()),
            }
        (kept / "lists.json").write_text(json.dumps(lists))
        return kept


def _repeat(
    work: Callable[[], object],
    pause_s: tuple[float, float],
    over: threading.Event,
    seed: float,
    failures: list[Exception],
) -> None:
    """Repeat the action, with random pauses, until `over` is set or the action fails."""
    random = Random(seed)
    try:
        while not over.wait(random.uniform(*pause_s)):
            work()
    except Exception as error:  # noqa: BLE001 - the soak reports it
        failures.append(error)
        over.set()


def main() -> int:
    """Run as the command line says and print the report; returns the exit status."""
    parser = argparse.ArgumentParser(description="Random groups, nodes and faults on a real API server.")
    parser.add_argument("--duration", type=float, default=600.0, metavar="SECONDS", help="default: 600")
    parser.add_argument("--seed", type=int, default=None, help="default: a new one")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    say = _Teller()
    say(f"soak of {arguments.duration:.0f} s with seed {seed}")
    soak = Soak(duration_s=arguments.duration, seed=seed, say=say)
    kept = soak.run()
    say(table(soak.report))
    for violation in soak.violations:
        say(f"VIOLATION: {violation}")
    if kept is not None:
        say(f"FAILED with seed {seed}: logs, audit log and recordings are in {kept}; replay a recording with")
        say("  .venv/bin/python -m tests.faults.replay FILE")
    say(line(soak.report))
    return 1 if kept is not None else 0


class _Teller:
    """Prints at once, with the time since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, text: str) -> None:
        stamp = "" if text.startswith(("{", " ")) else f"[{time.monotonic() - self._began:5.0f} s] "
        sys.stdout.write(f"{stamp}{text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
