from __future__ import annotations

import pytest

from gangsched.core.constraints.taint_toleration import tolerated as is_tolerated
from gangsched.core.objects.node import Taint
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import NodeTerm, Requirement, Toleration
from tests.builders import node, shape
from tests.verdicts import refusal

GPU_ONLY = Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("held", "tolerated"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes", "NoSchedule"), True, id="equal in everything"),
        pytest.param(Toleration("gpu", "", "yes", "NoSchedule"), True, id="no operator means Equal"),
        pytest.param(Toleration("gpu", "Equal", "Yes", "NoSchedule"), False, id="case matters"),
        pytest.param(Toleration("gpu", "Like", "yes", ""), False, id="an unknown operator never matches"),
    ],
)
def test_a_toleration_covers_a_taint_as_kubernetes_says(held, tolerated):
    """What tests/naive.py does not judge in tests/properties."""
    assert is_tolerated((held,), GPU_ONLY) is tolerated


@pytest.mark.parametrize(("operator", "value"), [("Gt", "1"), ("Lt", "9")])
def test_numeric_tolerations_never_match_while_their_gate_is_off(operator, value):
    held = Toleration("level", operator, value, "")
    assert not is_tolerated((held,), Taint(key="level", value="5", effect="NoSchedule"))


def test_an_empty_value_is_equal_to_an_empty_value():
    assert is_tolerated((Toleration("gpu", "Equal", "", ""),), Taint(key="gpu", effect="NoSchedule"))


ZONE_A = NodeTerm(expressions=(Requirement("zone", "In", ("a",)),))


@pytest.mark.parametrize(
    ("asked", "offered", "reason"),
    [
        pytest.param(shape(), node(), None, id="an ordinary node takes an ordinary pod"),
        pytest.param(shape(cpu="99"), node(cpu="1"), None, id="what is left on the node is no matter here"),
        pytest.param(shape(), node(unschedulable=True), NodeReason.UNSCHEDULABLE, id="cordoned"),
        pytest.param(
            shape(tolerations=["node.kubernetes.io/unschedulable:NoSchedule"]),
            node(unschedulable=True),
            None,
            id="the cordon's taint is tolerated",
        ),
        pytest.param(
            shape(tolerations=[Toleration("node.kubernetes.io/unschedulable", "Equal", "", "NoSchedule")]),
            node(unschedulable=True),
            None,
            id="the cordon's taint has an empty value",
        ),
        pytest.param(
            shape(tolerations=["node.kubernetes.io/unschedulable=x:NoSchedule"]),
            node(unschedulable=True),
            NodeReason.UNSCHEDULABLE,
            id="and another value does not tolerate it",
        ),
        pytest.param(
            shape(tolerations=["node.kubernetes.io/unschedulable:NoExecute"]),
            node(unschedulable=True),
            NodeReason.UNSCHEDULABLE,
            id="nor another effect",
        ),
        pytest.param(shape(tolerations=[""]), node(unschedulable=True), None, id="a key-less Exists passes a cordon"),
        pytest.param(
            shape(),
            node(taints=["node.kubernetes.io/unschedulable:NoSchedule"]),
            NodeReason.TAINT,
            id="the taint alone keeps out as a taint",
        ),
        pytest.param(
            shape(), node(taints=["node.kubernetes.io/not-ready:NoExecute"]), NodeReason.TAINT, id="not ready"
        ),
        pytest.param(shape(node_affinity=[]), node(), NodeReason.AFFINITY, id="affinity without terms matches nothing"),
        pytest.param(shape(features=["A", "B"]), node(features=["A", "B", "C"]), None, id="features declared"),
        pytest.param(shape(features=["A", "B"]), node(features=["A"]), NodeReason.FEATURE, id="a feature is missing"),
        pytest.param(shape(), node(features=["A"]), None, id="features that nobody needs"),
        pytest.param(
            shape(features=["A"], node_affinity=[ZONE_A]), node(), NodeReason.AFFINITY, id="affinity before features"
        ),
        pytest.param(
            shape(node_affinity=[ZONE_A]),
            node(unschedulable=True, taints=["a:NoSchedule"]),
            NodeReason.UNSCHEDULABLE,
            id="the cordon is named before all",
        ),
        pytest.param(
            shape(node_affinity=[ZONE_A]),
            node(taints=["a:NoSchedule"]),
            NodeReason.TAINT,
            id="the taint before affinity",
        ),
    ],
)
def test_the_first_reason_of_kube_scheduler_is_named(asked, offered, reason):
    assert refusal(asked, offered) == reason
