"""How failed pods are read: what the kubelet said, and how long containers ran."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.cluster.failures import failed_at_once
from gangsched.core.objects.pod import Failure, Pod
from gangsched.kube import wire
from gangsched.kube.reading.pod_values import pod_value
from gangsched.kube.terms.pod_failures import LONGEST_SAID

AT = 1_790_000_000.0
STARTED, FINISHED, LATER = "2026-09-21T14:13:20Z", "2026-09-21T14:13:23Z", "2026-09-21T14:13:31Z"


def read(**status: Any) -> Pod:
    raw = {"metadata": {"name": "a", "uid": "u"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Failed", **status}}
    return pod_value(msgspec.json.decode(msgspec.json.encode(raw), type=wire.Pod))


def ended(name: str, code: int, finished: str | None, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "state": {"terminated": {"exitCode": code, "startedAt": STARTED, "finishedAt": finished, **more}},
    }


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        ("TopologyAffinityError", "Pod was rejected: no NUMA node", "TopologyAffinityError: no NUMA node"),
        ("OutOfnvidia.com/gpu", "", "OutOfnvidia.com/gpu"),
        ("SysctlForbidden", "Pod was rejected: forbidden sysctl", "SysctlForbidden: forbidden sysctl"),
        ("NodeAffinity", "a\nb\u202ec", r"NodeAffinity: a\nb\u202ec"),
    ],
)
def test_a_rejected_pod_quotes_the_kubelet_escaped(reason: str, message: str, said: str) -> None:
    found = read(reason=reason, message=message)
    assert (found.rejected, found.failure) == (True, Failure(said))
    assert failed_at_once(found)


def test_what_is_quoted_is_bounded() -> None:
    found = read(reason="OutOfcpu", message="Pod was rejected: " + "x" * 100_000)
    assert found.failure is not None
    assert len(found.failure.message) == LONGEST_SAID


@pytest.mark.parametrize(
    ("statuses", "failure", "at_once"),
    [
        (
            [ended("main", 1, FINISHED, reason="Error", message="a password")],
            Failure("container main: Error, exit code 1", at=AT + 3, ran_s=3.0),
            True,
        ),
        (
            [ended("side", 0, STARTED), ended("main", 137, LATER, reason="OOMKilled")],
            Failure("container main: OOMKilled, exit code 137", at=AT + 11, ran_s=11.0),
            False,
        ),
        ([ended("main", 1, None)], None, False),
        ([{"name": "main", "state": {"running": {"startedAt": STARTED}}}], None, False),
        ([], None, False),
    ],
)
def test_containers_that_ended_tell_when_and_after_how_long(statuses, failure, at_once):
    found = read(containerStatuses=statuses)
    assert (found.rejected, found.failure, failed_at_once(found)) == (False, failure, at_once)


def test_a_pod_that_was_evicted_after_hours_has_not_failed_at_once() -> None:
    evicted = [ended("main", 137, "2026-09-21T18:00:00Z", reason="Error")]
    assert not failed_at_once(read(reason="Evicted", message="The node was low on memory", containerStatuses=evicted))


def test_a_pod_that_runs_or_succeeded_has_no_failure() -> None:
    assert read(phase="Succeeded", containerStatuses=[ended("main", 0, FINISHED)]).failure is None
    assert read(phase="Running", reason="OutOfcpu").failure is None
