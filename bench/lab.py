"""The environment of a scenario on the API server: one control plane, one client and the timeline of the audit log."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench import counting, devices, follower
from bench.load import GROUPS, PODS, Load, Made
from bench.scenarios import Scenario
from bench.timeline import AUDIT_POLICY, Timeline
from documentation.manifests import CHART
from gangsched.kube.client.session import connect
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.operator import HERE, Operator, address_of_page
from testbed.tether import Child
from testbed.workloads import Json

_WITHIN_S = 600.0
_LOOK_EVERY_S = 0.05
_SILENT_S = 0.5
_CLIENTS = itertools.count(1)
_PAGE = "page: {enabled: true, port: 0}\n"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

Figures = dict[str, float]


class Lab:
    """A control plane that has only the scenario's nodes; `lab` creates one.

    `program` is the command of the measured gangsched.
    """

    def __init__(self, control_plane: ControlPlane, load: Load, scenario: Scenario, *, kubeconfig: Path) -> None:
        self.load = load
        self.scenario = scenario
        self.program: Sequence[str] = HERE
        self.page = False
        """Whether gangsched serves its page and a browser follows it."""
        self.timeline = Timeline(control_plane.audit_log)
        self._control_plane = control_plane
        self.kubeconfig = kubeconfig

    async def bare(self) -> Figures:
        """Measure the API server without a scheduler: bind as many of the scenario's pods as fit, then delete them."""
        pods = await self.load.add_pods()
        fitting = pods[: self.scenario.to_bind or len(pods)]
        rate = await self.bind_bare(fitting)
        await self.load.clear()
        return {"bare_pods_per_s": rate, "bare_s": len(fitting) / rate}

    async def bind_bare(self, pods: list[Made]) -> float:
        """Bind these pods without planning; returns the rate per second."""
        self.timeline.begin()
        await self.load.bind_bare(pods)
        await self.until(lambda: len(self.timeline.bound) >= len(pods))
        return self.timeline.pods_per_s

    @asynccontextmanager
    async def operator(self, *, ready: bool = False, leads: bool = False) -> AsyncIterator[Operator]:
        """Run gangsched for the block, which begins when the process starts or, with `ready`, once it is ready.

        It `leads` by a Lease, or decides without one.

        Raises:
            RuntimeError: it ended with a non-zero status.
        """
        settings = self._control_plane.folder / "page.yaml"
        settings.write_text(_PAGE)
        options = ("--config", str(settings)) if self.page else ()
        operator = Operator(
            self._control_plane, *options, leader_elect=leads, kubeconfig=self.kubeconfig, program=self.program
        )
        starting = asyncio.create_task(asyncio.to_thread(self._start, operator))
        try:
            if ready:
                await starting
            yield operator
        finally:
            follower = await starting
            status = await asyncio.to_thread(operator.stop)
            if follower is not None:
                await asyncio.to_thread(follower.wait, timeout_s=10)
        if status:
            raise RuntimeError(f"gangsched ended with status {status}; its log is {operator.child.log}")

    def _start(self, operator: Operator) -> Child | None:
        """Start the operator; returns the process that follows its page, or None."""
        operator.start()
        if not self.page:
            return None
        command = [sys.executable, "-m", follower.__name__, address_of_page(operator)]
        return self._control_plane.spawn(f"follower-{next(_CLIENTS)}", command)

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        """Run the client that only counts members and binds; the block begins once it watches."""
        command = [sys.executable, "-m", counting.__name__, str(self.kubeconfig)]
        command += [str(self.scenario.nodes), str(self.scenario.size)]
        # A separate log: an earlier client's log already contains the line that reports the watch.
        client = self._control_plane.spawn(f"counting-{next(_CLIENTS)}", command)
        try:
            await self.until(lambda: counting.READY in client.log.read_text())
            yield
        finally:
            await asyncio.to_thread(client.stop)

    async def until(self, condition: Callable[[], bool], *, within_s: float = _WITHIN_S) -> None:
        """Read the timeline until the condition holds.

        Raises:
            TimeoutError: it does not hold within `within_s`.
        """
        async with asyncio.timeout(within_s):
            while True:
                self.timeline.read()
                if condition():
                    return
                await asyncio.sleep(_LOOK_EVERY_S)

    async def until_bound(self) -> None:
        """Wait until all pods that fit are bound."""
        await self.until(lambda: len(self.timeline.bound) >= self.scenario.to_bind)

    async def until_told(self) -> float:
        """Wait until every PodGroup with bound pods has the status scheduled; returns the time of the last write."""
        if self.scenario.plain:
            return self.timeline.last_bound
        scheduled = self.scenario.to_bind // self.scenario.size
        while True:
            # Listing all groups costs the API server as much as many status writes, so list only when likely done.
            await self.until(lambda: len(self.timeline.told) >= scheduled and self._silent_s() >= _SILENT_S)
            groups = await self.load.get_all(GROUPS)
            if sum(_is_scheduled(group) for group in groups) >= scheduled:
                return max(self.timeline.told.values())
            await asyncio.sleep(_SILENT_S)

    def _silent_s(self) -> float:
        return time.time() - max(self.timeline.told.values())

    async def check(self) -> None:
        """Check the scheduler's guarantees.

        Raises:
            RuntimeError: a gang is partially bound, a node is overcommitted, or a pod has no device of its own.
        """
        bound = [pod for pod in await self.load.get_all(PODS) if pod["spec"].get("nodeName")]
        gangs = Counter(pod["metadata"]["name"].rpartition("-")[0] for pod in bound)
        gangs.pop("", None)  # pods that were created bound
        partial = {gang: count for gang, count in gangs.items() if count != self.scenario.size}
        if partial:
            raise RuntimeError(f"gangs are bound in part: {partial}")
        cpus: Counter[str] = Counter()
        for pod in bound:
            cpus[pod["spec"]["nodeName"]] += _milli(pod)
        full = {node: taken for node, taken in cpus.items() if taken > 1000 * self.scenario.node_cpus}
        if full:
            raise RuntimeError(f"nodes have more than they can hold, in milli-CPUs: {full}")
        if self.scenario.devices:
            found = [devices.given(claim) for claim in await self.load.get_all(devices.CLAIMS)]
            if len({device for each in found for device in each}) != len(bound):
                raise RuntimeError(f"{len(bound)} bound pods do not have a device each: {found}")


