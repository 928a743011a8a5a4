"""Expressions on devices; test_oracle_devices.py compares each function with kube-scheduler's."""

from __future__ import annotations

import pytest

from gangsched.core.objects.offered_devices import Attribute, AttributeType, Device, SelectorResult
from gangsched.kube.cel.evaluation import MOST_LOOPS
from gangsched.kube.cel.functions import FUNCTIONS
from gangsched.kube.cel.selectors import CelSelector
from gangsched.kube.cel.syntax import readable

D = "d.example.com"
GPU = Device(
    "d",
    (
        Attribute(f"{D}/index", AttributeType.INT, "3"),
        Attribute(f"{D}/list", AttributeType.STRING, "l"),
        Attribute(f"{D}/model", AttributeType.STRING, "A100"),
        Attribute(f"{D}/new", AttributeType.BOOL, "true"),
        Attribute(f"{D}/v", AttributeType.VERSION, "1.10.0-rc.1"),
        Attribute("o/x", AttributeType.STRING, "y"),
    ),
    ((f"{D}/memory", "40Gi"),),
)
A, C = f"device.attributes['{D}']", f'device.capacity["{D}"]'


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        (f"device.driver == '{D}'", "true"),
        (f"{A}.model == 'A100' && {A}.index < 4 && {A}.new", "true"),
        (f"{A}.model == 'H100'", "false"),
        (f"{A}.none == 'a'", "error"),
        (f"has({A}.none)", "false"),
        (f"has({A}.model) && 'model' in {A}", "true"),
        ("has(device.attributes['no.example.com'].none)", "false"),
        ("device.attributes['no.example.com'].none == 1", "error"),
        ("'no.example.com' in device.attributes", "false"),
        ("'no.example.com' in device.attributes && device.attributes['no.example.com'].none == 1", "false"),
        ("device.attributes.o.x == 'y'", "true"),
        (f"{A}.model < 3", "error"),
        (f"{A}.model", "error"),
        (f"{A}.model.lowerAscii() == 'a100' && 'x'.upperAscii() == 'X'", "true"),
        (f"{A}.model.matches('^A1') && {A}.model.find('[0-9]+') == '100'", "true"),
        (f"[1, 3].exists(x, x == {A}.index)", "true"),
        ("[1]" + ".map(x, x)" * (MOST_LOOPS + 1) + " == [1]", "error"),
        ("1 +", "error"),
        ("", "error"),
        ("none(1)", "error"),
        (f"{C}.memory.compareTo(quantity('40960Mi')) == 0 && {C}.memory == quantity('40960Mi')", "true"),
        (f"{C}.memory.isGreaterThan(quantity('39Gi')) && {C}.memory.isLessThan(quantity('41Gi'))", "true"),
        (f"{C}.memory.add(quantity('1Gi')).sub(1).sign() == 1", "true"),
        ("quantity('1.5').isInteger() || quantity('2k').asInteger() != 2000", "false"),
        ("quantity('1.5').asApproximateFloat() == 1.5 && isQuantity('1Ki') && !isQuantity('x')", "true"),
        ("quantity('x') == quantity('1')", "error"),
        (f"{A}.v.isLessThan(semver('1.10.0')) && {A}.v.isGreaterThan(semver('1.9.9'))", "true"),
        (f"{A}.v.major() == 1 && {A}.v.minor() == 10 && {A}.v.patch() == 0", "true"),
        (f"{A}.v.compareTo(semver('1.10.0-rc.1')) == 0 && {A}.v == semver('1.10.0-rc.1')", "true"),
        ("semver('1.0.0-a.2').isLessThan(semver('1.0.0-a.10')) && !isSemver('1.0') && isSemver('1.0.0')", "true"),
        ("semver('1.0.0').isLessThan(quantity('1'))", "error"),
        ("'é'.size() == 1 && size('é') == 1", "true"),
        (f"cel.bind(d, {A}, d.index == 3 && cel.bind(m, d.model, m == 'A100'))", "true"),
        ("cel.bind(x)", "error"),
        (f"{A}.?none.orValue(7) == 7 && {A}[?'index'].optMap(x, x + 1).value() == 4", "true"),
        (f"{A}.?none.value() == 7", "error"),
        (f"{A}.model.substring(1).split('').map(x, int(x)).sum() == 1", "true"),
        ("sets.contains([1, 2], [2]) && [2, 1].max() == 2 && 'a-b'.replace('-', '') == 'ab'", "true"),
        ("'%s'.format([1]) == '1' && '%.2f'.format([1.5]) == '1.50'", "true"),
        ("'%s'.format([1.5]) == '1.5'", "error"),
        (f"{A}.exists(k, v, k == 'model' && v == 'A100') && [2, 1].sortBy(x, x) == [1, 2]", "true"),
        ("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1')", "true"),
        ("lists.range(1000000).size() > 0", "error"),
        ("[1].exists(i, v, [1].exists(i, v, [1].exists(i, v, [1].exists(i, v, true))))", "error"),
    ],
)
def test_an_expression(expression, verdict):
    assert CelSelector(expression).evaluate(D, GPU) is SelectorResult(verdict)


