"""The features that a pod needs its node to declare, as kube-scheduler infers them from the pod's spec.

Source: `InferForScheduling` of each feature in k8s.io/component-helpers/nodedeclaredfeatures at v0.36.3. Features that
are missing here concern updates of bound pods, or no pod. One that Kubernetes adds is one function and one line.
"""

from __future__ import annotations

from gangsched.kube import wire


def needed_features(spec: wire.PodSpec) -> tuple[str, ...]:
    """Their names, sorted."""
    return tuple([name for name, needs in _FEATURES if needs(spec)])


def _restarts_all(spec: wire.PodSpec) -> bool:
    # Written out, because every pod comes by here and nearly none has such rules.
    for containers in (spec.containers, spec.init_containers):
        for container in containers or ():
            for rule in container.restart_policy_rules or ():
                if rule.action == "RestartAllContainers":
                    return True
    return False


def _has_users_of_its_own_on_the_network_of_the_host(spec: wire.PodSpec) -> bool:
    return bool(spec.host_network) and spec.host_users is False


_FEATURES = (
    ("RestartAllContainersOnContainerExits", _restarts_all),
    ("UserNamespacesHostNetworkSupport", _has_users_of_its_own_on_the_network_of_the_host),
)
