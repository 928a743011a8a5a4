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
        pytest.param(Toleration("gpu", "Equal", "no", "NoSchedule"), False, id="another value"),
        pytest.param(Toleration("gpu", "Equal", "Yes", "NoSchedule"), False, id="case matters"),
        pytest.param(Toleration("gpu", "Exists", "", "NoSchedule"), True, id="Exists"),
        pytest.param(Toleration("gpu", "Exists", "no", "NoSchedule"), True, id="Exists ignores the value"),
        pytest.param(Toleration("cpu", "Exists", "", "NoSchedule"), False, id="another key"),
        pytest.param(Toleration("gpu", "Exists", "", ""), True, id="no effect covers all effects"),
        pytest.param(Toleration("gpu", "Exists", "", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("", "Exists", "", ""), True, id="Exists without key covers all"),
        pytest.param(Toleration("", "Exists", "", "NoSchedule"), True, id="without key, same effect"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), False, id="without key, another effect"),
        pytest.param(Toleration("", "Equal", "yes", ""), True, id="Equal without key and the same value"),
        pytest.param(Toleration("", "Equal", "", ""), False, id="Equal without key still compares the value"),
        pytest.param(Toleration("", "", "", ""), False, id="all empty is Equal with an empty value"),
        pytest.param(Toleration("gpu", "Gt", "yes", ""), False, id="Gt never matches"),
        pytest.param(Toleration("gpu", "Like", "yes", ""), False, id="an unknown operator never matches"),
    ],
)
def test_a_toleration_covers_a_taint_as_kubernetes_says(held, tolerated):
    assert is_tolerated((held,), GPU_ONLY) is tolerated


@pytest.mark.parametrize(("operator", "value"), [("Gt", "1"), ("Lt", "9")])
def test_numeric_tolerations_never_match_while_their_gate_is_off(operator, value):
    held = Toleration("level", operator, value, "")
    assert not is_tolerated((held,), Taint(key="level", value="5", effect="NoSchedule"))


def test_an_empty_value_is_equal_to_an_empty_value():
    assert is_tolerated((Toleration("gpu", "Equal", "", ""),), Taint(key="gpu", effect="NoSchedule"))


@pytest.mark.parametrize(
    ("tolerations", "taints", "kept_out"),
    [
        pytest.param([], [], False, id="no taint"),
        pytest.param([], ["a:NoSchedule"], True, id="NoSchedule keeps out"),
        pytest.param([], ["a:NoExecute"], True, id="NoExecute keeps out"),
        pytest.param([], ["a:PreferNoSchedule"], False, id="PreferNoSchedule never keeps out"),
        pytest.param([], ["a:PreferNoSchedule", "b:NoExecute", "c:NoSchedule"], True, id="one of several"),
        pytest.param(["a"], ["a:NoSchedule", "a:NoExecute"], False, id="one toleration covers both effects"),
        pytest.param(["a:NoSchedule"], ["a:NoSchedule", "a:NoExecute"], True, id="one effect is left"),
        pytest.param(["b", "a"], ["a:NoSchedule", "b:NoSchedule"], False, id="each taint has its toleration"),
        pytest.param(["b"], ["a:NoSchedule", "b:NoSchedule"], True, id="one taint has none"),
        pytest.param([""], ["a:NoSchedule", "b=x:NoExecute"], False, id="tolerate everything"),
    ],
)
def test_a_taint_that_is_not_tolerated_keeps_the_pod_out(tolerations, taints, kept_out):
    found = refusal(shape(tolerations=tolerations), node(taints=taints))
    assert found == (NodeReason.TAINT if kept_out else None)


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
        pytest.param(shape(), node(taints=["gpu=yes:NoSchedule"]), NodeReason.TAINT, id="tainted"),
        pytest.param(shape(tolerations=["gpu"]), node(taints=["gpu=yes:NoSchedule"]), None, id="tolerated"),
        pytest.param(
            shape(), node(taints=["node.kubernetes.io/not-ready:NoExecute"]), NodeReason.TAINT, id="not ready"
        ),
        pytest.param(
            shape(node_selector={"zone": "a"}), node(labels={"zone": "b"}), NodeReason.AFFINITY, id="selector"
        ),
        pytest.param(shape(node_selector={"zone": "a"}), node(labels={"zone": "a", "x": "y"}), None, id="selected"),
        pytest.param(shape(node_affinity=[ZONE_A]), node(labels={"zone": "a"}), None, id="affinity matches"),
        pytest.param(shape(node_affinity=[ZONE_A]), node(), NodeReason.AFFINITY, id="affinity does not match"),
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