def test_an_attribute_that_no_expression_may_read_is_an_error():
    odd = Device("d", (Attribute(f"{D}/x", AttributeType.OTHER, ""),))
    assert CelSelector("true").evaluate(D, odd) is SelectorResult.ERROR


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("cel.bind(x, [1, 2], f(x, 'cel.bind(') == 1)", "[ [ 1 , 2 ] ] . map ( x , f ( x , 'cel.bind(' ) == 1 ) [ 0 ]"),
        ("a.?b[?'c'].d", "a . optionalField ( 'b' ) . optionalField ( 'c' ) . d"),
        ("[?a]", "[? a ]"),
        ("o.optMap(x, y)", "o . present ( ) . map ( x , y ) . firstPresent ( )"),
        ("o.optFlatMap(x, y)", "o . present ( ) . map ( x , ( y ) . present ( ) ) . firstOfFirst ( )"),
        ("l.sortBy(x, -x)", "l . map ( x , [ - x , x ] ) . sortedBy ( )"),
        (
            "l.all(i, v, v > i)",
            "l . entries ( ) . all ( pair , [ pair [ 0 ] ] . all ( i , [ pair [ 1 ] ] . all ( v , v > i ) ) )",
        ),
        ("l.all(x, x > 1) && l.sortBy(x)", "l . all ( x , x > 1 ) && l . sortBy ( x )"),
        ("matches(a, b) && a.matches(b)", "( a ) . matches ( b ) && a . matches ( b )"),
        ("size(a.size) > x.size()", "sizeOf ( a . size ) > x . sizeOf ( )"),
        ("x.sets.contains(1)", "x . sets . contains ( 1 )"),
        (r"r'\' + 'it\'s' // size(", r"r'\' + 'it\'s'"),
        ("0x1F + 1.5e3 + 2u", "0x1F + 1.5e3 + 2u"),
        ("cel.bind(", "[ ] . map ( , ) [ 0 ]"),
    ],
)
def test_what_the_library_cannot_read_is_written_as_functions(expression: str, written: str) -> None:
    assert readable(expression) == written


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)" * 40, "a*" * 9, "(?=a)", "(", "a{2}" * 9])
def test_a_pattern_that_could_take_long_or_is_none_is_an_error(pattern: str) -> None:
    assert CelSelector(f"'{'a' * 60}b'.find('{pattern}') != 'x'").evaluate(D, GPU) is SelectorResult.ERROR
    assert CelSelector(f"'{'a' * 60}b'.findAll('{pattern}') != []").evaluate(D, GPU) is SelectorResult.ERROR


def test_deep_brackets_are_an_error_and_nothing_worse() -> None:
    for deep in ("(" * 3000 + "true" + ")" * 3000, "cel.bind(a," * 900, "[" * 4000):
        assert CelSelector(deep).evaluate(D, GPU) is SelectorResult.ERROR


def test_no_function_is_called_as_one_of_the_library_is() -> None:
    """The library's own functions take precedence, so ours would never be called."""
    assert not {"size", "matches", "contains", "startsWith", "endsWith", "string", "int"} & FUNCTIONS.keys()
