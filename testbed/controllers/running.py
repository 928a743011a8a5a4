"""Runs workload controllers beside a control plane: their CRDs, their processes, and their webhooks called by URL.

Everything belongs to one control plane and ends with it. The certificate is the control plane's own
(testbed.certificates). Ports are on 127.0.0.1 wherever the controller's configuration allows it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from testbed.api import ApiError, Json
from testbed.control_plane import ControlPlane, ControlPlaneError, free_ports
from testbed.controllers.build import CRDS, WEBHOOKS, folder_of, is_built
from testbed.controllers.table import CONTROLLERS, Controller
from testbed.tether import Child

_READY_WITHIN_S = 60
_SERVED_WITHIN_S = 30
_STARTS = 3
_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
_MOUNTED = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")  # noqa: S108


@contextlib.contextmanager
def running(
    control_plane: ControlPlane, name: str, *arguments: str, config: Mapping[str, Any] | None = None
) -> Iterator[Callable[[], None]]:
    """Runs the controller and those that it needs; the block begins once it is ready.

    Yields a function that restarts those that have ended, as a kubelet would: some end when they lose their lease.

    ``arguments`` are added to its command line, ``config`` to its configuration file.

    Raises:
        ControlPlaneError: it is not built, or it was not ready in time.
    """
    controller = CONTROLLERS[name]
    if not is_built(controller):
        raise ControlPlaneError(f"{name} is not built yet: run python3 -m testbed.controllers.build {name}")
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(running(control_plane, other)) for other in controller.beside]
        _install(control_plane, controller)
        if controller.secret:
            stack.enter_context(_mounted())
        run = _Run(control_plane, controller, arguments, config or {})
        run.start()
        stack.callback(run.stop)

        def revive() -> None:
            for other in others:
                other()
            run.revive()

        yield revive


@contextlib.contextmanager
def _mounted() -> Iterator[None]:
    """Provides the file that certificate rotators expect from a kubelet, at a fixed path that ignores TMPDIR.

    The file is empty: the webhooks' servers read their certificates elsewhere. Another run may share the file.
    """
    _MOUNTED.parent.mkdir(parents=True, exist_ok=True)
    _MOUNTED.touch()
    try:
        yield
    finally:
        _MOUNTED.unlink(missing_ok=True)
        for folder in (_MOUNTED.parent, _MOUNTED.parent.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _install(control_plane: ControlPlane, controller: Controller) -> None:
    crds = list(filter(None, yaml.safe_load_all((folder_of(controller) / CRDS).read_text())))
    installed = [with_conversion(crd) if controller.converts else crd for crd in crds]
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": installed}, default=str)
    control_plane.kubectl("apply", "--server-side", "--filename", "-", stdin=manifest)
    for crd in crds:
        spec = crd["spec"]
        version = next(each["name"] for each in spec["versions"] if each["served"])
        group, plural = f"/apis/{spec['group']}/{version}", spec["names"]["plural"]
        _await(
            lambda group=group, plural=plural: _is_served(control_plane, group, plural),
            _SERVED_WITHIN_S,
            what=f"{group}/{plural} is not served",
        )


def with_conversion(crd: Json) -> Json:
    """The kind's definition with a place for a conversion webhook's certificate, if it has several versions."""
    if len(crd["spec"]["versions"]) == 1:
        return crd
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1/convert"}}
    return {**crd, "spec": {**crd["spec"], "conversion": {"strategy": "Webhook", "webhook": webhook}}}


class _Run:
    """One controller on one control plane."""

    def __init__(
        self,
        control_plane: ControlPlane,
        controller: Controller,
        arguments: Sequence[str],
        config: Mapping[str, Any],
    ) -> None:
        self._control_plane = control_plane
        self._controller = controller
        self._folder = control_plane.folder / controller.name
        self._probe, self._webhook = free_ports(2)
        self._certificates = self._folder / "k8s-webhook-server" / "serving-certs"
        self._arguments = arguments
        self._config = config

    def start(self) -> None:
        """Starts the controller and waits until it is ready.

        Raises:
            ControlPlaneError: it did not become ready.
        """
        self._write_certificates()
        self._write_config()
        if self._controller.secret:
            self._add_secret()
        self._start()
        if self._controller.webhooks:
            self._register()

    def _start(self) -> None:
        for _ in range(_STARTS):
            self._child = self._spawn()
            if self._became_ready(self._child):
                return
            self._child.stop()
        raise ControlPlaneError(
            f"{self._controller.name} did not become ready; its log ends with:\n{self._child.log_tail(30)}"
        )

    def revive(self) -> None:
        """Restarts the controller if it has ended.

        Raises:
            ControlPlaneError: it did not become ready.
        """
        if self._child.poll() is not None:
            self._start()

    def stop(self) -> None:
        """Ends the controller."""
        self._child.stop()

    def _write_certificates(self) -> None:
        """Copies kube-apiserver's certificate and key to the names that a webhook's server expects."""
        self._certificates.mkdir(parents=True)
        for suffix in ("crt", "key"):
            own = self._control_plane.folder / "certificates" / f"apiserver.{suffix}"
            shutil.copyfile(own, self._certificates / f"tls.{suffix}")

    def _write_config(self) -> None:
        webhook: Json = {"host": "127.0.0.1", "port": self._webhook}
        if self._controller.names_certificates:
            webhook["certDir"] = str(self._certificates)
        addresses = {
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._probe}"},
            "metrics": {"bindAddress": "0"},
            "webhook": webhook,
            "leaderElection": {"leaderElect": False},
            self._controller.own_certificates: {"enable": bool(self._controller.secret)},
        }
        kind = {"apiVersion": self._controller.config, "kind": "Configuration"}
        (self._folder / "config.yaml").write_text(json.dumps(kind | addresses | dict(self._config)))

    def _add_secret(self) -> None:
        """Creates the Secret for the controller's certificates, which an installation normally provides."""
        namespace, _, name = self._controller.secret.partition("/")
        for path, body in (
            ("/api/v1/namespaces", {"metadata": {"name": namespace}}),
            (f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}}),
        ):
            self._control_plane.api.post(path, body)

    def _spawn(self) -> Child:
        words = {"probe": self._probe, "webhook": self._webhook, "config": self._folder / "config.yaml"}
        own = [each.format(**words) for each in self._controller.arguments]
        # A webhook's server reads its certificate below TMPDIR unless a flag sets another place.
        env = {"KUBECONFIG": str(self._control_plane.kubeconfig), "TMPDIR": str(self._folder)}
        program = folder_of(self._controller) / self._controller.name
        return self._control_plane.spawn(self._controller.name, [program, *own, *self._arguments], env=env)

    def _became_ready(self, child: Child) -> bool:
        """Wait until it is ready; False if it ends first, as some do right after their kinds are installed."""
        deadline = time.monotonic() + _READY_WITHIN_S
        ready = self._controller.ready.format(probe=self._probe)
        while time.monotonic() < deadline and child.poll() is None:
            if _is_ok(ready) and (not self._controller.webhooks or _listens(self._webhook)):
                return True
            time.sleep(0.1)
        return False

    def _register(self) -> None:
        authority = (self._control_plane.folder / "certificates" / "apiserver.crt").read_bytes()
        for manifest in filter(None, yaml.safe_load_all((folder_of(self._controller) / WEBHOOKS).read_text())):
            body = by_url(manifest, self._controller, port=self._webhook, authority=authority)
            self._control_plane.api.post(f"{_REGISTRATIONS}/{body['kind'].lower()}s", body)


