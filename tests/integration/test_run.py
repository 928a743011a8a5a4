"""The messages of `gangsched run` about its options, on the real API server."""

from __future__ import annotations

from testbed.control_plane import ControlPlane
from testbed.operator import Operator

ABSENT = "the only namespace whose pods are scheduled does not exist: create it, or correct --namespace"


def test_a_namespace_that_does_not_exist_is_warned_of(with_crd: ControlPlane) -> None:
    with Operator(with_crd, "--dry-run", "--namespace", "nosuch") as operator:
        assert f"{ABSENT} namespace=nosuch" in operator.log
