"""Checks that the API server's own lists satisfy contract rules 1, 2, 12 and 13 once the cluster has settled.

`audit` reads nodes, pods, PodGroups and PodDisruptionBudgets as listed and returns one sentence for each violation.
It checks that

- no group is partly bound, unless it was whole before, or its PodGroup is Degraded for a reason of rule 1, or it has
  templates and reports that the other members did not come in time (rule 11), or its bound pods stayed when the
  PodGroup was deleted (rule 10) or failed because the other members did not come (rule 11);
- every PodGroup has a status with a reason, and with a phase and counts that match its pods;
- nothing waits that would fit into the free capacity: an exhaustive search (`tests.naive`), which shares no code with
  the planner, covers quorums, repairs, further members, plain pods and placeholders for members to come;
- the pods on a node fit it, as a kubelet would have insisted;
- nothing is left in flight: no phase Binding or Reserved, no reservation.

These groups do not count as stuck: one that timed out under timeoutPolicy Fail (final by rule 5); one whose PodGroup
does not exist (rule 10); one that has too few members, has a member of a role that the PodGroup lacks, or uses a
feature that this version refuses by name; and one under Restart that is short (rule 13 evicts the rest of it; it is
never filled up), and pods that wait because such pods have failed at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gangsched.api.conversion import group_from_object
from gangsched.core.objects.pod import Pod
from gangsched.kube import wire
from gangsched.kube.reading.node_values import node_value
from gangsched.kube.reading.pod_values import pod_value
from tests.faults.demands import Demand, demand_of, ran_out
from tests.faults.objects import (
    EXCUSED,
    GROUP_LABEL,
    ROLE_LABEL,
    Json,
    Key,
    allocatable_of,
    begun,
    condition,
    degraded,
    ended,
    excess,
    group_of,
    key_of,
    live,
    node_of,
    ours,
    phase_of,
    present,
    recreated,
    requests_of,
    role_of,
    uid_of,
)
from tests.naive import World, quorum_exists


@dataclass(frozen=True, kw_only=True)
class Lists:
    """A snapshot of everything that the API server lists."""

    nodes: Sequence[Json]
    pods: Sequence[Json]
    groups: Sequence[Json]
    budgets: Sequence[Json] = ()


@dataclass(frozen=True, kw_only=True)
class _View:
    """A group as its objects describe it. `demand` is None for a group without a declaration.

    `late`: the group was never whole, and its bound members may stay although others did not come in time.
    """

    key: Key
    group: Json | None
    live: Sequence[Json]
    bound: Sequence[Json]
    waiting: Sequence[Json]
    succeeded: int
    demand: Demand | None
    was_whole: bool
    late: bool

    @property
    def scheduled(self) -> bool:
        """Whether it was scheduled in this run, by its status or, without one, by what the watches showed.

        Once none of those members is bound, a new leader cannot know that the waiting members belong to the same run.
        """
        told = self.group is not None and bool(self.group.get("status", {}).get("scheduledTime"))
        return told or (self.group is None and self.was_whole and bool(self.bound))

    @property
    def satisfied(self) -> int:
        """The minimum that was last satisfied."""
        said = self.group.get("status", {}).get("minimum", 0) if self.group is not None else 0
        return int(said) or self.minimum

    @property
    def minimum(self) -> int:
        """The minimum in force; 0 if none is declared."""
        return self.demand.minimum if self.demand is not None else 0

    @property
    def roles(self) -> Mapping[str, int]:
        """The roles' minima that are not 0."""
        return self.demand.roles if self.demand is not None else {}

    @property
    def there(self) -> int:
        """Members that count towards the minimum: bound ones and, once the group was scheduled, succeeded ones."""
        return len(self.bound) + (self.succeeded if self.scheduled else 0)


def audit(
    lists: Lists,
    *,
    was_whole: Callable[[Key], bool],
    owed: Callable[[Key], int | None] = lambda _: None,
    stayed: Container[str] = (),
) -> list[str]:
    """The violations; `was_whole` says whether a group had its minimum bound in its present run.

    `owed` says how many members the Job that creates the group's pods could have bound in that run, if there is one.
    `stayed` are pods, by UID, that were bound when their PodGroup was deleted, or failed under `timeoutPolicy: Fail`.
    """
    views = list(_views(lists, was_whole, owed))
    found = [*_overfull(lists)]
    for view in views:
        found += _partial(view, stayed)
        found += _untold(view)
    return [*found, *_stuck(lists, views)]


