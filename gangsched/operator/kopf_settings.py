"""kopf's settings: it watches little, writes nothing, and outlasts outages of the API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf

from gangsched.api.podgroup_names import GROUP, NAME, PLURAL, VERSION

CRDS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
PODGROUPS = (GROUP, VERSION, PLURAL)
_WORKERS, _IDLE_S = 10, 0.1


class _Backoffs:
    """The endless back-offs of kopf's requests, in seconds, so that an outage of the API server does not end kopf."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0), repeat(13.0))


class NoDifferences(kopf.DiffBaseStorage):
    """Stores and compares nothing: handlers of events need no differences, and copying each object for them is dear."""

    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:  # noqa: ARG002 - the base class fixes the signature
        """Nothing of the object."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:  # noqa: ARG002
        """Nothing."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Nothing."""


def make_settings() -> kopf.OperatorSettings:
    """Make kopf a reader: standalone, without Events, scanning, differences and a finalizer of kopf's.

    A worker keeps its slot until it has been idle. So the limit of workers bounds the new objects a second, here to 100
    or a tenth of the processor time: thousands of PodGroups at once are not to slow the scheduler down.
    """
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.queueing.worker_limit = _WORKERS
    settings.queueing.idle_timeout = _IDLE_S
    settings.queueing.exit_timeout = 2.0
    settings.watching.field_selectors[CRDS] = f"metadata.name={NAME}"
    settings.watching.chunk_size = 500
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = 70
    settings.networking.request_timeout = 15
    settings.networking.enforce_retry_after = True
    settings.networking.error_backoffs = _Backoffs()
    # kopf removes its finalizer where no handler needs it. With the default name that would be another operator's.
    settings.persistence.finalizer = f"{GROUP}/none"
    settings.persistence.diffbase_storage = NoDifferences()
    # With a time limit kopf kills the whole process this long after its own end (seen with 1.45).
    settings.process.ultimate_exiting_timeout = None
    return settings
