"""Makes the API server refuse bindings, by a ValidatingAdmissionPolicy."""

from __future__ import annotations

from testbed.api import ApiError, unless_gone
from tests.integration.cluster import Cluster

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_SAID = "this pod may not be bound yet"


class BindingPolicy:
    """A switch for one namespace: called with a prefix, it refuses bindings of pods whose name begins with it.

    `where` takes any other CEL condition on the Binding `object`.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._name = f"no-binding-{cluster.namespace}"

    def __call__(self, prefix: str) -> None:
        """Start refusing; returns once the policy is in force."""
        self.where(f"object.metadata.name.startsWith('{prefix}')", pod=f"{prefix}probe")

    def where(self, condition: str, *, pod: str = "probe", node: str = "none") -> None:
        """Refuse bindings that match the condition, such as one of `pod` to `node`; returns once it is in force."""
        namespace = {"matchLabels": {"kubernetes.io/metadata.name": self._cluster.namespace}}
        bindings = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
        self._cluster.api.post(
            _POLICIES,
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": self._name},
                "spec": {
                    "failurePolicy": "Fail",
                    "matchConstraints": {"namespaceSelector": namespace, "resourceRules": [bindings]},
                    "validations": [{"expression": f"!({condition})", "message": _SAID}],
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

    def _refuses(self, name: str, node: str) -> bool:
        """Whether the policy refuses the binding of a pod that does not exist, rather than the API server's 404."""
        try:
            self._cluster.api.post(
                f"/api/v1/namespaces/{self._cluster.namespace}/pods/{name}/binding",
                {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}},
            )
        except ApiError as error:
            return _SAID in str(error)
        return False
