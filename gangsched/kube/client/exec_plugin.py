"""The credentials that a kubeconfig's exec plug-in gives: a token, or a client certificate with its key.

As with kubectl, the plug-in is called again when they have expired, and when the API server has refused them (401),
which may come before: a token need not say when it expires, and may be revoked.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.kubeconfigs import ConfigException

_LONGEST_S = 30.0
"""Time limit of the plug-in. After a failure the next request calls it again."""
LEAST_S = 10.0
"""Credentials younger than this, in seconds, are not replaced when they are refused: new ones would be, too."""
_FAILURES = (ConfigException, OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError)
"""The library's exceptions for a plug-in that fails or gives an invalid answer."""


class ExecPlugin:
    """The current credentials. `number` counts how often they were given, `certificates` how often a certificate was.

    `run` calls the plug-in and returns the status of its answer. A new certificate is loaded into `tls`: it is used by
    connections that are opened from then on.
    """

    def __init__(
        self, run: Callable[[], Awaitable[Mapping[str, Any]]], *, server: str, tls: ssl.SSLContext | None
    ) -> None:
        self.number = 0
        self.certificates = 0
        self._run = run
        self._server = server
        self._tls = tls
        self._header: str | None = None
        self._expires = float("inf")
        self._given = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The Authorization header, from new credentials if the last ones have expired; None with a certificate.

        Raises:
            NoCredentials: they have expired, and the plug-in gives no others.
        """
        async with self._one_at_a_time:
            if time.time() >= self._expires:
                await self._renew()
            return self._header

    async def replaced(self, number: int) -> bool:
        """Whether there are other credentials than those of this number, which the API server has refused."""
        async with self._one_at_a_time:
            if number == self.number and time.monotonic() - self._given >= LEAST_S:
                try:
                    await self._renew()
                except NoCredentials:
                    # What the API server has said of the old ones tells more.
                    return False
            return number != self.number

    async def _renew(self) -> None:
        try:
            # A watch waits for credentials without a time limit, and all other requests wait behind it.
            async with asyncio.timeout(_LONGEST_S):
                said = await self._run()
            expires, token = said.get("expirationTimestamp"), said.get("token")
            certificate, key = said.get("clientCertificateData"), said.get("clientKeyData")
            if not token and not (certificate and key):
                raise ValueError("its answer has neither a token nor a certificate with a key")
            if certificate and key:
                self._load(str(certificate), str(key))
            self.note(f"Bearer {token}" if token else None, datetime.fromisoformat(expires) if expires else None)
        except _FAILURES as error:
            raise NoCredentials(f"The credentials for {self._server} cannot be renewed: {error}") from error

    def note(self, header: str | None, expires: datetime | None) -> None:
        """Note credentials that it has given: the Authorization header, if any, and when they expire, if ever."""
        self._header = header
        self._expires = expires.timestamp() if expires is not None else float("inf")
        self._given = time.monotonic()
        self.number += 1

    def _load(self, certificate: str, key: str) -> None:
        """Load a certificate; ssl reads it from files only."""
        if self._tls is None:
            return
        with tempfile.TemporaryDirectory(prefix="gangsched-") as folder:
            files = Path(folder, "certificate"), Path(folder, "key")
            for file, text in zip(files, (certificate, key), strict=True):
                file.touch(mode=0o600)
                file.write_text(text, encoding="utf-8")
            self._tls.load_cert_chain(*files)
        self.certificates += 1
