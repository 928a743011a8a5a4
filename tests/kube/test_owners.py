from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.effects import LookUpOwner
from gangsched.core.objects.results import OwnerSeen
from gangsched.kube.writing.job_policies import look_up_owner
from gangsched.kube.writing.write_results import Outcome
from gangsched.kube.writing.write_results import WriteResult as Found
from tests.kube.fake_api import Answer, FakeApi, body, serving, status

JOB_PATH = "/apis/batch/v1/namespaces/team/jobs/train"
LOOK_UP = LookUpOwner(uid="j1", namespace="team", name="train")
REPLACES = Found(Outcome.SEEN, OwnerSeen(uid="j1"))


def disruption(action: str = "Ignore", **pattern: Any) -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", **pattern}]}


def exit_codes(action: str, operator: str, *values: int) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values)}}


def job(*rules: Any, uid: str = "j1", deleted: str | None = None, status: Any = None, **spec: Any) -> Answer:
    policy = {"podFailurePolicy": {"rules": list(rules)}} if rules else {}
    return body(
        {"metadata": {"name": "train", "uid": uid, "deletionTimestamp": deleted}, "spec": spec | policy}
        | ({"status": status} if status is not None else {})
    )


def conditions(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": value} for kind, value in pairs]}


async def seen(answer: Answer) -> Found:
    api = FakeApi.answering("GET", JOB_PATH, answer)
    async with serving(api) as session:
        return await look_up_owner(session, LOOK_UP)


async def why_not(answer: Answer) -> str:
    found = (await seen(answer)).event
    assert isinstance(found, OwnerSeen)
    assert found.uid == "j1"
    return found.why


@pytest.mark.parametrize(
    "rules",
    [
        [disruption()],
        [disruption(status="True")],
        [exit_codes("FailJob", "In", 42), disruption()],
        [exit_codes("Ignore", "In", 143), disruption()],
        [exit_codes("FailJob", "NotIn", 0, 137, 143), disruption()],
        [{"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue"}]}, disruption()],
        [disruption("FailJob", status="False"), disruption()],
        [{"action": "Ignore", "onPodConditions": [{"type": "Other"}, {"type": "DisruptionTarget"}]}],
        [disruption(), disruption("FailJob")],
        [{"action": "FailJob"}, disruption()],
    ],
)
async def test_a_job_that_ignores_disruptions_replaces_what_is_evicted(rules: list[Any]) -> None:
    assert await seen(job(*rules)) == REPLACES


@pytest.mark.parametrize("status", [conditions(("Complete", "False"), ("Suspended", "False")), {}, None])
async def test_a_job_that_goes_on_replaces_what_is_evicted(status: Any) -> None:
    assert await seen(job(disruption(), suspend=False, status=status)) == REPLACES


@pytest.mark.parametrize(
    "answer",
    [
        job(),
        body({"metadata": {"uid": "j1"}}),
        job(disruption("Count")),
        job(disruption("FailJob")),
        job(disruption(status="False")),
        job({"action": "Ignore", "onPodConditions": [{"type": "Other"}]}),
        job(exit_codes("Ignore", "In", 143)),
        body({"metadata": {"uid": "j1"}, "spec": {"podFailurePolicy": {}}}),
    ],
)
async def test_a_job_without_such_a_rule_would_count_a_failure(answer: Answer) -> None:
    assert await why_not(answer) == (
        "Job team/train has no podFailurePolicy that ignores DisruptionTarget, so an eviction would count as a failure"
        " of it: delete it and create it again with one, because a Job's policy cannot be changed"
    )


@pytest.mark.parametrize(
    ("earlier", "rule"),
    [
        ([disruption("FailJob")], "rule 1 of the podFailurePolicy of Job team/train (FailJob)"),
        ([disruption(status="False"), disruption("Count")], "rule 2 of the podFailurePolicy of Job team/train (Count)"),
        ([exit_codes("FailIndex", "NotIn", 0)], "rule 1 of the podFailurePolicy of Job team/train (FailIndex)"),
        ([exit_codes("FailJob", "In", 1, 137)], "rule 1 of the podFailurePolicy of Job team/train (FailJob)"),
        ([exit_codes("FailJob", "NotIn", 137)], "rule 1 of the podFailurePolicy of Job team/train (FailJob)"),
    ],
)
async def test_an_earlier_rule_that_matches_evicted_pods_counts_first(earlier: list[Any], rule: str) -> None:
    assert await why_not(job(*earlier, disruption())) == (
        f"{rule} matches evicted pods before the one that ignores DisruptionTarget, so an eviction would count as a"
        " failure: delete the Job and create it again with that rule first, because its policy cannot be changed"
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(404), "no longer exists, so nothing would replace"),
        (job(disruption(), uid="j2"), "no longer exists, so nothing would replace"),
        (job(disruption(), deleted="2026-01-01T00:00:00Z"), "is being deleted, so it would not replace"),
        (job(disruption(), suspend=True), "is suspended, so it would not replace an evicted pod: resume it"),
        (job(disruption(), managedBy="kueue.x-k8s.io/multikueue"), "is managed by kueue.x-k8s.io/multikueue, so it is"),
        (job(disruption(), status=conditions(("Complete", "True"))), "is complete, so it would not replace"),
        (job(disruption(), status=conditions(("SuccessCriteriaMet", "True"))), "is about to be complete"),
        (job(disruption(), status=conditions(("Suspended", "False"), ("Failed", "True"))), "has failed"),
        (job(disruption(), status=conditions(("FailureTarget", "True"))), "is about to fail"),
        (body("no Job"), "cannot be read"),
        (
            status(403, "jobs is forbidden", reason="Forbidden"),
            "give its account the verb get on jobs of the API group",
        ),
        (status(400, "odd"), "400 HTTP: odd"),
    ],
)
async def test_a_job_that_would_not_make_the_pod_again_says_why(answer: Answer, why: str) -> None:
    found = await why_not(answer)
    assert "Job team/train" in found
    assert why in found


@pytest.mark.parametrize("code", [401, 408, 429, 500, 503, 504])
async def test_a_server_that_is_unavailable_leaves_it_unanswered(code: int) -> None:
    found = await seen(status(code, "later", reason="Why", headers={"Retry-After": "5"}))
    assert found == Found(Outcome.UNAVAILABLE, retry_after_s=5.0, message=f"{code} Why: later")


async def test_an_owner_of_any_name_is_asked_for_in_its_place_and_told_on_one_line() -> None:
    """The API server does not validate the names of owners."""
    api = FakeApi.answering("GET", "/apis/batch/v1/namespaces/team/jobs/..%2F..%2Fsecrets%3Fx%0Aforged", status(404))
    async with serving(api) as session:
        look_up = LookUpOwner(uid="j", namespace="team", name="../../secrets?x\nforged")
        found = (await look_up_owner(session, look_up)).event
    assert isinstance(found, OwnerSeen)
    assert found.why.startswith("Job team/../../secrets?x\\nforged no longer exists")
