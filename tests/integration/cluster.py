"""Test helpers for one namespace of the real API server: create gangs, read them, wait for conditions."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from testbed.api import Api, ApiError
from testbed.control_plane import ControlPlane
from testbed.workloads import member, pod_group, pod_template
from tests.integration.waiting import WITHIN_S, until

Json = dict[str, Any]


class Cluster:
    """A namespace and the nodes of its cluster."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self.api = control_plane.api
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._groups = f"/apis/gangsched.io/v1alpha1/namespaces/{namespace}/podgroups"

    @classmethod
    def fresh(cls, control_plane: ControlPlane) -> Cluster:
        """A new namespace, and no nodes; what is in it stays."""
        control_plane.delete_nodes()
        found = cls(control_plane, f"test-{secrets.token_hex(4)}")
        control_plane.kubectl("create", "namespace", found.namespace)
        found.until(lambda: found.api.get(f"/api/v1/namespaces/{found.namespace}/serviceaccounts/default"))
        return found

    def add_node(self, name: str, **fields: Any) -> None:
        self.control_plane.add_node(name, **fields)

    def add_group(self, name: str, *, min_member: int, **spec: object) -> None:
        self.api.post(self._groups, pod_group(name, min_member=min_member, **spec))

    def add_gang(self, name: str, size: int) -> None:
        """A group that needs all of its so many pods, and these."""
        self.add_group(name, min_member=size)
        self.add_pods(name, size)

    def add_pods(self, group: str, count: int, *, first: int = 0, **fields: Any) -> None:
        for number in range(first, first + count):
            self.add_pod(f"{group}-{number}", group, **fields)

    def add_pod(self, name: str, group: str = "", **fields: Any) -> None:
        self.make_pod(member(name, group, **fields))

    def make_pod(self, pod: Json) -> Json:
        """The only way to create a pod here: waits until an earlier one of its name is gone. Returns what was stored.

        Nobody deletes the later one in its stead: see `testbed.restraint`.
        """
        name = pod["metadata"]["name"]
        until(lambda: self._is_free(name), what=f"the earlier pod {name} is gone")
        return self.api.post(self._pods, pod)

    def _is_free(self, name: str) -> bool:
        try:
            self.pod(name)
        except ApiError as error:
            return error.reason == "NotFound"
        return False

    def add_stateful_set(self, name: str, replicas: int) -> None:
        """A StatefulSet whose pods are members of the group of the same name."""
        self.api.post(
            f"/apis/apps/v1/namespaces/{self.namespace}/statefulsets",
            {
                "metadata": {"name": name},
                "spec": {
                    "replicas": replicas,
                    "serviceName": name,
                    "podManagementPolicy": "Parallel",
                    "selector": {"matchLabels": {"gangsched.io/pod-group": name}},
                    "template": pod_template(name),
                },
            },
        )

    def add_job(self, name: str, size: int, group: str = "", **spec: object) -> None:
        """A Job with so many pods, members of the group if one is named."""
        template = pod_template(group, restartPolicy="Never")
        self.api.post(
            f"/apis/batch/v1/namespaces/{self.namespace}/jobs",
            {
                "metadata": {"name": name},
                "spec": {"parallelism": size, "completions": size, "template": template, **spec},
            },
        )

    def change_spec(self, group: str, **spec: object) -> None:
        self.api.merge(f"{self._groups}/{group}", {"spec": spec})

    def delete_pod(self, name: str) -> None:
        self.api.delete(f"{self._pods}/{name}", grace_s=0)

    def delete_group(self, name: str) -> None:
        self.api.delete(f"{self._groups}/{name}")

    def pods(self, group: str = "") -> list[Json]:
        return [
            pod
            for pod in self.api.get(self._pods)["items"]
            if not group or pod["metadata"].get("labels", {}).get("gangsched.io/pod-group") == group
        ]

    def groups(self) -> list[str]:
        """The names of all PodGroups."""
        return [group["metadata"]["name"] for group in self.api.get(self._groups)["items"]]

    def pod(self, name: str) -> Json:
        return self.api.get(f"{self._pods}/{name}")

    def bound(self, group: str = "") -> Mapping[str, str]:
        """The node of each bound pod of the group, by pod name."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.pods(group) if "nodeName" in pod["spec"]
        }

    def status(self, group: str) -> Json:
        status: Json = self.api.get(f"{self._groups}/{group}").get("status", {})
        return status

    def phase(self, group: str) -> str:
        return str(self.status(group).get("phase", ""))

    def condition(self, group: str, type_: str = "Scheduled") -> Json:
        """The PodGroup's condition; empty while it has none."""
        return _condition(self.status(group), type_)

    def told(self, pod: str) -> Json:
        """The pod's PodScheduled condition; empty while it has none."""
        return _condition(self.pod(pod).get("status", {}), "PodScheduled")

    def events(self, name: str, reason: str = "") -> list[Json]:
        """Events on the object of that name."""
        found = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return [
            event
            for event in found
            if event["regarding"]["name"] == name and event["reason"] in (reason or event["reason"])
        ]

    def until(
        self, condition: Callable[[], object], *, within_s: float = WITHIN_S, what: str | Callable[[], str] = ""
    ) -> None:
        """Wait until the condition holds; it does not hold while an object is missing."""

        def described() -> str:
            return f"{what() if callable(what) else what or condition}; {self.describe()}"

        until(lambda: _holds(condition), within_s, what=described)

    def until_bound(self, group: str, count: int, *, within_s: float = WITHIN_S) -> None:
        self.until(lambda: len(self.bound(group)) == count, within_s=within_s, what=f"{count} of {group} bound")

    def until_reason(self, group: str, reason: str, *, within_s: float = WITHIN_S) -> str:
        """Wait until the group's Scheduled condition has this reason; returns its message."""
        self.until(
            lambda: self.condition(group).get("reason") == reason, within_s=within_s, what=f"{group} says {reason}"
        )
        return str(self.condition(group)["message"])

    def describe(self) -> str:
        """The namespace's content, for the message of a failed wait."""
        groups = {item["metadata"]["name"]: item.get("status") for item in self.api.get(self._groups)["items"]}
        return (
            f"pods: { {pod['metadata']['name']: pod['spec'].get('nodeName') for pod in self.pods()} } groups: {groups}"
        )


def end_terminating(api: Api, namespace: str) -> None:
    """Act as a kubelet where KWOK does not: set terminating pods to the phase Failed.

    The Job controller waits for that before it removes its finalizer and creates another pod.
    """
    for pod in api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]:
        if "deletionTimestamp" in pod["metadata"] and pod["status"]["phase"] in ("Pending", "Running"):
            path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/status"
            with contextlib.suppress(ApiError):
                api.merge(path, {"status": {"phase": "Failed"}})


def _condition(status: Json, type_: str) -> Json:
    return next((each for each in status.get("conditions", []) if each["type"] == type_), {})


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except (ApiError, KeyError):
        return False