def _views(lists: Lists, was_whole: Callable[[Key], bool], owed: Callable[[Key], int | None]) -> Iterator[_View]:
    groups = {key_of(group): group for group in lists.groups}
    members: dict[Key, list[Json]] = {key: [] for key in groups}
    for pod in lists.pods:
        key = group_of(pod)
        if key is not None and ours(pod):
            members.setdefault(key, []).append(pod)
    for key, pods in members.items():
        alive = sorted(filter(live, present(pods)), key=lambda pod: (pod["metadata"]["creationTimestamp"], key_of(pod)))
        group = groups.get(key)
        demand, most = demand_of(group, alive), owed(key)
        yield _View(
            key=key,
            group=group,
            live=alive,
            bound=[pod for pod in alive if node_of(pod)],
            waiting=[pod for pod in alive if not node_of(pod)],
            succeeded=int(group.get("status", {}).get("succeeded", 0))
            if group is not None
            else sum(phase_of(pod) == "Succeeded" for pod in pods),
            demand=demand.at_most(most) if demand is not None and most is not None else demand,
            was_whole=was_whole(key),
            late=ran_out(group),
        )


# Rule 1


def _partial(view: _View, stayed: Container[str]) -> Iterator[str]:
    if view.demand is None or view.was_whole or view.late:
        return
    if not any(begun(pod, view.group) and uid_of(pod) not in stayed for pod in view.bound):
        return
    if view.demand.met_by(Counter(map(role_of, view.bound))):
        return
    said = degraded(view.group)
    what = f"{view.key} has {len(view.bound)} of {view.minimum} bound and was never whole"
    if not said:
        if view.group is not None or any(map(recreated, view.bound)):
            yield f"{what}, and is not shown as Degraded"
    elif said not in EXCUSED:
        yield f"{what}; it is shown as Degraded for {said}, which is no exception of rule 1"


# Status


def _untold(view: _View) -> Iterator[str]:
    if view.group is None:
        return
    status = view.group.get("status", {})
    phase = status.get("phase", "")
    if not phase or not condition(view.group, "Scheduled").get("reason"):
        if view.live:
            yield f"{view.key} has {len(view.live)} members and no status that says what it is"
        return
    counts = {"members": len(view.live), "bound": len(view.bound)}
    for name, number in counts.items():
        if status.get(name, 0) != number:
            yield f"{view.key} has {number} {name}, its status says {status.get(name, 0)}"
    if status.get("reservation"):
        yield f"{view.key} holds a reservation though nothing is on its way"
    expected = _phases(view)
    if phase not in expected:
        yield (
            f"{view.key} is told to be {phase} with {len(view.live)} members, {len(view.bound)} bound, "
            f"{view.succeeded} succeeded, minimum {view.minimum}, last satisfied {view.satisfied}: expected "
            f"{' or '.join(sorted(expected))}"
        )


def _phases(view: _View) -> set[str]:
    if not view.live:
        return {"Pending", "Suspended", "Succeeded", "Failed"}
    if view.scheduled:
        roles_short = degraded(view.group) and bool(view.roles)
        return {"Degraded"} if view.there < view.satisfied or roles_short else {"Scheduled", "Running"}
    if view.late:
        return {"Degraded", "Failed"}
    if view.bound:
        # An exception of rule 1, or one that `_partial` reports.
        return {"Pending", "Queued", "TimedOut", "Degraded"}
    if len(view.live) + _to_come(view).total() < view.minimum:
        return {"Pending"}
    return {"Pending", "Queued", "TimedOut", "Failed"}


# Capacity


def _overfull(lists: Lists) -> Iterator[str]:
    for node in lists.nodes:
        name = node["metadata"]["name"]
        there = [requests_of(pod) for pod in lists.pods if node_of(pod) == name and not ended(pod)]
        if over := excess(there, allocatable_of(node)):
            yield f"node {name} carries more than it has: {over}"


# No group or pod is stuck

_POD = msgspec.json.Decoder(wire.Pod)
_NODE = msgspec.json.Decoder(wire.Node)


def _stuck(lists: Lists, views: Sequence[_View]) -> Iterator[str]:
    pods = {uid_of(pod): pod_value(_POD.decode(msgspec.json.encode(pod))) for pod in lists.pods}
    nodes = [node_value(_NODE.decode(msgspec.json.encode(node))) for node in lists.nodes]
    standing = [(pod, pod.node) for pod in pods.values() if pod.node and not pod.terminal]
    world = World(nodes={node.name: node for node in nodes}, standing=standing)
    for view in views:
        for what, members, need, role_needs in _asks(view, pods):
            if quorum_exists(world, members, need, role_needs):
                yield f"{view.key}: {what} would fit into what is free ({_said(view)})"
    for raw in lists.pods:
        alone = live(raw) and not node_of(raw) and group_of(raw) is None and not _paused(raw)
        if alone and quorum_exists(world, [pods[uid_of(raw)]], 1, {}):
            yield f"{key_of(raw)}: this pod waits and would fit into what is free"


