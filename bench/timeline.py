"""The times of events by the API server's own clock, from its audit log, without the delay of a watch."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods", "pods/binding"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["patch", "update"],
            "resources": [
                {"group": "", "resources": ["pods/status"]},
                {"group": "gangsched.io", "resources": ["podgroups/status"]},
            ],
        },
        {"level": "None"},
    ],
}
"""Logs only the requests that a timeline needs, without bodies, so that the log costs the API server little."""


class _Object(Struct):
    name: str = ""
    subresource: str = ""
    resource: str = ""


class _Answer(Struct):
    code: int = 0


class _Entry(Struct, rename={"object": "objectRef", "answer": "responseStatus"}):
    request_received: datetime = msgspec.field(name="requestReceivedTimestamp")
    stage: datetime = msgspec.field(name="stageTimestamp")
    object: _Object = msgspec.field(default_factory=_Object)
    answer: _Answer = msgspec.field(default_factory=_Answer)


_ENTRY = msgspec.json.Decoder(_Entry)
_CREATED = 201
_OK = 200


class Timeline:
    """The events since the last `begin`, in epoch seconds, by the name of the pod or PodGroup.

    `created` and `told` (the last write of a PodGroup's status) hold the time of the server's response. `bound` holds
    the times of the request and of the response. `explained` holds the last write of a pod's status.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self.begin()

    def begin(self) -> None:
        """Drop all past entries; the timeline starts now."""
        self._read = self._log.stat().st_size if self._log.exists() else 0
        self._half = b""
        self.created: dict[str, float] = {}
        self.bound: dict[str, tuple[float, float]] = {}
        self.told: dict[str, float] = {}
        self.explained: dict[str, float] = {}

    def read(self) -> None:
        """Read the entries written since the last call."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        self._read += len(new)
        *lines, self._half = (self._half + new).split(b"\n")
        for line in lines:
            self._take(_ENTRY.decode(line))

    @property
    def first_bound(self) -> float:
        """The time of the first binding's request."""
        return min(asked for asked, _ in self.bound.values())

    @property
    def last_bound(self) -> float:
        """The time of the last binding's response."""
        return max(answered for _, answered in self.bound.values())

    @property
    def pods_per_s(self) -> float:
        """Bindings per second from the first request to the last response."""
        return len(self.bound) / (self.last_bound - self.first_bound)

    def _take(self, entry: _Entry) -> None:
        name, answered = entry.object.name, entry.stage.timestamp()
        what = (entry.object.resource, entry.object.subresource)
        if what == ("pods", "") and entry.answer.code == _CREATED:
            self.created[name] = answered
        elif what == ("pods", "binding") and entry.answer.code == _CREATED:
            self.bound[name] = (entry.request_received.timestamp(), answered)
        elif what == ("podgroups", "status") and entry.answer.code == _OK:
            self.told[name] = answered
        elif what == ("pods", "status") and entry.answer.code == _OK:
            self.explained[name] = answered