def by_url(manifest: Json, controller: Controller, *, port: int, authority: bytes) -> Json:
    """The webhooks' registration with a URL on 127.0.0.1:`port` instead of a Service.

    It is named after the controller alone, so that no certificate rotator finds it.
    """

    def called(webhook: Json) -> Json:
        client = webhook["clientConfig"]
        url = f"https://127.0.0.1:{port}{client['service']['path']}"
        told = {**webhook, "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()}}
        if controller.pods_with and any("pods" in rule["resources"] for rule in webhook["rules"]):
            told["objectSelector"] = {"matchExpressions": [{"key": controller.pods_with, "operator": "Exists"}]}
        return told

    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {"name": controller.name},
        "webhooks": [called(webhook) for webhook in manifest["webhooks"]],
    }


def _is_served(control_plane: ControlPlane, group: str, plural: str) -> bool:
    """Whether objects of the kind are served and discovery names it; a controller that starts before that ends."""
    try:
        control_plane.api.get(f"{group}/{plural}")
        return plural in {resource["name"] for resource in control_plane.api.get(group)["resources"]}
    except ApiError:
        return False


def _is_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - on 127.0.0.1
            return bool(answer.status == 200)  # noqa: PLR2004 - HTTP's OK
    except OSError:
        return False


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _await(condition: Any, within_s: float, *, what: str) -> None:  # noqa: ANN401
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"{what} within {within_s:g} s")
        time.sleep(0.1)
