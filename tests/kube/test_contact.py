"""The conclusions from the API server's answers; the test sets the clock."""

from __future__ import annotations

import logging

import pytest

from gangsched.kube.client.contact import Contact, Problem, right_of
from gangsched.kube.client.errors import ApiError

PODS = "/api/v1/pods"
BINDING = "/api/v1/namespaces/n/pods/p/binding"
OWN = "/apis/gangsched.io/v1alpha1"
EVICTION = "/api/v1/namespaces/n/pods/p/eviction"
SAYS = {
    401: "Unauthorized",
    403: 'pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope',
}
ADMISSION = ApiError(403, "Forbidden", 'pods "p" is forbidden: exceeded quota: small')


def error(status: int) -> ApiError:
    return ApiError(status, "", SAYS.get(status, "it failed"))


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.failed: list[tuple[str, str, str]] = []
        self.contact = Contact("https://api", monotonic=lambda: self.now)
        self.contact.observer = self

    def api_failed(self, problem: str, verb: str, resource: str) -> None:
        self.failed.append((problem, verb, resource))

    def say(self, what: int | ApiError | str | None, path: str = PODS, method: str = "GET") -> None:
        """Report the result of one request: a status, an error, a text if there was no answer, None for success."""
        match what:
            case "no credentials":
                self.contact.without_credentials(method, path, "the plug-in failed")
            case str():
                self.contact.unanswered(method, path, what)
            case int():
                self.contact.answered(method, path, error(what))
            case _:
                self.contact.answered(method, path, what)

    def keep_saying(
        self, what: int | ApiError | str | None, seconds: float, path: str = PODS, method: str = "GET"
    ) -> None:
        """Report every five seconds, as reflectors do; the last time at the end."""
        end = self.now + seconds
        while self.now < end:
            self.say(what, path, method)
            self.now = min(self.now + 5.0, end)
        self.say(what, path, method)

    @property
    def lasting(self) -> dict[str, float]:
        return {problem.value: lasts for problem in Problem if (lasts := self.contact.lasts_s(problem))}


@pytest.mark.parametrize(
    ("method", "path", "watch", "right"),
    [
        ("GET", "/api/v1/pods", False, "list pods"),
        ("GET", "/api/v1/pods", True, "watch pods"),
        ("GET", "/api/v1/namespaces", False, "list namespaces"),
        ("GET", "/api/v1/namespaces/n", False, "get namespaces"),
        ("GET", "/api/v1/namespaces/n/pods", False, "list pods"),
        ("GET", "/api/v1/namespaces/n/pods/p", False, "get pods"),
        ("GET", "/api/v1/namespaces/namespaces/pods/pods", False, "get pods"),
        ("POST", BINDING, False, "create pods/binding"),
        ("POST", EVICTION, False, "create pods/eviction"),
        ("PATCH", "/api/v1/namespaces/n/pods/p/status", False, "patch pods/status"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/n/events", False, "create events.events.k8s.io"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", False, "update leases.coordination.k8s.io"),
        ("PATCH", f"{OWN}/namespaces/n/podgroups/g/status", False, "patch podgroups/status.gangsched.io"),
        ("DELETE", f"{OWN}/namespaces/n/demands/d", False, "delete demands.gangsched.io"),
        ("GET", "/apis/scheduling.volcano.sh/v1beta1", False, "get /apis/scheduling.volcano.sh/v1beta1"),
        ("GET", "/version", False, "get /version"),
        ("GET", "/apis", False, "get /apis"),
        ("GET", "/", False, "get /"),
    ],
)
def test_a_request_needs_a_right(method: str, path: str, right: str, *, watch: bool) -> None:
    assert str(right_of(method, path, watch=watch)) == right


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, None),
        (401, "Credentials"),
        (403, "Denied"),
        (ADMISSION, None),
        (404, None),
        (409, None),
        (410, None),
        (422, None),
        (429, "Failing"),
        (500, "Failing"),
        (504, "Failing"),
        ("connection refused", "Unreachable"),
        ("no credentials", "Credentials"),
    ],
    ids=str,
)
def test_what_lasts_five_seconds_is_a_problem(answer: int | ApiError | str | None, problem: str | None) -> None:
    world = World()
    world.keep_saying(answer, 4.9)
    assert (world.lasting, world.contact.problems()) == ({}, [])
    world.keep_saying(answer, 0.2)
    assert world.lasting == ({problem: pytest.approx(5.1)} if problem else {})
    assert len(world.contact.problems()) == len(world.lasting)
    assert {found for found, *_ in world.failed} == ({problem} if problem else set())
    world.say(None)
    assert (world.lasting, world.contact.problems()) == ({}, [])


@pytest.mark.parametrize(
    ("before", "then", "left"),
    [
        ("lost", 500, ["Failing"]),
        ("lost", 401, ["Credentials"]),
        ("lost", 403, ["Denied"]),
        ("lost", ADMISSION, []),
        ("no credentials", 403, ["Denied"]),
        (401, 500, ["Failing"]),
        (401, "lost", ["Credentials", "Unreachable"]),
        (403, 500, ["Denied", "Failing"]),
        (500, 403, ["Denied"]),
        (403, 401, ["Credentials", "Denied"]),
        (403, ADMISSION, []),
        (403, 404, []),
        (500, 409, []),
    ],
    ids=str,
)
def test_what_an_answer_ends(before: int | str, then: int | ApiError | str, left: list[str]) -> None:
    world = World()
    world.keep_saying(before, 6.0)
    world.keep_saying(then, 6.0)
    assert sorted(world.lasting) == left


