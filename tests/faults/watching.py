"""The soak's own watches: a list, then a stream that resumes at the last version, each in a thread.

They talk to the API server directly, never through a fault proxy, and use only the standard library.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.control_plane import ControlPlane
from tests.faults.history import History
from tests.faults.objects import Json

_RETRY_S = 0.1
_STREAM_S = 300
_SILENT_S = 90.0
_GONE = 410
_OK = 200


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A resource and the callbacks for its events."""

    path: str
    replaced: Callable[[Sequence[Json]], None]
    seen: Callable[[Json], None]
    gone: Callable[[Json], None]


class _Expired(Exception):  # noqa: N818 - the API server's own word
    """The version is no longer available."""


def _credentials(kubeconfig: Path) -> tuple[Path, str]:
    content = json.loads(kubeconfig.read_text())
    return Path(content["clusters"][0]["cluster"]["certificate-authority"]), content["users"][0]["user"]["token"]


def kinds(history: History) -> list[Kind]:
    """The kinds that a history needs to watch."""
    return [
        Kind(path="/api/v1/nodes", replaced=history.nodes_replaced, seen=history.node_seen, gone=history.node_gone),
        Kind(path="/api/v1/pods", replaced=history.pods_replaced, seen=history.pod_seen, gone=history.pod_gone),
        Kind(
            path="/apis/gangsched.io/v1alpha1/podgroups",
            replaced=history.groups_replaced,
            seen=history.group_seen,
            gone=history.group_gone,
        ),
        Kind(path="/apis/batch/v1/jobs", replaced=history.jobs_replaced, seen=history.job_seen, gone=history.job_gone),
    ]


class Watch(threading.Thread):
    """Follows one kind until it is stopped; `failed` is the error that ended it, if any."""

    def __init__(self, control_plane: ControlPlane, kind: Kind) -> None:
        super().__init__(name=f"watch {kind.path}", daemon=True)
        certificate, token = _credentials(control_plane.kubeconfig)
        self.failed: Exception | None = None
        self.synced = threading.Event()
        self._port = control_plane.port
        self._context = ssl.create_default_context(cafile=certificate)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._kind = kind
        self._version = ""
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Stop at the next opportunity; the thread is a daemon and need not be joined."""
        self._stopped.set()

    def run(self) -> None:
        """List and watch until stopped."""
        try:
            while not self._stopped.is_set():
                try:
                    if not self._version:
                        self._list()
                    self._follow()
                except _Expired:
                    self._version = ""
                except (OSError, http.client.HTTPException):
                    time.sleep(_RETRY_S)
        except Exception as error:  # noqa: BLE001 - users of the history must see that it is incomplete
            self.failed = error

    def _list(self) -> None:
        connection, answer = self._open(self._kind.path)
        try:
            content = json.loads(answer.read())
        finally:
            connection.close()
        self._kind.replaced(content.get("items") or [])
        self._version = content["metadata"]["resourceVersion"]
        self.synced.set()

    def _follow(self) -> None:
        connection, answer = self._open(
            f"{self._kind.path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={_STREAM_S}"
            f"&resourceVersion={self._version}"
        )
        try:
            while line := answer.readline():
                if self._stopped.is_set() or not line.endswith(b"\n"):
                    return
                self._take(json.loads(line))
        finally:
            connection.close()

    def _take(self, event: Json) -> None:
        obj = event["object"]
        if event["type"] == "ERROR":
            if obj.get("code") == _GONE:
                raise _Expired
            raise ConnectionError(obj.get("message", ""))
        if event["type"] == "DELETED":
            self._kind.gone(obj)
        elif event["type"] != "BOOKMARK":
            self._kind.seen(obj)
        self._version = obj["metadata"]["resourceVersion"]

    def _open(self, path: str) -> tuple[http.client.HTTPSConnection, Any]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=_SILENT_S, context=self._context)
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        if answer.status != _OK:
            connection.close()
            raise _Expired if answer.status == _GONE else ConnectionError(f"{answer.status} {answer.reason}")
        return connection, answer


class Probe:
    """A client with a kubeconfig's credentials and a short timeout, to see whether the API server answers."""

    def __init__(self, control_plane: ControlPlane, kubeconfig: Path, *, timeout_s: float = 1.0) -> None:
        certificate, token = _credentials(kubeconfig)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        context = ssl.create_default_context(cafile=certificate)
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", control_plane.port, timeout=timeout_s, context=context
        )

    def get(self, path: str) -> bytes:
        """Get the response's body.

        Raises:
            OSError, http.client.HTTPException: there was no response in time, or it was an error.
        """
        try:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if answer.status != _OK:
            raise ConnectionError(f"{answer.status} {answer.reason}")
        return body