@asynccontextmanager
async def lab(scenario: Scenario) -> AsyncIterator[Lab]:
    """A separate control plane for one scenario, with its nodes and no pods."""
    with ControlPlane(
        controllers=False,
        kwok=False,
        not_ready_taint=False,
        audit=True,
        audit_policy=AUDIT_POLICY,
        extra_apiserver_args=(
            f"--enable-priority-and-fairness={str(scenario.fair).lower()}",
            "--delete-collection-workers=16",
        ),
    ) as control_plane:
        crds.install(control_plane)
        # Priority and fairness exempts an administrator's requests.
        kubeconfig = _account(control_plane) if scenario.fair else control_plane.kubeconfig
        session = await connect(kubeconfig=str(control_plane.kubeconfig))
        binder = await connect(kubeconfig=str(kubeconfig))
        try:
            made = Lab(control_plane, Load(session, scenario, binder=binder), scenario, kubeconfig=kubeconfig)
            await made.load.add_nodes()
            yield made
        finally:
            await binder.close()
            await session.close()


def _account(control_plane: ControlPlane) -> Path:
    """A kubeconfig of the chart's service account, with its RBAC rules and FlowSchemas."""
    shown = [f"--show-only=templates/{part}.yaml" for part in ("serviceaccount", "rbac", "flowschemas")]
    text = control_plane.helm("template", "gangsched", CHART, "--set", "image.repository=none", *shown)
    control_plane.kubectl("apply", "--filename", "-", stdin=text)
    return control_plane.kubeconfig_of_service_account("default", "gangsched")


def cpu_s(operator: Operator) -> float:
    """The operator's processor seconds so far, user and system."""
    fields = Path(f"/proc/{operator.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def rss_mb(pid: int) -> float:
    """The current resident memory of a process, in MB of 10⁶ bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"/proc/{pid}/status has no VmRSS: the process has ended; its log says why")


async def cpu_share(operator: Operator, *, over_s: float) -> float:
    """The share of one core that the operator uses during the next `over_s` seconds."""
    began, used = time.monotonic(), cpu_s(operator)
    await asyncio.sleep(over_s)
    return (cpu_s(operator) - used) / (time.monotonic() - began)


def _is_scheduled(group: Json) -> bool:
    conditions = group.get("status", {}).get("conditions", [])
    return any(each["type"] == "Scheduled" and each["status"] == "True" for each in conditions)


def _milli(pod: Json) -> int:
    asked = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(asked[:-1]) if asked.endswith("m") else 1000 * int(asked)
