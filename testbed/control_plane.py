"""A real Kubernetes control plane for the demo, the tests and the benchmark, which always ends with its owner.

etcd and kube-apiserver always; kube-controller-manager, KWOK and kube-scheduler by choice. Every listener is on
127.0.0.1, every file in one temporary folder, every process held by testbed.tether.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from testbed import binaries, nodes
from testbed.api import Api, ApiError, Json
from testbed.audit import audit_entries
from testbed.certificates import write_certificate
from testbed.restraint import KWOK, restrain
from testbed.stages import late
from testbed.tether import Child, Tether, TetherError

_START_WITHIN_S = 120
# A clean shutdown waits for watches. The kill after this time looks like a crash, which clients must tolerate anyway.
_APISERVER_END_WITHIN_S = 2.0
_COMMAND_WITHIN_S = 180
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Request", "resources": [{"group": "", "resources": ["pods/binding", "pods/eviction"]}]},
        {"level": "Metadata"},
    ],
}
# Allow cached bytecode as in an installed package: without it, each start of the operator compiles two thousand modules
# for seconds.
_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
# Below the kernel's range of ephemeral ports, so that no outgoing connection occupies one of these.
_PORTS = range(20000, 32000)


class ControlPlaneError(Exception):
    """A server did not start, or a command failed; the message includes the end of its log or output."""


class ControlPlane:
    """A context manager; inside it the API server is ready and ``default`` has its service account."""

    def __init__(
        self,
        *,
        controllers: bool = True,
        kwok: bool = True,
        scheduler: bool = False,
        audit: bool = False,
        audit_policy: Json = _AUDIT_POLICY,
        not_ready_taint: bool = True,
        users: Sequence[str] = (),
        extra_apiserver_args: Sequence[str] = (),
        extra_controller_args: Sequence[str] = (),
        extra_scheduler_args: Sequence[str] = (),
        ready_after_s: float = 0,
        kubernetes: Path | None = None,
    ) -> None:
        """Configure the control plane without starting it.

        Args:
            controllers: run kube-controller-manager; without it the ServiceAccount admission is off as well.
            kwok: run KWOK, which keeps nodes Ready and turns bound pods Running.
            scheduler: run kube-scheduler, for pods of ``default-scheduler``.
            audit: write requests to ``audit_log``.
            audit_policy: which requests to log; by default all, bindings and evictions with their bodies.
            not_ready_taint: new nodes get the not-ready taint as in a real cluster; off if no controller removes it.
            users: names of users beside the administrator, for ``kubeconfig_of_user``.
            extra_apiserver_args: further flags of kube-apiserver, last on its command line.
            extra_controller_args: the same for kube-controller-manager.
            extra_scheduler_args: the same for kube-scheduler.
            ready_after_s: how long pods run before KWOK makes them ready (see testbed.stages).
            kubernetes: the folder of an older version (see testbed.versions), until ``upgrade``.
        """
        self._controllers = controllers
        self._kwok = kwok
        self._scheduler = scheduler
        self._audit = audit
        self._audit_policy = audit_policy
        self._tokens = {user: secrets.token_hex(16) for user in users}
        self._kwok_token = secrets.token_hex(16)
        self._extra_apiserver_args = tuple(extra_apiserver_args)
        self._extra_controller_args = tuple(extra_controller_args)
        self._extra_scheduler_args = tuple(extra_scheduler_args)
        self._ready_after_s = ready_after_s
        self._kubernetes = kubernetes
        self._disabled_admission = [] if controllers else ["ServiceAccount"]
        if not not_ready_taint:
            self._disabled_admission.append("TaintNodesByCondition")

    def __enter__(self) -> Self:
        wanted = ["etcd", "kube-apiserver", "kubectl"]
        wanted += ["kube-controller-manager"] if self._controllers else []
        wanted += ["kwok"] if self._kwok else []
        wanted += ["kube-scheduler"] if self._scheduler else []
        folder = binaries.find(wanted)
        if folder is None:
            raise ControlPlaneError("The control plane's programs are not built yet: run make control-plane first.")
        self.binaries = folder
        with ExitStack() as stack:
            self._tether = stack.enter_context(Tether())
            self._prepare()
            self._start()
            stack.callback(self.api.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def audited(self, user: str = "", *, naming: str = "") -> list[Json]:
        """The complete entries of the audit log, only of `user` if given; a half-written last line is skipped.

        A request that was answered 401 has an entry without a username. With `naming`, only entries with this text are
        returned. The others are not even decoded: at the end of a test run the log has a hundred thousand.
        """
        entries = audit_entries(self.audit_log, user, naming)
        return [entry for entry in entries if not user or entry["user"].get("username") == user]

    def not_permitted(self, user: str) -> list[str]:
        """The denied requests of that user, according to the audit log."""
        return [
            f"{entry['verb']} {entry['requestURI']}"
            for entry in self.audited(user)
            if entry["annotations"]["authorization.k8s.io/decision"] == "forbid"
        ]

    def _prepare(self) -> None:
        self.folder = self._tether.folder
        self.logs = self.folder / "logs"
        self.audit_log = self.folder / "audit.log"
        self.port, self._etcd_port, self._etcd_peer_port = free_ports(3)
        self.url = f"https://127.0.0.1:{self.port}"
        certificates = self.folder / "certificates"
        certificates.mkdir()
        self._certificate, self._key = certificates / "apiserver.crt", certificates / "apiserver.key"
        write_certificate(self._certificate, self._key)
        self._token = secrets.token_hex(16)
        tokens = [f'{self._token},testbed-admin,testbed-admin,"system:masters"']
        tokens += [f'{self._kwok_token},{KWOK},{KWOK},"system:masters"'] if self._kwok else []
        tokens += [f"{token},{user},{user}" for user, token in self._tokens.items()]
        (self.folder / "tokens.csv").write_text("\n".join(tokens) + "\n")
        (self.folder / "audit-policy.json").write_text(json.dumps(self._audit_policy))

    def _start(self) -> None:
        self._start_etcd()
        self._spawn_apiserver()
        self.api = self.new_api()
        self._await_apiserver()
        self.kubeconfig = self.kubeconfig_for(token=self._token)
        if self._controllers:
            self._start_controllers()
        if self._kwok:
            self._start_kwok()
        if self._scheduler:
            self.spawn(
                "kube-scheduler",
                [
                    *self._client("kube-scheduler"),
                    "--leader-elect=false",
                    "--secure-port=0",
                    *self._extra_scheduler_args,
                ],
            )
        if self._controllers:
            self._await(
                lambda: bool(self.api.get("/api/v1/namespaces/default/serviceaccounts/default")),
                what="the service account of namespace default",
                child=self._controller_manager,
            )

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._etcd_peer_port}"
        self.spawn(
            "etcd",
            [
                self.binaries / "etcd",
                *("--name=testbed", f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn"),
                *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
                *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
                *(f"--initial-cluster=testbed={peer}", "--quota-backend-bytes=8589934592"),
            ],
        )

    def _spawn_apiserver(self) -> None:
        audit = [
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-maxsize=10000",  # MB; at the default of 100 the log is rotated under its readers
        ]
        self._apiserver = self.spawn(
            "kube-apiserver",
            [
                self._program("kube-apiserver"),
                *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={self.port}"),
                *("--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24"),
                f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
                *(f"--tls-cert-file={self._certificate}", f"--tls-private-key-file={self._key}"),
                *("--authorization-mode=RBAC", f"--token-auth-file={self.folder / 'tokens.csv'}"),
                *("--service-account-issuer=https://kubernetes.default.svc", "--profiling=false"),
                *(f"--service-account-key-file={self._key}", f"--service-account-signing-key-file={self._key}"),
                f"--disable-admission-plugins={','.join(self._disabled_admission)}",
                *(audit if self._audit else []),
                *self._extra_apiserver_args,
            ],
        )

    def _await_apiserver(self) -> None:
        self._await(lambda: self.api.text("/readyz") == "ok", what="/readyz", child=self._apiserver)

    def start_apiserver(self) -> None:
        """Starts kube-apiserver after ``stop_apiserver`` and waits until it is ready."""
        self._spawn_apiserver()
        self._await_apiserver()

    def stop_apiserver(self) -> None:
        """Ends kube-apiserver, leaving everything else as it is."""
        self.api.close()
        self._apiserver.stop(timeout_s=_APISERVER_END_WITHIN_S)

    def kill_apiserver(self) -> None:
        """Ends kube-apiserver as a crash would."""
        self.api.close()
        self._apiserver.signal(signal.SIGKILL)
        self._apiserver.wait(timeout_s=_APISERVER_END_WITHIN_S)

    def new_api(self) -> Api:
        """Another connection to the API server, as cluster-admin."""
        return Api(self.port, certificate=self._certificate, token=self._token)

    def api_of_kwok(self) -> Api:
        """Another connection to the API server, with KWOK's credentials."""
        return Api(self.port, certificate=self._certificate, token=self._kwok_token)

    def restart_apiserver(self) -> None:
        """Ends kube-apiserver and starts it again on the same port, with the same certificate and data."""
        self.stop_apiserver()
        self.start_apiserver()

    def _start_controllers(self) -> None:
        self._controller_manager = self.spawn(
            "kube-controller-manager",
            [
                *self._client("kube-controller-manager"),
                *("--leader-elect=false", "--secure-port=0", "--profiling=false"),
                *("--controllers=*,-node-ipam-controller", "--kube-api-qps=500", "--kube-api-burst=1000"),
                f"--service-account-private-key-file={self._key}",
                f"--root-ca-file={self._certificate}",
                *self._extra_controller_args,
            ],
        )

    def _start_kwok(self) -> None:
        kwok = self.api_of_kwok()
        restrain(self.api, kwok)
        kwok.close()
        stages = self.binaries / binaries.STAGES
        if self._ready_after_s:
            own = late(stages.read_text(encoding="utf-8"), self._ready_after_s)
            stages = self.folder / binaries.STAGES
            stages.write_text(own, encoding="utf-8")
        self.spawn(
            "kwok",
            [
                self.binaries / "kwok",
                f"--kubeconfig={self.kubeconfig_for(token=self._kwok_token)}",
                f"--config={stages}",
                *("--manage-all-nodes=true", "--node-lease-duration-seconds=40", "--node-ip=127.0.0.1"),
            ],
        )

    def upgrade(self, *, extra_apiserver_args: Sequence[str] = (), extra_controller_args: Sequence[str] = ()) -> None:
        """Replaces an older version's API server and controllers by the main one's, on the same etcd and port.

        The arguments replace those of the constructor.
        """
        self._controller_manager.stop()
        self.stop_apiserver()
        self._kubernetes = None
        self._extra_apiserver_args = tuple(extra_apiserver_args)
        self._extra_controller_args = tuple(extra_controller_args)
        self.start_apiserver()
        self._start_controllers()

    def _program(self, name: str) -> Path:
        return (self._kubernetes or self.binaries) / name

    def _client(self, name: str) -> list[str | Path]:
        return [self._program(name), f"--kubeconfig={self.kubeconfig}"]

    def _await(self, condition: Callable[[], bool], *, what: str, child: Child) -> None:
        name = child.log.stem
        deadline = time.monotonic() + _START_WITHIN_S
        while True:
            try:
                if condition():
                    return
            except (OSError, http.client.HTTPException, ApiError):
                pass  # not listening yet
            if (status := child.poll()) is not None:
                raise ControlPlaneError(
                    f"{name} ended with status {status} during its start; its log ends with:\n{child.log_tail()}"
                )
            if time.monotonic() > deadline:
                raise ControlPlaneError(
                    f"{name} did not provide {what} within {_START_WITHIN_S} s; its log ends with:\n{child.log_tail()}"
                )
            time.sleep(0.05)

    def spawn(self, name: str, command: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> Child:
        """Starts any process, such as the operator, that must not outlive this control plane.

        Its output goes to ``logs``/NAME.log; ``env`` is added to this process's own environment.

        Raises:
            ControlPlaneError: the program cannot be run.
        """
        try:
            return self._tether.start(name, command, env=self._private_home() | _BYTECODE | dict(env or {}))
        except TetherError as error:
            raise ControlPlaneError(f"{name} could not be started: {error}") from error

    def kubeconfig_for(self, *, user: str | None = None, groups: Sequence[str] = (), token: str | None = None) -> Path:
        """A new kubeconfig with that token or, for kubectl only, one that impersonates that user and groups."""
        credentials: dict[str, object] = {"token": token or self._token}
        if user is not None:
            credentials |= {"as": user, "as-groups": list(groups)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "testbed",
                    "cluster": {"server": self.url, "certificate-authority": str(self._certificate)},
                }
            ],
            "users": [{"name": "testbed", "user": credentials}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
            "current-context": "testbed",
        }
        path = self.folder / f"kubeconfig-{secrets.token_hex(4)}.json"
        path.write_text(json.dumps(content))
        path.chmod(0o600)
        return path

    def kubeconfig_of_service_account(self, namespace: str, name: str) -> Path:
        """A new kubeconfig with a fresh token of that ServiceAccount, which is valid for longer than any test."""
        token = self.kubectl("create", "token", name, "--namespace", namespace, "--duration=24h")
        return self.kubeconfig_for(token=token.strip())

    def kubeconfig_of_user(self, name: str) -> Path:
        """A new kubeconfig with the credentials of that user, who must be one of ``users``."""
        return self.kubeconfig_for(token=self._tokens[name])

    def kubectl(
        self, *arguments: str | Path, stdin: str | None = None, kubeconfig: Path | None = None, check: bool = True
    ) -> str:
        """The output of kubectl, as cluster-admin unless ``kubeconfig`` says otherwise.

        Raises:
            ControlPlaneError: it failed and ``check`` is on; without ``check`` its error output is returned as well.
        """
        return self._command("kubectl", arguments, stdin=stdin, kubeconfig=kubeconfig, check=check)

    def helm(self, *arguments: str | Path, kubeconfig: Path | None = None, check: bool = True) -> str:
        """The output of helm; otherwise like ``kubectl``."""
        return self._command("helm", arguments, stdin=None, kubeconfig=kubeconfig, check=check)

    def _command(
        self, name: str, arguments: Sequence[str | Path], *, stdin: str | None, kubeconfig: Path | None, check: bool
    ) -> str:
        folder = self.binaries if (self.binaries / name).exists() else binaries.find([name])
        if folder is None:
            raise ControlPlaneError(f"{name} is not built yet: run make control-plane first.")
        # KUBECONFIG rather than a flag: some of helm's sub-commands and kubectl's plug-ins do not accept the flag.
        home = self._private_home() | {"KUBECONFIG": str(kubeconfig or self.kubeconfig)}
        done = subprocess.run(
            [folder / name, *arguments],
            input=stdin if stdin is not None else "",
            env=os.environ | home,
            capture_output=True,
            text=True,
            timeout=_COMMAND_WITHIN_S,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
        if not check:
            return done.stdout + done.stderr
        shown = " ".join(map(str, arguments))
        raise ControlPlaneError(f"{name} {shown} ended with status {done.returncode}: {done.stderr.strip()}")

    def _private_home(self) -> dict[str, str]:
        """Environment that keeps the programs' caches and settings in the folder and ignores the user's own."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        xdg = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
        return {"HOME": str(home), **xdg}

    def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "16Gi",
        pods: str = "110",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        extra: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        """Creates a node (see testbed.nodes.node) and waits until it is schedulable where controllers run."""
        manifest = nodes.node(
            name,
            cpu=cpu,
            memory=memory,
            pods=pods,
            labels=labels,
            taints=taints,
            extra=extra,
            ready=not self._kwok,
        )
        self.api.post("/api/v1/nodes", manifest)
        if wait and self._controllers:
            nodes.wait_until_ready(self.api, name)

    def delete_nodes(self) -> None:
        """Deletes every node and waits until they are gone."""
        nodes.delete_all(self.api)


def free_ports(count: int) -> list[int]:
    """Distinct ports on 127.0.0.1 on which no process listens at present."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", secrets.choice(_PORTS)))
            except OSError:
                candidate.close()
            else:
                held.append(candidate)
        return [holder.getsockname()[1] for holder in held]
    finally:
        for holder in held:
            holder.close()
