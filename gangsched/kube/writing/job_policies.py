"""Finds out how a Job reacts when one of its pods is evicted."""

from __future__ import annotations

from collections.abc import Sequence
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
_IGNORE = "Ignore"
_ENDED_BY_SIGNAL = (137, 143)
"""Exit codes of a container that ended by SIGKILL or SIGTERM, as in an eviction."""


class _ConditionPattern(Struct, gc=False):
    type: str = ""
    status: str | None = None


class _ExitCodes(Struct, gc=False):
    operator: str = ""
    values: list[int] | None = None


class _Rule(Struct, gc=False, rename="camel"):
    action: str = ""
    on_pod_conditions: list[_ConditionPattern] | None = None
    on_exit_codes: _ExitCodes | None = None


class _Policy(Struct, gc=False):
    rules: list[_Rule] | None = None


class _JobSpec(Struct, gc=False, rename="camel"):
    suspend: bool | None = None
    managed_by: str | None = None
    pod_failure_policy: _Policy | None = None


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
        answer = await session.request("GET", path, timeout_s=_TIMEOUT_S)
    except KubeError as unanswered:
        return failed(unanswered)
    if answer.ok:
        return _seen(effect, _why_not(name, effect.uid, answer.body))
    error = answer.error()
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
    return WriteResult(Outcome.SEEN, OwnerSeen(uid=effect.uid, replaces=not why, why=why))


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
    policy = spec.pod_failure_policy
    return _why_counted(name, (policy.rules if policy is not None else None) or ())


def _why_counted(name: str, rules: Sequence[_Rule]) -> str:
    """Why an eviction would count as a failure; empty if not. The Job's controller applies the first matching rule."""
    ignoring = next((index for index, rule in enumerate(rules) if rule.action == _IGNORE and _by_condition(rule)), None)
    if ignoring is None:
        return (
            f"Job {name} has no podFailurePolicy that ignores DisruptionTarget, so an eviction would count as a failure"
            " of it: delete it and create it again with one, because a Job's policy cannot be changed"
        )
    for number, rule in enumerate(rules[:ignoring], start=1):
        if rule.action != _IGNORE and (_by_condition(rule) or _by_exit_code(rule)):
            return (
                f"rule {number} of the podFailurePolicy of Job {name} ({printable(rule.action)}) matches evicted pods"
                " before the one that ignores DisruptionTarget, so an eviction would count as a failure: delete the Job"
                " and create it again with that rule first, because its policy cannot be changed"
            )
    return ""


def _by_condition(rule: _Rule) -> bool:
    """Whether the rule matches every evicted pod, because of the condition DisruptionTarget."""
    return any(
        pattern.type == "DisruptionTarget" and pattern.status in (None, "", "True")
        for pattern in rule.on_pod_conditions or ()
    )


def _by_exit_code(rule: _Rule) -> bool:
    """Whether the rule matches a container that an eviction's signal ended."""
    if rule.on_exit_codes is None:
        return False
    values = rule.on_exit_codes.values or ()
    return any((code in values) is (rule.on_exit_codes.operator == "In") for code in _ENDED_BY_SIGNAL)


def _gone(name: str) -> str:
    return f"Job {name} no longer exists, so nothing would replace an evicted pod"
