"""What a group asks for and what is held for it, by the contract's words: from its PodGroup, else from its pods.

A PodGroup that gangsched has made for a Spark application is not read while the application's driver lives: what the
driver says counts. After that it says how many there are to be, and its templates hold nothing any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.faults.objects import (
    MINIMUM_ANNOTATION,
    SPARK_ROLE_LABEL,
    Json,
    condition,
    degraded,
    live,
    phase_of,
    role_of,
    uid_of,
)
from tests.promises import Terms

EXECUTORS_ANNOTATION = "spark-executor-count"
_MADE_LABEL = ("gangsched.io/created-by", "gangsched")


@dataclass(frozen=True, kw_only=True)
class Demand(Terms):
    """A group's terms, its roles' maxima, and what members to come request, by role."""

    most: Mapping[str, int] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def to_come(self, there: Iterable[Json]) -> Counter[str]:
        """How many members of each role with a template are missing beside those that exist.

        Where one role alone has a template, what minMember asks for beyond the roles' minima is its too.
        """
        have = Counter(map(role_of, there))
        lacks = Counter({role: max(0, self.roles.get(role, 0) - have[role]) for role in self.templates})
        if len(self.templates) == 1:
            (role,) = self.templates
            lacks[role] += max(0, self.minimum - have.total() - lacks[role])
        return +lacks

    def at_most(self, members: int) -> Demand:
        """The same demand of no more members than there can be."""
        roles = {role: min(number, members) for role, number in self.roles.items()}
        return replace(self, minimum=min(self.minimum, members), roles=roles)


def owed_by(jobs: Mapping[str, Json], pods: Sequence[Json], done: int) -> int | None:
    """How many members the Job of all live ones could have bound in a run in which so many are done; None without one.

    What succeeded before the run is not made again. A Job counts a success later than its pod shows it, and goes on
    counting one whose pod is gone.
    """
    makers = {_maker(pod) for pod in pods if live(pod)}
    job = jobs.get(next(iter(makers))) if len(makers) == 1 else None
    if job is None:
        return None
    maker = uid_of(job)
    seen = sum(phase_of(pod) == "Succeeded" and _maker(pod) == maker for pod in pods)
    counted = int(job.get("status", {}).get("succeeded", 0))
    return max(1, int(job["spec"]["completions"]) - max(seen, counted) + done)


def _maker(pod: Json) -> str:
    owners = pod["metadata"].get("ownerReferences", [])
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def demand_of(group: Json | None, pods: Sequence[Json]) -> Demand | None:
    """What is asked for by the PodGroup, or by these pods of the group; None where nobody says it, or they differ."""
    driver = next((pod for pod in pods if live(pod) and _drives(pod)), None)
    if driver is not None and (group is None or made(group)):
        said = driver["metadata"]["annotations"]
        executors = int(said[EXECUTORS_ANNOTATION])
        requests = {"cpu": said["spark-executor-cpu"], "memory": said["spark-executor-mem"]}
        return Demand(
            minimum=1 + executors,
            roles={"driver": 1} | ({"executor": executors} if executors else {}),
            most={"driver": 1, "executor": executors},
            templates={"executor": requests} if executors else {},
        )
    if group is not None:
        roles = group["spec"].get("roles", [])
        minima = {role["name"]: role["minMember"] for role in roles if role.get("minMember", 0)}
        templates = {role["name"]: role["template"].get("requests", {}) for role in roles if "template" in role}
        return Demand(
            minimum=max(int(group["spec"]["minMember"]), sum(minima.values())),
            roles=minima,
            most={role["name"]: role["maxMember"] for role in roles if "maxMember" in role},
            templates={} if made(group) else templates,
        )
    said = {pod["metadata"].get("annotations", {}).get(MINIMUM_ANNOTATION) for pod in pods if live(pod)}
    return Demand(int(next(iter(said))), {}) if len(said) == 1 and None not in said else None


def made(group: Json) -> bool:
    """Whether gangsched has made the PodGroup, to remember places in."""
    label, value = _MADE_LABEL
    return bool(group["metadata"].get("labels", {}).get(label) == value)


def templated(group: Json | None) -> bool:
    """Whether the PodGroup says what members to come will ask for."""
    return group is not None and any("template" in role for role in group["spec"].get("roles", []))


def reserved(group: Json | None, bound: Iterable[Json]) -> Counter[str]:
    """How many places the status holds for each role, without those of pods that are bound by now."""
    there = {pod["metadata"]["name"] for pod in bound}
    found: Counter[str] = Counter()
    for place in _placements(group):
        found[place.get("role", "")] += place["count"] - len(there.intersection(place.get("pods", [])))
    return found


def vacant(group: Json | None) -> int:
    """How many places the status holds for members that do not exist."""
    return sum(place["count"] - len(place.get("pods", [])) for place in _placements(group))


def ran_out(group: Json | None) -> bool:
    """Whether the PodGroup shows that members did not come in time, so that those bound are left alone (rule 11)."""
    if group is None or not templated(group) or group.get("status", {}).get("scheduledTime"):
        return False
    late = degraded(group) == "MembersMissing" and condition(group, "Scheduled").get("reason") == "MembersMissing"
    return late or (phase_of(group) == "Failed" and group["spec"].get("timeoutPolicy") == "Fail")


def _placements(group: Json | None) -> Sequence[Json]:
    status = group.get("status", {}) if group is not None else {}
    found: Sequence[Json] = (status.get("reservation") or {}).get("placements", [])
    return found


def _drives(pod: Json) -> bool:
    return bool(pod["metadata"].get("labels", {}).get(SPARK_ROLE_LABEL) == "driver")
