"""A fault-injecting proxy between gangsched and a real API server, in a process of its own.

It starts stormy, and one seed always gives one plan (see tests.faults.plan).
"""

from __future__ import annotations

import http.client
import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from testbed.control_plane import ControlPlane, ControlPlaneError, free_ports
from tests.faults.plan import Fault, Rates, Rule

_ROOT = Path(__file__).resolve().parent.parent.parent
_START_WITHIN_S = 30


class ProxyProcess:
    """A proxy in a process of its own, held by the control plane's tether: a context manager."""

    def __init__(self, control_plane: ControlPlane, *, seed: int, rates: Rates | None = None) -> None:
        self._control_plane = control_plane
        self._seed = seed
        self._rates = rates or Rates()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it and wait until it listens.

        Raises:
            ControlPlaneError: it ended or did not listen in time; the message contains the end of its log.
        """
        port, self._control_port = free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        upstream, ca = _address(self._control_plane.kubeconfig)
        command = [sys.executable, "-m", "tests.faults.serve", "--upstream", upstream]
        command += ["--ca", ca] if ca is not None else []
        command += ["--seed", str(self._seed), "--rates", msgspec.json.encode(self._rates).decode()]
        command += ["--port", str(port), "--control-port", str(self._control_port)]
        name = f"fault-proxy-{secrets.token_hex(3)}"
        self._child = self._control_plane.spawn(name, command, env={"PYTHONPATH": str(_ROOT)})
        deadline = time.monotonic() + _START_WITHIN_S
        while True:
            try:
                self._tell("injected")
            except ConnectionError as error:
                if self._child.poll() is not None or time.monotonic() > deadline:
                    raise ControlPlaneError(
                        f"the fault proxy does not listen; its log ends with:\n{self._child.log_tail()}"
                    ) from error
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        """End the process and with it every connection."""
        self._child.stop()

    def calm(self) -> None:
        """See `FaultServer.calm`."""
        self._tell("calm")

    def forget(self) -> None:
        """See `FaultServer.forget`."""
        self._tell("forget")

    def storm(self, rates: Rates | None = None) -> None:
        """See `FaultServer.storm`."""
        self._tell("storm", rates)

    def block(self) -> None:
        """See `FaultServer.block`."""
        self._tell("block")

    def unblock(self) -> None:
        """See `FaultServer.unblock`."""
        self._tell("unblock")

    @property
    def injected(self) -> Counter[str]:
        """How often each fault has shown so far, by its value."""
        return self._tell("injected")

    def kubeconfig_for(self, *, token: str | None = None, account: tuple[str, str] | None = None) -> Path:
        """A new kubeconfig through the proxy, for that token or (namespace, ServiceAccount), else for cluster-admin."""
        direct = (
            self._control_plane.kubeconfig_for(token=token)
            if account is None
            else self._control_plane.kubeconfig_of_service_account(*account)
        )
        content = json.loads(direct.read_text())
        content["clusters"][0]["cluster"] = {"server": self.url}
        direct.write_text(json.dumps(content))
        return direct

    def next(
        self,
        *,
        fault: Fault,
        method: str = "",
        path_contains: str | Sequence[str] = (),
        body_contains: str | Sequence[str] = (),
        times: int = 1,
        after: int = 0,
    ) -> None:
        """Order a fault: see `Plan.add`. A path and a body must contain all of the parts."""
        rule = Rule(
            fault=fault,
            method=method,
            path_contains=_parts(path_contains),
            body_contains=_parts(body_contains),
            times=times,
            after=after,
        )
        self._tell("next", rule)

    def _tell(self, command: str, argument: Rates | Rule | None = None) -> Counter[str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._control_port, timeout=30)
        try:
            connection.request("POST", f"/{command}", body=msgspec.json.encode(argument))
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise ValueError(f"the fault proxy refused {command}: {said.decode()}")
        return Counter(json.loads(said))


def _parts(found: str | Sequence[str]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else tuple(found)


def _address(kubeconfig: Path) -> tuple[str, str | None]:
    """The server's URL and the file with its CA, from a kubeconfig of the testbed."""
    cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
    return cluster["server"], cluster.get("certificate-authority")
