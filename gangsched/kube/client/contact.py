"""Problems in the communication with the API server: what is wrong, for how long, and what to do about it.

Every request is recorded with its answer. No problem ends the process: requests are retried, and the problem is
reported in readiness, in metrics and in one log line.

The problems
    Unreachable: no answer arrives. Any answer ends it.
    Credentials: there are none to send, or the server does not accept them (401). Any other answer ends it.
    Denied: the account lacks a right (403). A restarted API server denies everything until it has read its roles
    (kubernetes/kubernetes#121635). A right is therefore reported as missing only after a minute without any success.
    Failing: the server answers a kind of request with an internal error (5xx, 429).

The duration of a problem counts from the first to the last of consecutive such answers. A problem with requests that
are no longer sent, for example because a leader became a standby, ends after a while.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple, Protocol

from gangsched.core.objects.wording import printable
from gangsched.kube.client.errors import ANONYMOUS, ApiError

_log = logging.getLogger(__name__)

REPORTED_AFTER_S = 5.0
"""Readiness reports a problem after this time. Shorter gaps occur at every restart of an API server."""
MISSING_AFTER_S = 60.0
"""After this time without any success a right is reported as missing, and credentials as invalid."""
PASSED_AFTER_S = 60.0
"""A problem is no longer reported if no request has met it for this time, unless credentials or a right are missing."""
FORGOTTEN_AFTER_S = 300.0
"""A problem is forgotten if no request has met it for this time."""
_CORE_PATH = 2
_GROUP_PATH = 3


class Problem(StrEnum):
    """A problem between gangsched and the API server."""

    UNREACHABLE = "Unreachable"
    CREDENTIALS = "Credentials"
    DENIED = "Denied"
    FAILING = "Failing"


class Right(NamedTuple):
    """The right that a request needs: a verb on a resource of an API group. The core group's name is empty."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}.{self.group}" if self.group else f"{self.verb} {self.resource}"

    @property
    def granted_on(self) -> str:
        """The resource as the rule of a role names it, for messages."""
        if self.resource.startswith("/"):
            return f"the path {self.resource}"
        group = self.group or '"" (core)'
        return f"{self.resource} of the API group {group}, as the chart does"


def right_of(method: str, path: str, *, watch: bool = False) -> Right:
    """The right that a request to this path needs. For a path that is no resource it names the path itself."""
    parts = path.strip("/").split("/")
    match parts[0]:
        case "api":
            group, rest = "", parts[_CORE_PATH:]
        case "apis":
            group, rest = (parts[1] if len(parts) > 1 else ""), parts[_GROUP_PATH:]
        case _:
            group, rest = "", []
    if not rest:
        return Right("get", "", path)
    if rest[0] == "namespaces" and len(rest) > _CORE_PATH:
        rest = rest[_CORE_PATH:]
    resource, named, below = rest[0], rest[1:2], rest[2:3]
    verb = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}.get(method) or (
        "watch" if watch else "get" if named else "list"
    )
    return Right(verb, group, "/".join((resource, *below)))


_EVICTION = Right("create", "", "pods/eviction")
"""Its 429 and 500 are refusals by PodDisruptionBudgets, not failures of the server."""


class Observer(Protocol):
    """Counts failed requests."""

    def api_failed(self, problem: str, verb: str, resource: str) -> None:
        """Count a failed request for this right."""


@dataclass(slots=True)
class _Incident:
    """When a problem first and last occurred, in monotonic seconds, its message, and whether it was logged."""

    since: float
    last: float
    message: str
    logged: bool = False

    @property
    def lasted_s(self) -> float:
        return self.last - self.since


_Subject = tuple[Problem, Right | None]


