"""Writes the status of PodGroups."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from gangsched.api.podgroup_names import PATH
from gangsched.api.status_conversion import status_to_object
from gangsched.core.objects.effects import PatchStatus
from gangsched.core.objects.results import StatusRefused, StatusWritten
from gangsched.kube.client.errors import UNREADABLE, ApiError
from gangsched.kube.client.paths import quoted, within
from gangsched.kube.client.session import JSON_PATCH, ApiSession, Response
from gangsched.kube.wire import Versioned
from gangsched.kube.writing.sending import conflicts, send
from gangsched.kube.writing.write_results import Outcome, WriteResult, failed

_VERSIONED = msgspec.json.Decoder(Versioned)
_TEST_FAILED = "the server rejected our request due to an error in our request"
"""An API server's message for a failed test in a JSON patch. A refused status is "invalid" or "forbidden" instead."""


async def patch_status(session: ApiSession, effect: PatchStatus) -> WriteResult:
    """Write the PodGroup's whole status if its UID matches, and its resourceVersion if the effect names one.

    A JSON patch tests the UID and writes in one step. In a merge patch of a custom resource's status the server ignores
    a UID (tried on 1.36). `GONE` also if another PodGroup has the name.
    """
    tests: list[Mapping[str, object]] = [{"op": "test", "path": "/metadata/uid", "value": effect.uid}]
    if effect.resource_version:
        # Not a test, because its failure would look like that of the UID's test.
        tests.append({"op": "replace", "path": "/metadata/resourceVersion", "value": effect.resource_version})
    patch = [*tests, {"op": "add", "path": "/status", "value": status_to_object(effect.status)["status"]}]
    path = f"{within(PATH, effect.key.namespace)}/{quoted(effect.key.name)}/status"
    answer = await send(session, "PATCH", path, patch, content_type=JSON_PATCH)
    refused = StatusRefused(effect.key, stale=False)
    if isinstance(answer, Response):
        try:
            version = _VERSIONED.decode(answer.body).metadata.resource_version
        except UNREADABLE as error:
            return WriteResult(Outcome.UNAVAILABLE, refused, message=f"the answer cannot be read: {error}")
        return WriteResult(Outcome.WRITTEN, StatusWritten(effect.key, version or "", effect.status.is_relied_on))
    if effect.resource_version and conflicts(answer):
        return WriteResult(Outcome.STALE, StatusRefused(effect.key, stale=True))
    if (
        isinstance(answer, ApiError)
        and answer.status == HTTPStatus.UNPROCESSABLE_ENTITY
        and answer.message == _TEST_FAILED
    ):
        return WriteResult(Outcome.GONE, refused)
    return failed(answer, event=refused)
