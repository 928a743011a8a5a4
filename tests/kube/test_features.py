from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.kube import wire
from gangsched.kube.terms.features import needed_features
from tests.kube.test_convert import node, pod

RESTART_ALL = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
RESTARTS, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({"containers": [{}, RESTART_ALL]}, (RESTARTS,)),
        ({"initContainers": [RESTART_ALL]}, (RESTARTS,)),
        ({"hostNetwork": True, "hostUsers": False}, (USERS,)),
        ({"hostNetwork": True, "hostUsers": False, "containers": [RESTART_ALL]}, (RESTARTS, USERS)),
        ({}, ()),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}, {}]}]}, ()),
        ({"hostNetwork": True}, ()),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"hostUsers": False}, ()),
    ],
)
def test_a_pod_needs_the_features_that_kube_scheduler_infers(spec: dict[str, Any], features: tuple[str, ...]) -> None:
    assert needed_features(msgspec.json.decode(msgspec.json.encode(spec), type=wire.PodSpec)) == features
    assert pod(spec).shape.features == features


def test_a_node_declares_what_its_status_says() -> None:
    assert node(status={"declaredFeatures": [USERS, RESTARTS]}).features == (RESTARTS, USERS)
    assert node(status={}).features == ()
