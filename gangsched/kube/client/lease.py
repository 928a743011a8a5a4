"""Reads and writes one Lease of coordination.k8s.io/v1. Every write is conditional on what was read before.

An update is a merge patch of the spec with the resourceVersion that it is based on. If two replicas change the same
Lease, only one succeeds and the other receives a 409. Labels that others have put on the Lease stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from msgspec import Struct

from gangsched.kube.client.errors import readable
from gangsched.kube.client.session import JSON, MERGE_PATCH, ApiSession, Response

API_VERSION = "coordination.k8s.io/v1"
LABEL, VALUE = "app.kubernetes.io/name", "gangsched"
"""The label of every Lease that gangsched creates, by which Leases of any name can be found."""
SETTINGS = "gangsched.io/settings"
"""The annotation that publishes the leader's settings, in the form of `config.published`."""


class LeaseSpec(Struct, frozen=True, rename="camel"):
    """The holder of the Lease and its times; the times are RFC 3339 in UTC, the duration is in seconds.

    A missing or empty holder means that the Lease is free.
    """

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, frozen=True):
    """The Lease at the resourceVersion `version`."""

    version: str
    spec: LeaseSpec


class _LeaseMetadata(Struct, rename="camel"):
    resource_version: str


class _Object(Struct):
    metadata: _LeaseMetadata
    spec: LeaseSpec | None = None


_OBJECT = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, kw_only=True)
class LeaseClient:
    """The Lease of this name. No call lasts longer than its `timeout_s`. Each write sets the `annotations`.

    A Lease that is not `essential` is only read, and gangsched works even if it lacks the right to read it.

    All calls raise:
        ApiError: the API server refused; 409 means that another writer was first.
        ApiUnreachable: there was no answer; a write may still have taken effect.
        Garbled: the answer is not a Lease.
    """

    session: ApiSession
    namespace: str
    name: str
    essential: bool = True
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Namespace and name, for messages."""
        return f"{self.namespace}/{self.name}"

    async def get(self, *, timeout_s: float) -> Lease | None:
        """The Lease as it is now; None if it does not exist."""
        response = await self.session.request("GET", self._path, timeout_s=timeout_s, essential=self.essential)
        return None if response.status == HTTPStatus.NOT_FOUND else _lease(response)

    async def create(self, spec: LeaseSpec, *, timeout_s: float) -> Lease:
        """Create the Lease; 409 if it exists already."""
        body = {
            "apiVersion": API_VERSION,
            "kind": "Lease",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": {LABEL: VALUE},
                **self._annotated,
            },
            "spec": spec,
        }
        return await self._write("POST", self._folder, body, content_type=JSON, timeout_s=timeout_s)

    async def update(self, spec: LeaseSpec, *, version: str, timeout_s: float) -> Lease:
        """Change the Lease; 409 if it has changed since `version`, 404 if it is gone."""
        body = {"metadata": {"resourceVersion": version, **self._annotated}, "spec": spec}
        return await self._write("PATCH", self._path, body, content_type=MERGE_PATCH, timeout_s=timeout_s)

    @property
    def _annotated(self) -> Mapping[str, object]:
        return {"annotations": self.annotations} if self.annotations else {}

    @property
    def _folder(self) -> str:
        return f"/apis/{API_VERSION}/namespaces/{quote(self.namespace, safe='')}/leases"

    @property
    def _path(self) -> str:
        return f"{self._folder}/{quote(self.name, safe='')}"

    async def _write(
        self, method: str, path: str, body: Mapping[str, object], *, content_type: str, timeout_s: float
    ) -> Lease:
        encoded = msgspec.json.encode(body)
        return _lease(
            await self.session.request(method, path, body=encoded, content_type=content_type, timeout_s=timeout_s)
        )


def _lease(response: Response) -> Lease:
    with readable("A Lease"):
        lease = _OBJECT.decode(response.checked().body)
    return Lease(lease.metadata.resource_version, lease.spec or LeaseSpec())
