"""The messages of `gangsched run` about its options, on the real API server."""

from __future__ import annotations

import pytest

from testbed.control_plane import ControlPlane
from testbed.operator import Operator

ABSENT = "the only namespace whose pods are scheduled does not exist: create it, or correct --namespace"


@pytest.mark.parametrize(("namespace", "warned"), [("nosuch", True), ("default", False)])
def test_a_namespace_that_does_not_exist_is_warned_of(with_crd: ControlPlane, namespace: str, *, warned: bool) -> None:
    with Operator(with_crd, "--dry-run", "--namespace", namespace) as operator:
        assert (f"{ABSENT} namespace={namespace}" in operator.log) is warned
