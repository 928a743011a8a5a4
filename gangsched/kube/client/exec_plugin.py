"""The credentials that a kubeconfig's exec plug-in gives: a token, or a client certificate with its key.

As with kubectl, the plug-in is called again when they have expired, and when the API server has refused them (401),
which may come before: a token need not say when it expires, and may be revoked.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.kubeconfigs import Cluster, Exec

_LONGEST_S = 30.0
"""Time limit of the plug-in. After a failure the next request calls it again."""
LEAST_S = 10.0
"""Credentials younger than this, in seconds, are not replaced when they are refused: new ones would be, too."""
_FAILURES = (OSError, ValueError, TypeError)
"""A plug-in that fails or takes too long, and an answer that is invalid."""
_CLUSTER_EXTENSION = "client.authentication.k8s.io/exec"


class ExecCredentialStatus(Struct, rename="camel"):
    """What a plug-in gives: a token, or a certificate with its key in PEM, and when they expire, if ever."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _Answer(Struct, rename="camel"):
    kind: str
    api_version: str
    status: ExecCredentialStatus


class ExecPlugin:
    """The current credentials. `number` counts how often they were given, `certificates` how often a certificate was.

    `run` calls the plug-in. A new certificate is loaded into `tls`: it is used by connections that are opened from
    then on.
    """

    def __init__(
        self, run: Callable[[], Awaitable[ExecCredentialStatus]], *, server: str, tls: ssl.SSLContext | None
    ) -> None:
        self.number = 0
        self.certificates = 0
        self._run = run
        self._server = server
        self._tls = tls
        self._header: str | None = None
        self._expires = float("inf")
        self._renewed_at = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The Authorization header, from new credentials if the last ones have expired; None with a certificate.

        Raises:
            NoCredentials: they have expired, and the plug-in gives no others.
        """
        async with self._one_at_a_time:
            if time.time() >= self._expires:
                try:
                    await self.renew()
                except _FAILURES as error:
                    raise NoCredentials(f"The credentials for {self._server} cannot be renewed: {error}") from error
            return self._header

    async def replaced(self, number: int) -> bool:
        """Whether there are other credentials than those of this number, which the API server has refused."""
        async with self._one_at_a_time:
            if number == self.number and time.monotonic() - self._renewed_at >= LEAST_S:
                try:
                    await self.renew()
                except (NoCredentials, *_FAILURES):
                    # What the API server has said of the old ones tells more.
                    return False
            return number != self.number

    async def renew(self) -> None:
        """Call the plug-in.

        Raises:
            NoCredentials, OSError, ValueError, TypeError: it fails, takes too long, or gives nothing that is valid.
        """
        # A watch waits for credentials without a time limit, and all other requests wait behind it.
        try:
            async with asyncio.timeout(_LONGEST_S):
                credential = await self._run()
        except TimeoutError as error:
            raise ValueError(f"there was no answer within {_LONGEST_S:g} s") from error
        if credential.client_certificate_data and credential.client_key_data:
            if self._tls is not None:
                load_certificate(self._tls, credential.client_certificate_data, credential.client_key_data)
                self.certificates += 1
        elif not credential.token:
            raise ValueError("its answer has neither a token nor a certificate with a key")
        expires = credential.expiration_timestamp
        self._header = f"Bearer {credential.token}" if credential.token else None
        self._expires = expires.timestamp() if expires is not None else float("inf")
        self._renewed_at = time.monotonic()
        self.number += 1


async def call(plugin: Exec, cluster: Cluster) -> ExecCredentialStatus:
    """Run the program that the kubeconfig names, as client.authentication.k8s.io prescribes.

    Raises:
        OSError: it cannot be started.
        ValueError: it failed, or its answer is invalid; the message is its own, if it gave one.
    """
    interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not interactive:
        raise ValueError(f"the exec plug-in {plugin.command} must ask somebody, and there is no terminal")
    process = await asyncio.create_subprocess_exec(
        plugin.command,
        *plugin.args,
        env=os.environ
        | {variable.name: variable.value for variable in plugin.env}
        | {"KUBERNETES_EXEC_INFO": _request(plugin, cluster, interactive=interactive)},
        stdin=None if interactive else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode != 0:
        message = errors.decode("utf-8", "replace").strip()
        raise ValueError(f"exec: process returned {process.returncode}{message and f'. {message}'}")
    answer = msgspec.json.decode(output, type=_Answer)
    if answer.kind != "ExecCredential" or answer.api_version != plugin.api_version:
        raise ValueError(f"exec: the answer is {answer.api_version} {answer.kind}, not {plugin.api_version}")
    return answer.status


def _request(plugin: Exec, cluster: Cluster, *, interactive: bool) -> str:
    """What the plug-in finds in its environment: whether it may ask, and on request for which cluster it works."""
    spec: dict[str, object] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        cluster_info: dict[str, object] = {"server": cluster.server}
        if cluster.tls_server_name:
            cluster_info["tls-server-name"] = cluster.tls_server_name
        if cluster.insecure_skip_tls_verify:
            cluster_info["insecure-skip-tls-verify"] = True
        authority = cluster.authority()
        if authority is not None:
            cluster_info["certificate-authority-data"] = authority.encode()  # written in base64
        if cluster.proxy_url:
            cluster_info["proxy-url"] = cluster.proxy_url
        for extension in cluster.extensions:
            if extension.get("name") == _CLUSTER_EXTENSION:
                cluster_info["config"] = extension.get("extension")
        spec["cluster"] = cluster_info
    request = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(request).decode()


def load_certificate(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a client certificate and its key, both in PEM, which ssl reads from files only.

    Raises:
        OSError, ValueError: they are no certificate and its key.
    """
    with tempfile.TemporaryDirectory(prefix="gangsched-") as folder:
        files = Path(folder, "certificate"), Path(folder, "key")
        for file, text in zip(files, (certificate, key), strict=True):
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8")
        tls.load_cert_chain(*files)
