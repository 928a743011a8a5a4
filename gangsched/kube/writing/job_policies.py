"""Finds out how a Job reacts when one of its pods is evicted."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from msgspec import Struct

from gangsched.core.objects.effects import LookUpOwner
from gangsched.core.objects.results import OwnerSeen
from gangsched.core.objects.wording import printable
from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, KubeError
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import ApiSession
from gangsched.kube.terms.failure_policies import FailurePolicy, why_counted
from gangsched.kube.writing.write_results import Outcome, WriteResult, failed

_TIMEOUT_S = 10.0
_ENDING = {
    "Complete": "is complete",
    "SuccessCriteriaMet": "is about to be complete",
    "Failed": "has failed",
    "FailureTarget": "is about to fail",
}
"""Conditions of a Job whose controller creates no more pods, with their meaning in messages."""

_CONTROLLER = "kubernetes.io/job-controller"


class _JobSpec(Struct, gc=False, rename="camel"):
    suspend: bool | None = None
    managed_by: str | None = None
    pod_failure_policy: FailurePolicy | None = None


class _JobStatus(Struct, gc=False):
    conditions: list[wire.Condition] | None = None


class _Job(Struct, gc=False):
    metadata: wire.Meta
    spec: _JobSpec | None = None
    status: _JobStatus | None = None


_JOB = msgspec.json.Decoder(_Job)


async def look_up_owner(session: ApiSession, effect: LookUpOwner) -> WriteResult:
    """Find out whether the Job with this UID replaces an evicted pod without counting a failure.

    Never raises for a failure of the server or the network. If the Job is permanently unreadable (a missing right), the
    result is no.
    """
    # The API server accepts any text as the name of an owner.
    name = printable(f"{effect.namespace}/{effect.name}", limit=320)
    path = f"/apis/batch/v1/namespaces/{quoted(effect.namespace)}/jobs/{quoted(effect.name)}"
    try:
        response = await session.request("GET", path, timeout_s=_TIMEOUT_S)
    except KubeError as unanswered:
        return failed(unanswered)
    if response.ok:
        return _seen(effect, _why_not(name, effect.uid, response.body))
    error = response.error()
    if error.status == HTTPStatus.NOT_FOUND:
        why = _gone(name)
    elif error.status == HTTPStatus.FORBIDDEN:
        why = (
            f"gangsched may not read Job {name}, so it does not know whether an eviction would count as a failure of"
            f" it: give its account the verb get on jobs of the API group batch ({error})"
        )
    elif error.passing:
        return failed(error)
    else:
        why = f"the API server does not return Job {name} ({error}), so its podFailurePolicy is unknown"
    return _seen(effect, why)


def _seen(effect: LookUpOwner, why: str) -> WriteResult:
    return WriteResult(Outcome.SEEN, OwnerSeen(uid=effect.uid, why=why))


def _why_not(name: str, uid: str, body: bytes) -> str:
    """Why the Job does not replace an evicted pod without counting a failure; empty if it does."""
    try:
        job = _JOB.decode(body)
    except UNREADABLE as error:
        return f"Job {name} cannot be read ({printable(str(error))}), so its podFailurePolicy is unknown"
    if job.metadata.uid != uid:
        return _gone(name)
    if job.metadata.deletion_timestamp is not None:
        return f"Job {name} is being deleted, so it would not replace an evicted pod"
    for condition in (job.status.conditions if job.status is not None else None) or ():
        if condition.status == "True" and condition.type in _ENDING:
            return f"Job {name} {_ENDING[condition.type]}, so it would not replace an evicted pod"
    spec = job.spec or _JobSpec()
    if spec.suspend:
        return f"Job {name} is suspended, so it would not replace an evicted pod: resume it"
    if spec.managed_by not in (None, "", _CONTROLLER):
        by = printable(spec.managed_by or "")
        return f"Job {name} is managed by {by}, so it is unknown whether an evicted pod would be replaced"
    return why_counted(name, spec.pod_failure_policy)


def _gone(name: str) -> str:
    return f"Job {name} no longer exists, so nothing would replace an evicted pod"
