"""Files with a token that others replace before it expires, such as that of a pod's service account."""

from __future__ import annotations

import time
from pathlib import Path

from gangsched.kube.client.errors import NoCredentials

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which a pod finds the token of its service account, the API server's authority and its namespace."""
FRESH_S = 60.0
"""A token is read again after this time, in seconds."""


class TokenFile:
    """A token in a file that others replace before it expires."""

    def __init__(self, path: Path, server: str) -> None:
        self._path = path
        self._server = server
        self._header = ""
        self._read_at = float("-inf")

    def read(self) -> None:
        """Read the file.

        Raises:
            OSError, ValueError: it cannot be read, or is empty.
        """
        token = self._path.read_text(encoding="utf-8").strip()
        if not token:
            raise ValueError(f"the token file {self._path} is empty")
        self._header = f"Bearer {token}"
        self._read_at = time.monotonic()

    async def authorization(self) -> str:
        """The Authorization header with the token.

        Raises:
            NoCredentials: the file must be read again, and cannot be.
        """
        if time.monotonic() - self._read_at >= FRESH_S:
            try:
                self.read()
            except (OSError, ValueError) as error:
                raise NoCredentials(f"The credentials for {self._server} cannot be renewed: {error}") from error
        return self._header


def own_namespace(file: Path = SERVICE_ACCOUNT / "namespace") -> str:
    """The namespace of the pod that this process runs in; `default` outside of a pod."""
    try:
        return file.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
