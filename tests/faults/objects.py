"""An independent reader of Kubernetes objects for the checks of the soak: from JSON, by the contract alone.

It shares only the parsing of a single quantity with gangsched's own decoding, so that the two cannot share a mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gangsched.core.objects.quantity import amount

Json = dict[str, Any]

OURS = "gangsched"
GROUP_LABEL = "gangsched.io/pod-group"
ROLE_LABEL = "gangsched.io/role"
SPARK_APP_LABEL = "spark-app-id"
SPARK_ROLE_LABEL = "spark-role"
MINIMUM_ANNOTATION = "gangsched.io/min-member"
ENDED = frozenset({"Succeeded", "Failed"})
EXCUSED = frozenset({"PartlyBound", "EvictionRefused"})
"""Reasons of Degraded that are exceptions of rule 1: nothing would recreate the members, their eviction is refused."""


class Key(NamedTuple):
    """A group's namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def key_of(obj: Json) -> Key:
    """An object's own namespace and name."""
    return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def group_of(pod: Json) -> Key | None:
    """The group that the pod names, by gangsched's label or as a Spark application."""
    labels = pod["metadata"].get("labels", {})
    name = labels.get(GROUP_LABEL, labels.get(SPARK_APP_LABEL))
    return None if name is None else Key(pod["metadata"]["namespace"], name)


def uid_of(obj: Json) -> str:
    """The object's UID."""
    return str(obj["metadata"]["uid"])


def role_of(pod: Json) -> str:
    """The role that the pod names; empty without one."""
    labels = pod["metadata"].get("labels", {})
    return str(labels.get(ROLE_LABEL, labels.get(SPARK_ROLE_LABEL, "")))


def node_of(pod: Json) -> str:
    """The node that the pod is bound to; empty while it is unbound."""
    return str(pod["spec"].get("nodeName", ""))


def phase_of(pod: Json) -> str:
    """The pod's phase."""
    return str(pod.get("status", {}).get("phase", "Pending"))


def ours(pod: Json) -> bool:
    """Whether gangsched is asked to schedule it."""
    return bool(pod["spec"].get("schedulerName") == OURS)


def ended(pod: Json) -> bool:
    """Whether it has ended and holds nothing on its node any more."""
    return phase_of(pod) in ENDED


def live(pod: Json) -> bool:
    """Whether it is a member (contract rule 2) that may still be bound or run."""
    gone = "deletionTimestamp" in pod["metadata"] or ended(pod)
    return ours(pod) and not gone and not pod["spec"].get("schedulingGates")


def present(pods: Iterable[Json]) -> list[Json]:
    """The pods without those of an owner that was deleted and whose name another one has now, that of younger pods."""
    found = list(pods)
    youngest: dict[tuple[str, str], tuple[str, str]] = {}
    for pod in found:
        for owner in pod["metadata"].get("ownerReferences", []):
            name, made = (owner["kind"], owner["name"]), str(pod["metadata"].get("creationTimestamp", ""))
            youngest[name] = max(youngest.get(name, ("", "")), (made, owner["uid"]))
    return [
        pod
        for pod in found
        if all(
            youngest[owner["kind"], owner["name"]][1] == owner["uid"]
            for owner in pod["metadata"].get("ownerReferences", [])
        )
    ]


def number_of_indexes(text: str) -> int:
    """How many indexes a Job's status lists, such as `1,3-5`."""
    bounds = [each.split("-") for each in text.split(",") if each]
    return sum(int(each[-1]) - int(each[0]) + 1 for each in bounds)


def recreated(pod: Json) -> bool:
    """Whether a controller replaces it with another pod."""
    return any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences", []))


def maker_of(pod: Json) -> str:
    """What makes the pod and would replace it: its group, its controller, or whoever uses its name."""
    group = group_of(pod)
    owners = [owner for owner in pod["metadata"].get("ownerReferences", []) if owner.get("controller")]
    if group is not None:
        return str(group)
    return f"{owners[0]['kind']} {owners[0]['name']}" if owners else str(key_of(pod))


def begun(pod: Json, group: Json | None) -> bool:
    """Whether the pod was bound after its PodGroup was created; earlier ones count for no quorum (ADR 7)."""
    bound = condition(pod, "PodScheduled")
    if group is None or bound.get("status") != "True" or not bound.get("lastTransitionTime"):
        return True
    return str(bound["lastTransitionTime"]) >= str(group["metadata"].get("creationTimestamp", ""))


def condition(obj: Json, type_: str) -> Json:
    """The object's condition of that type; empty without one."""
    found = obj.get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == type_), {})


def degraded(group: Json | None) -> str:
    """The reason for which the PodGroup is shown as Degraded; empty if it is not."""
    shown = condition(group, "Degraded") if group is not None else {}
    return str(shown["reason"]) if shown.get("status") == "True" else ""


def requests_of(pod: Json) -> Counter[str]:
    """The pod's resources on its node, itself (`pods`) included. The soak's pods have only ordinary containers."""
    total: Counter[str] = Counter(pods=1)
    for container in pod["spec"]["containers"]:
        for resource, quantity in container.get("resources", {}).get("requests", {}).items():
            total[resource] += amount(resource, quantity)
    return total


def allocatable_of(node: Json) -> dict[str, int]:
    """The node's allocatable resources."""
    return {name: amount(name, quantity) for name, quantity in node["status"].get("allocatable", {}).items()}


def excess(taken: Iterable[Mapping[str, int]], allocatable: Mapping[str, int]) -> str:
    """A description of the excess over the allocatable; empty if everything fits."""
    total: Counter[str] = Counter()
    for each in taken:
        total.update(each)
    over = [
        f"{name} {size} of {allocatable.get(name, 0)}"
        for name, size in sorted(total.items())
        if size > allocatable.get(name, 0)
    ]
    return ", ".join(over)