def test_one_right_is_not_another() -> None:
    world = World()
    world.keep_saying(403, 6.0, BINDING, "POST")
    world.say(None, PODS)
    assert "Denied" in world.lasting
    world.say(None, BINDING, "POST")
    assert world.lasting == {}


@pytest.mark.parametrize("answer", [403, 401, "no credentials"])
def test_only_after_a_minute_without_a_success_a_right_is_called_missing_and_credentials_wrong(
    answer: int | str, caplog: pytest.LogCaptureFixture
) -> None:
    """A restarted API server denies every request for some seconds."""
    world = World()
    world.keep_saying(answer, 30.0)
    world.say(None)
    world.keep_saying(answer, 55.0)
    assert "keeps retrying" in world.contact.problems()[0]
    assert caplog.records == []
    world.keep_saying(answer, 6.0)
    [told] = world.contact.problems()
    if answer == 403:
        assert told.startswith("gangsched may not list pods (pods is forbidden: ")
        assert told.endswith(
            'give its account a role with the verb list on pods of the API group "" (core), as the chart does.'
        )
    else:
        assert told.startswith("The API server https://api has accepted no credentials of gangsched for 61 s")
        assert "may not" not in told
        assert "right" not in told
        assert "role" not in told
    assert len(caplog.records) == 1


def test_an_account_that_the_server_does_not_see_needs_a_certificate_and_no_role() -> None:
    world = World()
    unseen = (
        'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope'
    )
    world.keep_saying(ApiError(403, "Forbidden", unseen), 61.0)
    [sentence] = world.contact.problems()
    assert "has seen no credentials of gangsched for 61 s" in sentence
    assert "check that the client certificate of its kubeconfig has not expired" in sentence
    assert "role" not in sentence


def test_a_path_that_is_no_resource_is_granted_as_a_path() -> None:
    world = World()
    world.keep_saying(403, 61.0, "/apis/scheduling.volcano.sh/v1beta1")
    [told] = world.contact.problems()
    assert told.endswith("give its account a role with the verb get on the path /apis/scheduling.volcano.sh/v1beta1.")


@pytest.mark.parametrize(
    ("answer", "for_s", "asked_s", "told"),
    [
        *((answer, 2, 120, "") for answer in (403, 500, 401, "lost")),
        (500, 4, 1, ""),
        (500, 7, 1, "has failed to create pods/binding for 7 s"),
        (500, 7, 70, ""),
        (500, 100, 50, "for 100 s"),
        (403, 0, 70, ""),
        (403, 6, 1, "has denied create pods/binding for 6 s"),
        (403, 6, 70, ""),
        (403, 70, 100, "give its account a role with the verb create on pods/binding"),
        (403, 70, 299, "may not create pods/binding"),
        (403, 70, 300, ""),
        (None, 70, 1, ""),
    ],
)
def test_a_problem_lasts_from_its_first_answer_to_its_last_and_is_told_no_more_when_nobody_asks(
    answer: int | str | None, for_s: float, asked_s: float, told: str
) -> None:
    """For example a replica that met the problem as leader and is now a standby, which binds nothing."""
    world = World()
    world.keep_saying(answer, for_s, BINDING, "POST")
    world.now += asked_s
    said = " ".join(world.contact.problems())
    assert told in said
    assert bool(told) is bool(said) is bool(world.lasting)
    for _ in range(2):
        world.say(403, BINDING, "POST")
        world.now += 5.0
    if asked_s >= 300:
        assert "for 5 s" in world.contact.problems()[0], "what was forgotten begins anew"
    world.say(None, BINDING, "POST")
    assert world.contact.problems() == []


@pytest.mark.parametrize(("status", "lasting"), [(429, set()), (500, set()), (403, {"Denied"})])
def test_how_disruption_budgets_refuse_is_no_failure_of_the_server(status: int, lasting: set[str]) -> None:
    world = World()
    world.keep_saying(status, 61.0, EVICTION, "POST")
    assert set(world.lasting) == lasting


@pytest.mark.parametrize(("answer", "patience_s"), [("lost", 5.0), (500, 5.0), (403, 60.0), (401, 60.0)])
def test_the_log_tells_the_beginning_and_the_end_once(
    answer: int | str, patience_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gangsched")
    world = World()
    world.keep_saying(answer, patience_s - 1.0)
    world.say(None)
    assert caplog.records == []
    world.keep_saying(answer, patience_s + 200.0)
    world.say(None)
    world.say(None)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", "requests to the API server are failing"),
        ("INFO", "requests to the API server succeed again"),
    ]
    assert vars(caplog.records[1])["lasted_s"] == f"{patience_s + 200:.0f}"


def test_what_the_server_says_is_fit_for_a_log_line() -> None:
    world = World()
    world.keep_saying(ApiError(500, "", "a\nb\x1b[31m"), 6.0)
    assert "a\\nb\\x1b[31m" in world.contact.problems()[0]
