"""`make outages`: the API server is killed repeatedly while gangs are bound; no operator ends, no gang stays partial.

The operators have the chart's account and the default lease times. In each round the pods of 30 gangs of 10 are created
as fast as the API server accepts them; at a random moment it is killed, and restarted after a while. Then all gangs
must be whole in time, no process may have ended, and no gang may have been partly bound for longer than the repair
deadline, counted while there is a leader and the API server answers.
"""

from __future__ import annotations

import argparse
import http.client
import json
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from testbed import crds
from testbed.api import Api, ApiError
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import member, pod_group

AWAY_S = (0, 0, 0.5, 1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50, 60)
GANGS, MEMBERS = 30, 10
WHOLE_WITHIN_S, WHOLE_AFTER_LEASE_S = 15.0, 30.0
"""Seconds after the API server is ready; the second applies if the leader could not renew its lease in the meantime."""
RENEW_S, LEASE_S = 10.0, 15.0
REPAIR_S = 30.0
_NAMESPACE = "gangsched-rights"
_NODES, _CPU = 20, "32"
_WORKERS = 6
_LOOK_S = 0.1
_GIVE_UP_S = 120.0
_TROUBLE = (ApiError, OSError, http.client.HTTPException, ValueError)


@dataclass(kw_only=True)
class Round:
    """The effects of one kill; times in seconds."""

    away_s: float
    bound_at_kill: int = 0
    whole_after_s: float = 0.0
    partial_s: float = 0.0
    lost_lease: bool = False

    @property
    def allowed_s(self) -> float:
        return WHOLE_AFTER_LEASE_S if self.lost_lease else WHOLE_WITHIN_S


@dataclass(kw_only=True)
class Report:
    """All kills, the operators that ended and their last output, and the lists after the first ones."""

    replicas: int
    rounds: list[Round] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    relists: Counter[str] = field(default_factory=Counter)

    def wrong(self) -> list[str]:
        """The violations; empty if there are none."""
        found = list(self.ends)
        for number, each in enumerate(self.rounds, 1):
            if each.whole_after_s > each.allowed_s:
                found.append(f"kill {number}: whole {each.whole_after_s:.1f} s after readiness, not {each.allowed_s:g}")
            if each.partial_s > REPAIR_S:
                found.append(f"kill {number}: a gang was partly bound for {each.partial_s:.1f} s")
        return found

    def table(self) -> str:
        """A human-readable table."""
        lines = [f"{self.replicas} replica(s)", " away  bound at the kill  whole after  longest partial  lease lost"]
        lines += [
            f"{each.away_s:4g} s  {each.bound_at_kill:17d}  {each.whole_after_s:9.1f} s  {each.partial_s:13.1f} s"
            f"  {'yes' if each.lost_lease else 'no'}"
            for each in self.rounds
        ]
        lists = ", ".join(f"{name} {count}" for name, count in sorted(self.relists.items()))
        return "\n".join([*lines, f"operators that ended: {len(self.ends)}; lists after the first: {lists or 'none'}"])


