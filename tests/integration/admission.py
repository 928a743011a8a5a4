"""Makes the API server refuse bindings or evictions, by a ValidatingAdmissionPolicy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from testbed.api import ApiError, Json, unless_gone
from tests.integration.cluster import Cluster

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_SAID = "this pod may not"


class _Policy(ABC):
    """A switch for one namespace that refuses to create a subresource of pods."""

    subresource: ClassVar[str]

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._name = f"no-{self.subresource}-{cluster.namespace}"

    def _refuse(self, condition: str, *, pod: str, node: str = "none", reason: str = "Invalid") -> None:
        """Refuse what matches the condition, with this reason; returns once it is in force."""
        namespace = {"matchLabels": {"kubernetes.io/metadata.name": self._cluster.namespace}}
        created = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
        self._cluster.api.post(
            _POLICIES,
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": self._name},
                "spec": {
                    "failurePolicy": "Fail",
                    "matchConstraints": {
                        "namespaceSelector": namespace,
                        "resourceRules": [created | {"resources": [f"pods/{self.subresource}"]}],
                    },
                    "validations": [{"expression": f"!({condition})", "message": _SAID, "reason": reason}],
                },
            },
        )
        self._cluster.api.post(
            _BINDINGS,
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": self._name},
                "spec": {"policyName": self._name, "validationActions": ["Deny"]},
            },
        )
        self._cluster.until(lambda: self._refuses(pod, node), what="the policy is in force")

    def allow(self) -> None:
        """Stop refusing."""
        for path in (_BINDINGS, _POLICIES):
            with unless_gone():
                self._cluster.api.delete(f"{path}/{self._name}")

    def _refuses(self, pod: str, node: str) -> bool:
        """Whether the policy refuses it for this pod, rather than the API server for another reason."""
        path = f"/api/v1/namespaces/{self._cluster.namespace}/pods/{pod}/{self.subresource}"
        try:
            self._cluster.api.post(path, self._probe(pod, node))
        except ApiError as error:
            return _SAID in str(error)
        return False

    @abstractmethod
    def _probe(self, pod: str, node: str) -> Json:
        """A request without consequences."""


class BindingPolicy(_Policy):
    """Called with a prefix, it refuses bindings of pods whose name begins with it.

    `where` takes any other CEL condition on the Binding `object`.
    """

    subresource = "binding"

    def __call__(self, prefix: str) -> None:
        """Start refusing; returns once the policy is in force."""
        self.where(f"object.metadata.name.startsWith('{prefix}')", pod=f"{prefix}probe")

    def where(self, condition: str, *, pod: str = "probe", node: str = "none") -> None:
        """Refuse bindings that match the condition, such as one of `pod` to `node`; returns once it is in force."""
        self._refuse(condition, pod=pod, node=node)

    def _probe(self, pod: str, node: str) -> Json:
        return {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}


class EvictionPolicy(_Policy):
    """Called with the name of a pod, which must exist, it refuses the evictions of all pods, with this reason."""

    subresource = "eviction"

    def __call__(self, pod: str, reason: str) -> None:
        """Start refusing; returns once the policy is in force."""
        self._refuse("true", pod=pod, reason=reason)

    def _probe(self, pod: str, node: str) -> Json:  # noqa: ARG002 - nodes are asked for by bindings
        return {"metadata": {"name": pod}, "deleteOptions": {"dryRun": ["All"]}}
