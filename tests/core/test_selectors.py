from __future__ import annotations

import pytest

from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.selectors import matches
from gangsched.core.objects.shape import NodeTerm, Requirement
from tests.builders import node, shape
from tests.verdicts import refusal

LABELS = {"zone": "a", "gen": "7", "empty": "", "big": "9223372036854775807", "word": "seven"}


def need(key, operator, *values):
    return Requirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        pytest.param(need("empty", "In", ""), True, id="In with an empty value"),
        pytest.param(need("zone", "In"), False, id="In without values is malformed"),
        pytest.param(need("zone", "NotIn"), False, id="NotIn without values is malformed"),
        pytest.param(need("zone", "NotIn", "not a label value"), False, id="NotIn an impossible value is malformed"),
        pytest.param(need("zone", "NotIn", "x" * 64), False, id="NotIn a value too long is malformed"),
        pytest.param(need("zone", "NotIn", "x" * 63), True, id="NotIn the longest value"),
        pytest.param(need("empty", "Exists"), True, id="Exists with an empty value"),
        pytest.param(need("zone", "Exists", "a"), False, id="Exists with a value is malformed"),
        pytest.param(need("empty", "DoesNotExist"), False, id="DoesNotExist with an empty value"),
        pytest.param(need("none", "DoesNotExist", "a"), False, id="DoesNotExist with a value is malformed"),
        pytest.param(need("gen", "Gt", "006"), True, id="Gt reads leading zeros"),
        pytest.param(need("word", "Lt", "1"), False, id="Lt of a label that is no integer"),
        pytest.param(need("empty", "Lt", "1"), False, id="Lt of an empty label"),
        pytest.param(need("gen", "Gt", "six"), False, id="Gt with a value that is no integer"),
        pytest.param(need("gen", "Gt", "1.5"), False, id="Gt with a fraction"),
        pytest.param(need("gen", "Gt", "1_0"), False, id="Gt with an underscore"),
        pytest.param(need("gen", "Lt", "0x10"), False, id="Lt with a hexadecimal number"),
        pytest.param(need("gen", "Gt", "-1"), False, id="Gt with a sign is malformed: no label can have it"),
        pytest.param(need("gen", "Gt"), False, id="Gt without a value"),
        pytest.param(need("gen", "Gt", "1", "2"), False, id="Gt with two values"),
        pytest.param(need("big", "Gt", "9223372036854775806"), True, id="Gt up to 64 bits"),
        pytest.param(need("gen", "Lt", "9223372036854775808"), False, id="Lt with a value beyond 64 bits"),
        pytest.param(need("zone", "Equals", "a"), False, id="unknown operator"),
        pytest.param(need("none", "", "a"), False, id="no operator"),
    ],
)
def test_a_requirement_holds_as_kubernetes_says(requirement, holds):
    """What tests/naive.py does not judge in tests/properties: malformed requirements and unusual values."""
    assert matches([requirement], LABELS) is holds


@pytest.mark.parametrize("value", ["9223372036854775808", "-9223372036854775809", "1 ", "\u0667"])
def test_a_label_that_is_no_64_bit_integer_is_neither_greater_nor_less(value):
    assert not matches([need("gen", "Gt", "0")], {"gen": value})
    assert not matches([need("gen", "Lt", "10")], {"gen": value})


@pytest.mark.parametrize(("value", "less"), [("+3", True), ("-3", True), ("-9223372036854775808", True), ("+5", False)])
def test_a_sign_in_a_label_is_read(value, less):
    assert matches([need("gen", "Lt", "4")], {"gen": value}) is less


def test_no_requirement_matches_everything():
    assert matches([], LABELS)
    assert matches([], {})


def test_requirements_are_anded():
    assert matches([need("zone", "In", "a"), need("gen", "Exists")], LABELS)
    assert not matches([need("zone", "In", "a"), need("none", "Exists")], LABELS)


HERE = NodeTerm(expressions=(need("zone", "In", "a"),))
ELSEWHERE = NodeTerm(expressions=(need("zone", "In", "b"),))
EMPTY = NodeTerm()
MALFORMED = NodeTerm(expressions=(need("zone", "Near", "a"),))


def named(operator, *values, key="metadata.name"):
    return NodeTerm(fields=(need(key, operator, *values),))


@pytest.mark.parametrize(
    ("selector", "terms", "matched"),
    [
        pytest.param((("none", ""),), None, False, id="nodeSelector for an empty value needs the key"),
        pytest.param((("empty", ""),), None, True, id="nodeSelector for an empty value"),
        pytest.param((), (), False, id="an empty term list matches nothing"),
        pytest.param((), (EMPTY,), False, id="an empty term matches nothing"),
        pytest.param((), (EMPTY, HERE), True, id="beside an empty term another can match"),
        pytest.param((), (MALFORMED,), False, id="a malformed term matches nothing"),
        pytest.param((), (MALFORMED, HERE), True, id="beside a malformed term another can match"),
        pytest.param((), (named("In", "n1"),), True, id="the node by name"),
        pytest.param((), (named("In", "n2"),), False, id="another node by name"),
        pytest.param((), (named("NotIn", "n2"),), True, id="not another node"),
        pytest.param((), (named("NotIn", "n1"),), False, id="not this node"),
        pytest.param((), (named("In", "n1", "n2"),), False, id="two names are malformed"),
        pytest.param((), (named("NotIn", "n2", "n3"),), False, id="not two names is malformed"),
        pytest.param((), (named("In"),), False, id="no name is malformed"),
        pytest.param((), (named("Exists", "n1"),), False, id="fields know In and NotIn only"),
        pytest.param((), (named("NotIn", "n2", key="metadata.namespace"),), False, id="no field but the name"),
        pytest.param(
            (),
            (NodeTerm(expressions=HERE.expressions, fields=named("In", "n2").fields),),
            False,
            id="expressions and fields are ANDed",
        ),
        pytest.param(
            (), (NodeTerm(expressions=HERE.expressions, fields=named("In", "n1").fields),), True, id="and both match"
        ),
    ],
)
def test_a_node_matches_as_kubernetes_says(selector, terms, matched):
    found = refusal(shape(node_selector=dict(selector), node_affinity=terms), node("n1", labels=LABELS))
    assert found == (None if matched else NodeReason.AFFINITY)