class Outages:
    """One control plane, its operators, and rounds of kills."""

    def __init__(
        self, control_plane: ControlPlane, *, replicas: int, folder: Path, seed: int, say: Callable[[str], None]
    ) -> None:
        self._control_plane = control_plane
        self._replicas = replicas
        self._folder = folder
        self._random = Random(seed)
        self._say = say
        self._operators: list[Operator] = []

    def run(self, away_s: Sequence[float]) -> Report:
        """Kill the API server once for each of these downtimes."""
        report = Report(replicas=self._replicas)
        with ExitStack() as stack:
            stack.enter_context(chart_account(self._control_plane, _NAMESPACE))
            config = self._folder / "config.json"
            lease = {"resourceNamespace": _NAMESPACE, "resourceName": "gangsched"}
            config.write_text(json.dumps({"leaderElection": lease}))
            account = self._control_plane.kubeconfig_of_service_account(_NAMESPACE, "gangsched")
            for number in range(_NODES):
                self._control_plane.add_node(f"n{number}", cpu=_CPU, wait=number == _NODES - 1)
            self._operators = [
                stack.enter_context(
                    Operator(self._control_plane, "--config", str(config), kubeconfig=account, leader_elect=True)
                )
                for _ in range(self._replicas)
            ]
            for number, away in enumerate(away_s):
                report.rounds.append(self._round(f"outage-{number}", away))
                self._say(f"kill {number + 1} of {len(away_s)}: {report.rounds[-1]}")
                if report.rounds[-1].whole_after_s > report.rounds[-1].allowed_s:
                    self._say("\n".join(operator.child.log_tail(100) for operator in self._operators))
            report.ends = self._ends()
            report.relists = self._relists()
        return report

    def _round(self, namespace: str, away_s: float) -> Round:
        api = self._control_plane.api
        api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        _until_answered(lambda: api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
        found = Round(away_s=away_s)
        transitions = self._lost()
        with self._making(namespace):
            threshold = self._random.randrange(1, GANGS * MEMBERS)
            already = self._bound_metric()
            deadline = time.monotonic() + _GIVE_UP_S
            while self._bound_metric() - already < threshold and time.monotonic() < deadline:
                time.sleep(0.02)
            found.bound_at_kill = int(self._bound_metric() - already)
            self._control_plane.kill_apiserver()
            time.sleep(away_s)
            self._control_plane.start_apiserver()
            ready = time.monotonic()
            self._watch_over(namespace, found, ready)
        found.lost_lease = self._lost() > transitions
        _until_answered(lambda: api.delete(f"/api/v1/namespaces/{namespace}/pods", grace_s=0))
        _until_answered(lambda: api.delete(f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"))
        _until_answered(lambda: _empty(api, f"/api/v1/namespaces/{namespace}/pods"))
        return found

    def _watch_over(self, namespace: str, found: Round, ready: float) -> None:
        """Poll until all gangs are whole, and measure how long the last of them took."""
        counted, last = 0.0, time.monotonic()
        partial_since: dict[str, float] = {}
        leading = False
        while time.monotonic() - ready < _GIVE_UP_S:
            time.sleep(_LOOK_S)
            now = time.monotonic()
            try:
                pods = self._control_plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"] or []
            except _TROUBLE:
                last, leading = now, False
                continue
            led, leading = leading, self._leads()
            counted += now - last if led and leading else 0.0
            last = now
            bound = Counter(pod["metadata"]["name"].rpartition("-")[0] for pod in pods if pod["spec"].get("nodeName"))
            for gang in [gang for gang in partial_since if not 0 < bound[gang] < MEMBERS]:
                del partial_since[gang]
            for gang, number in bound.items():
                if 0 < number < MEMBERS:
                    since = partial_since.setdefault(gang, counted)
                    found.partial_s = max(found.partial_s, counted - since)
            if len(bound) == GANGS and all(number == MEMBERS for number in bound.values()):
                found.whole_after_s = now - ready
                return
        found.whole_after_s = _GIVE_UP_S

    @contextmanager
    def _making(self, namespace: str) -> Iterator[None]:
        """Create the gangs' objects, by several clients that resume when the API server is back."""
        groups = f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"
        pods = f"/api/v1/namespaces/{namespace}/pods"
        objects = [
            [(groups, pod_group(f"g{gang}", min_member=MEMBERS))]
            + [(pods, member(f"g{gang}-{number}", f"g{gang}")) for number in range(MEMBERS)]
            for gang in range(GANGS)
        ]
        over = threading.Event()

        def make(mine: list[list[tuple[str, dict[str, object]]]]) -> None:
            api = self._control_plane.new_api()
            for path, body in (each for gang in mine for each in gang):
                _create(api, path, body, over)
            api.close()

        threads = [threading.Thread(target=make, args=(objects[number::_WORKERS],)) for number in range(_WORKERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _leads(self) -> bool:
        """Whether one of the operators says that it leads."""
        return any(operator.get("/readyz")[1].startswith("ok: leading") for operator in self._operators)

    def _bound_metric(self) -> float:
        return sum(operator.metric("gangsched_bindings_total", result="Bound") for operator in self._operators)

    def _lost(self) -> float:
        return sum(operator.metric("gangsched_leases_lost_total") for operator in self._operators)

    def _ends(self) -> list[str]:
        found = []
        for number, operator in enumerate(self._operators, 1):
            status = operator.child.poll()
            if status is not None:
                tail = operator.child.log_tail(60)
                found.append(f"operator {number} ended with exit status {status}; its log ends with:\n{tail}")
        return found

    def _relists(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for operator in self._operators:
            for line in operator.get("/metrics")[1].splitlines():
                if line.startswith("gangsched_relists_total{"):
                    labels, _, value = line.removeprefix("gangsched_relists_total").rpartition(" ")
                    found[labels] += int(float(value))
        return found


def _create(api: Api, path: str, body: dict[str, object], over: threading.Event) -> None:
    while not over.is_set():
        try:
            api.post(path, body)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return
            time.sleep(0.1)
        except _TROUBLE:
            api.close()
            time.sleep(0.1)
        else:
            return


def _until_answered(ask: Callable[[], object]) -> None:
    """Retry until there is an answer: the API server may just have come back."""
    deadline = time.monotonic() + _GIVE_UP_S
    while True:
        try:
            ask()
        except _TROUBLE:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _empty(api: Api, path: str) -> None:
    if api.get(path)["items"]:
        raise ValueError(f"{path} is not empty yet")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run as the command line says; the exit status is 0 if all rules held."""
    parser = argparse.ArgumentParser(description="Kills of the API server while gangs are bound.")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--kills", type=int, default=len(AWAY_S), help=f"so many of {len(AWAY_S)}, spread over them")
    parser.add_argument("--replicas", type=int, nargs="*", default=[1, 2])
    arguments = parser.parse_args()
    _say(f"seed {arguments.seed}")
    wrong = []
    for replicas in arguments.replicas:
        with ControlPlane() as control_plane:
            crds.install(control_plane)
            outages = Outages(
                control_plane,
                replicas=replicas,
                folder=control_plane.folder,
                seed=arguments.seed,
                say=_say,
            )
            step = len(AWAY_S) / arguments.kills
            report = outages.run([AWAY_S[int(number * step)] for number in range(arguments.kills)])
        _say(report.table())
        wrong += report.wrong()
    for each in wrong:
        _say(f"VIOLATION: {each}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
