"""A group's demand and reservations as the contract defines them: read from its PodGroup, else from its pods.

A PodGroup that gangsched created for a Spark application is ignored while the application's driver lives: the driver's
declaration counts. After that the PodGroup gives the number of members, and its templates no longer reserve capacity.
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
    number_of_indexes,
    phase_of,
    role_of,
    uid_of,
)
from tests.promises import Terms

EXECUTORS_ANNOTATION = "spark-executor-count"
_MADE_LABEL = ("gangsched.io/created-by", "gangsched")


@dataclass(frozen=True, kw_only=True)
class Demand(Terms):
    """A group's terms, its roles' maxima, and the requests of members to come, by role."""

    most: Mapping[str, int] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def to_come(self, there: Iterable[Json]) -> Counter[str]:
        """Number of missing members of each role that has a template.

        If only one role has a template, the part of minMember beyond the roles' minima belongs to that role too.
        """
        have = Counter(map(role_of, there))
        lacks = Counter({role: max(0, self.roles.get(role, 0) - have[role]) for role in self.templates})
        if len(self.templates) == 1:
            (role,) = self.templates
            lacks[role] += max(0, self.minimum - have.total() - lacks[role])
        return +lacks

    def at_most(self, members: int) -> Demand:
        """The same demand, limited to the number of members that can exist."""
        roles = {role: min(number, members) for role, number in self.roles.items()}
        return replace(self, minimum=min(self.minimum, members), roles=roles)


def owed_by(jobs: Mapping[str, Json], pods: Sequence[Json], done: int, *, minimum: int) -> int | None:
    """How many members the Job of all live ones could have bound in a run with `done` finished; None without a Job.

    Also None if the Job alone could never reach the minimum: such a group waits for members of other workloads. Members
    that succeeded before the run are not recreated, and neither are indexes that have failed for good. A Job counts a
    success later than its pod shows it, and keeps counting it after the pod is gone.
    """
    makers = {maker_of(pod) for pod in pods if live(pod)}
    job = jobs.get(next(iter(makers))) if len(makers) == 1 else None
    completions = int(job["spec"]["completions"]) if job is not None else 0
    if job is None or completions < minimum:
        return None
    mine = uid_of(job)
    seen = sum(phase_of(pod) == "Succeeded" and maker_of(pod) == mine for pod in pods)
    counted = int(job.get("status", {}).get("succeeded", 0))
    failed = number_of_indexes(job.get("status", {}).get("failedIndexes") or "")
    return max(1, completions - failed - max(seen, counted) + done)


def maker_of(pod: Json) -> str:
    """The UID of the pod's controller; empty without one."""
    owners = pod["metadata"].get("ownerReferences", [])
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def demand_of(group: Json | None, pods: Sequence[Json]) -> Demand | None:
    """The demand of the PodGroup, or else of these pods; None if none is declared or the pods disagree."""
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
    """Whether gangsched created the PodGroup to record reservations in."""
    label, value = _MADE_LABEL
    return bool(group["metadata"].get("labels", {}).get(label) == value)


def templated(group: Json | None) -> bool:
    """Whether the PodGroup has templates for members to come."""
    return group is not None and any("template" in role for role in group["spec"].get("roles", []))


def reserved(group: Json | None, bound: Iterable[Json]) -> Counter[str]:
    """Number of reservations in the status for each role, without those of pods that are bound by now."""
    there = {pod["metadata"]["name"] for pod in bound}
    found: Counter[str] = Counter()
    for place in _placements(group):
        found[place.get("role", "")] += place["count"] - len(there.intersection(place.get("pods", [])))
    return found


def vacant(group: Json | None) -> int:
    """Number of reservations in the status for members that do not exist."""
    return sum(place["count"] - len(place.get("pods", [])) for place in _placements(group))


def ran_out(group: Json | None) -> bool:
    """Whether the PodGroup reports that members did not come in time, so that the bound ones may stay (rule 11)."""
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
