"""The features that a pod needs its node to declare, as kube-scheduler infers them from the pod's spec.

Source: `InferForScheduling` of each feature in k8s.io/component-helpers/nodedeclaredfeatures at v0.36.3. Features that
are missing here concern updates of bound pods, or no pod. A feature that Kubernetes adds needs one function and one
line here.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.kube import wire


def needed_features(spec: wire.PodSpec) -> tuple[str, ...]:
    """The names of these features, sorted."""
    containers = spec.containers or ()
    if spec.init_containers:
        containers = [*containers, *spec.init_containers]
    # This runs for every event of a pod, and almost no pod has any of these fields.
    ruled = [container.restart_policy_rules for container in containers]
    if spec.host_users is None and not any(ruled):
        return ()
    return tuple([name for name, needs in _FEATURES if needs(spec, containers)])


def _restarts_all(_: wire.PodSpec, containers: Sequence[wire.Container]) -> bool:
    rules = (rule for container in containers for rule in container.restart_policy_rules or ())
    return any(rule.action == "RestartAllContainers" for rule in rules)


def _user_namespace_on_host_network(spec: wire.PodSpec, _: Sequence[wire.Container]) -> bool:
    return bool(spec.host_network) and spec.host_users is False


_FEATURES = (
    ("RestartAllContainersOnContainerExits", _restarts_all),
    ("UserNamespacesHostNetworkSupport", _user_namespace_on_host_network),
)