class Contact:
    """Records one API server's answers to all callers, and passes verb, resource and status of each to `counter`."""

    def __init__(self, server: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.observer: Observer | None = None
        self.counter: Callable[[str, str, int], None] | None = None
        self._server = server
        self._monotonic = monotonic
        self._incidents: dict[_Subject, _Incident] = {}

    def count(self, method: str, path: str, status: int, *, watch: bool = False) -> None:
        """Count a request for its verb and resource, answered with this HTTP status; 0 for no answer."""
        if self.counter is not None:
            right = right_of(method, path, watch=watch)
            self.counter(right.verb, right.resource, status)

    def unanswered(self, method: str, path: str, message: str) -> None:
        """Record a request without an answer."""
        self.count(method, path, 0)
        self._met(Problem.UNREACHABLE, None, right_of(method, path), message)

    def without_credentials(self, method: str, path: str, message: str) -> None:
        """Record a request that could not be sent because there were no credentials."""
        self._met(Problem.CREDENTIALS, None, right_of(method, path), message)

    def answered(self, method: str, path: str, error: ApiError | None, *, watch: bool = False) -> None:
        """Record the answer to a request; `error` is None for a success."""
        if error is None and not self._incidents:
            return
        self._over(Problem.UNREACHABLE, None)
        right = right_of(method, path, watch=watch)
        if error is not None and error.status == HTTPStatus.UNAUTHORIZED:
            self._met(Problem.CREDENTIALS, None, right, str(error))
            return
        self._over(Problem.CREDENTIALS, None)
        if error is not None and error.denied:
            self._over(Problem.FAILING, right)
            self._met(Problem.DENIED, right, right, error.message)
        elif error is not None and error.passing and right != _EVICTION:
            self._met(Problem.FAILING, right, right, str(error))
        else:
            self._over(Problem.DENIED, right)
            self._over(Problem.FAILING, right)

    def reached(self) -> None:
        """Record that an answer arrived, whatever its status."""
        self._over(Problem.UNREACHABLE, None)

    def problems(self) -> list[str]:
        """The problems that have lasted for some seconds, one sentence each, with the remedy."""
        return [self._sentence(subject, incident) for subject, incident in self._lasting()]

    def lasts_s(self, problem: Problem) -> float:
        """The seconds for which the problem has lasted; 0 if there is none."""
        return max((incident.lasted_s for subject, incident in self._lasting() if subject[0] is problem), default=0.0)

    def _lasting(self) -> Iterator[tuple[_Subject, _Incident]]:
        now = self._monotonic()
        for subject, incident in self._incidents.items():
            reported_s = FORGOTTEN_AFTER_S if _missing(subject[0], incident) else PASSED_AFTER_S
            if incident.lasted_s >= REPORTED_AFTER_S and now - incident.last < reported_s:
                yield subject, incident

    def _met(self, problem: Problem, about: Right | None, right: Right, message: str) -> None:
        now = self._monotonic()
        if self.observer is not None:
            self.observer.api_failed(problem.value, right.verb, right.resource)
        incident = self._incidents.get((problem, about))
        if incident is None or now - incident.last >= FORGOTTEN_AFTER_S:
            incident = self._incidents[problem, about] = _Incident(now, now, message)
        incident.last, incident.message = now, message
        patience_s = REPORTED_AFTER_S if problem in (Problem.UNREACHABLE, Problem.FAILING) else MISSING_AFTER_S
        if not incident.logged and incident.lasted_s >= patience_s:
            incident.logged = True
            sentence = self._sentence((problem, about), incident)
            _log.error("requests to the API server are failing", extra={"error": sentence})

    def _over(self, problem: Problem, about: Right | None) -> None:
        incident = self._incidents.pop((problem, about), None)
        if incident is not None and incident.logged:
            right = {"right": str(about)} if about else {}
            fields = {"problem": problem.value, "lasted_s": f"{incident.lasted_s:.0f}", **right}
            _log.info("requests to the API server succeed again", extra=fields)

    def _sentence(self, subject: _Subject, incident: _Incident) -> str:
        problem, right = subject
        lasts_s = incident.lasted_s
        text = printable(incident.message)
        match problem:
            case Problem.UNREACHABLE:
                return (
                    f"The API server {self._server} has not answered for {lasts_s:.0f} s ({text}): gangsched keeps "
                    "retrying; check that the server runs and can be reached from here."
                )
            case Problem.CREDENTIALS if _missing(problem, incident):
                return (
                    f"The API server {self._server} has accepted no credentials of gangsched for {lasts_s:.0f} s "
                    f"({text}): check that the token, certificate or plug-in of its account or kubeconfig is valid."
                )
            case Problem.CREDENTIALS:
                return (
                    f"The API server {self._server} has not accepted our credentials for {lasts_s:.0f} s ({text}): "
                    "gangsched keeps retrying."
                )
            case Problem.DENIED if ANONYMOUS in text:
                return (
                    f"The API server {self._server} has seen no credentials of gangsched for {lasts_s:.0f} s ({text}): "
                    "check that the client certificate of its kubeconfig has not expired, and that its user has one."
                )
            case Problem.DENIED if _missing(problem, incident) and right is not None:
                return (
                    f"gangsched may not {right} ({text}): give its account a role with the verb {right.verb} on "
                    f"{right.granted_on}."
                )
            case Problem.DENIED:
                return (
                    f"The API server has denied {right} for {lasts_s:.0f} s ({text}): a restarted one does so for some "
                    "seconds, and gangsched keeps retrying."
                )
            case Problem.FAILING:
                return (
                    f"The API server has failed to {right} for {lasts_s:.0f} s ({text}): gangsched keeps retrying; see "
                    "the server's log."
                )


def _missing(problem: Problem, incident: _Incident) -> bool:
    """Whether the problem has lasted so long that it needs valid credentials or a new right to end."""
    return problem in (Problem.CREDENTIALS, Problem.DENIED) and incident.lasted_s >= MISSING_AFTER_S