def _said(view: _View) -> str:
    if view.group is None:
        return "it has no PodGroup"
    said = condition(view.group, "Scheduled")
    status = view.group.get("status", {})
    return f"{status.get('phase', 'no phase')}, {said.get('reason', 'no reason')}: {said.get('message', '')}"


def _asks(view: _View, pods: Mapping[str, Pod]) -> Iterator[tuple[str, Sequence[Pod], int, Mapping[str, int]]]:
    """What the group could still ask for: candidate members, how many must be bound together, and how many per role."""
    if view.demand is None or _kept_waiting(view):
        return
    waiting = [pods[uid_of(pod)] for pod in view.waiting] + _stand_ins(view)
    needs = _role_needs(view)
    missing = max(view.minimum - view.there, sum(needs.values()))
    raised = view.scheduled and view.minimum > view.satisfied
    together = not (view.scheduled or view.late) or (raised and view.there >= view.satisfied)
    if missing > 0 and together:
        roles = Counter(map(role_of, view.waiting)) + _to_come(view)
        if len(waiting) >= missing and all(roles[role] >= need for role, need in needs.items()):
            what = f"its quorum, {missing} of {len(waiting)} members that wait or are to come,"
            yield what, waiting, missing, needs
        return
    short = view.scheduled and view.there < view.satisfied
    if short and view.group is not None and view.group["spec"].get("onDegraded") == "Restart":
        return
    for pod in _within_maximum(view):
        yield f"its waiting member {pod['metadata']['name']}", [pods[uid_of(pod)]], 1, {}


def _to_come(view: _View) -> Counter[str]:
    """For a group that was never whole: members to come, by role, that need a reservation."""
    if view.demand is None or view.scheduled or not view.live:
        return Counter()
    return view.demand.to_come(view.live)


def _stand_ins(view: _View) -> list[Pod]:
    found = []
    for role, number in _to_come(view).items():
        requests = view.demand.templates[role] if view.demand is not None else {}
        for at in range(number):
            name = f"{view.key.name}-{role}-to-come-{at}"
            labels = {GROUP_LABEL: view.key.name, ROLE_LABEL: role}
            meta = {"name": name, "namespace": view.key.namespace, "uid": name, "labels": labels}
            containers = [{"name": "main", "resources": {"requests": requests}}]
            found.append(
                pod_value(_POD.decode(msgspec.json.encode({"metadata": meta, "spec": {"containers": containers}})))
            )
    return found


def _kept_waiting(view: _View) -> bool:
    """Whether the scheduler is right not to try the group."""
    if _paused(view.group) or any(map(_paused, view.waiting)):
        return True
    if view.group is None:
        return False
    if group_from_object(view.group).error:
        return True
    final = view.group["spec"].get("timeoutPolicy") == "Fail" and _failed_by_clock(view.group)
    roles = {"", *(role["name"] for role in view.group["spec"].get("roles", []))}
    return final or any(role_of(pod) not in roles for pod in view.live)


def _paused(obj: Json | None) -> bool:
    """Whether the group or pod is told to wait because such pods have failed at once."""
    told = (
        [condition(obj, type_).get("message", "") for type_ in ("Scheduled", "PodScheduled", "Degraded")] if obj else []
    )
    return any("Such pods failed at once" in message for message in told)


def _failed_by_clock(group: Json) -> bool:
    status = group.get("status", {})
    return bool(status.get("phase") == "Failed" and not status.get("scheduledTime"))


def _role_needs(view: _View) -> dict[str, int]:
    there = Counter(map(role_of, view.bound))
    return {role: need - there[role] for role, need in view.roles.items() if need > there[role]}


def _within_maximum(view: _View) -> Iterator[Json]:
    """Waiting members within the maxima; bound members count first (maxMember)."""
    most = view.group["spec"].get("maxMember") if view.group is not None else None
    role_most = view.demand.most if view.demand is not None else {}
    number, roles = len(view.bound), Counter(map(role_of, view.bound))
    for pod in view.waiting:
        role = role_of(pod)
        beyond = most is not None and number >= most
        if not beyond and roles[role] < role_most.get(role, number + len(view.live) + 1):
            number += 1
            roles[role] += 1
            yield pod
