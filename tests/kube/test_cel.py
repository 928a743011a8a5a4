"""Expressions on devices; test_oracle_devices.py compares each function with kube-scheduler's."""

from __future__ import annotations

import pytest
from cel_expr_python import cel

from gangsched.core.objects.offered_devices import Attribute, AttributeType, Device, SelectorResult
from gangsched.kube.cel.device_selectors import CelSelector
from gangsched.kube.cel.evaluation import LONGEST_RANGE, may_be_misread

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
        ("[1]" + ".map(x, x)" * 9 + " == [1]", "true"),
        ("lists.range(99).all(x, lists.range(99).all(y, lists.range(99).all(z, x + y + z >= 0)))", "error"),
        ("1 +", "error"),
        ("", "error"),
        ("none(1)", "error"),
        (f"{C}.memory.compareTo(quantity('40960Mi')) == 0 && {C}.memory == quantity('40960Mi')", "true"),
        (f"{C}.memory.isGreaterThan(quantity('39Gi')) && {C}.memory.isLessThan(quantity('41Gi'))", "true"),
        (f"sign({C}.memory.add(quantity('1Gi')).sub(1)) == 1", "true"),
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
        (f"{A}.exists(k, v, k == 'model' && v == 'A100')", "true"),
        ("[2, 1].sortBy(x, x) == [1, 2]", "true"),
        ("ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1')", "true"),
        (f"lists.range({LONGEST_RANGE}).size() > 0", "true"),
        (f"lists.range({LONGEST_RANGE + 1}).size() > 0", "error"),
        ("[9000000000].exists(x, lists.range(x).size() > 0)", "error"),
        ("[1].exists(i, v, [1].exists(i, v, [1].exists(i, v, [1].exists(i, v, true))))", "true"),
        ("device.attributes[?'no.example.com'].hasValue()", "true"),
        ("device.attributes.exists(d, d == 'no.example.com')", "false"),
        ("device.attributes.all(d, d != 'x') && size(device.capacity) == 1", "true"),
    ],
)
def test_an_expression(expression, verdict):
    assert CelSelector(expression).evaluate(D, GPU) is SelectorResult(verdict)


def test_an_attribute_that_no_expression_may_read_is_an_error():
    odd = Device("d", (Attribute(f"{D}/x", AttributeType.OTHER, ""),))
    assert CelSelector("true").evaluate(D, odd) is SelectorResult.ERROR


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)" * 40, "a*" * 9, "(?=a)", "(", "a{2}" * 9])
def test_a_pattern_that_could_take_long_or_is_none_is_an_error(pattern: str) -> None:
    assert CelSelector(f"'{'a' * 60}b'.find('{pattern}') != 'x'").evaluate(D, GPU) is SelectorResult.ERROR
    assert CelSelector(f"'{'a' * 60}b'.findAll('{pattern}') != []").evaluate(D, GPU) is SelectorResult.ERROR


def test_deep_brackets_are_an_error_and_nothing_worse() -> None:
    for deep in ("(" * 3000 + "true" + ")" * 3000, "cel.bind(a," * 900, "[" * 4000):
        assert CelSelector(deep).evaluate(D, GPU) is SelectorResult.ERROR


LEFT_BEHIND = f"{A}.exists(x, x == 'model') && cel.bind(y, 7, y == 7)"


@pytest.mark.parametrize(
    ("expression", "misread"),
    [
        (LEFT_BEHIND, True),
        (f"cel.bind(y, 7, y == 7) && {A}.exists(x, x == 'model')", False),
        (f"cel.bind(d, {A}, d.exists(x, x == 'model')) && cel.bind(y, 7, y == 7)", False),
        (f"cel.bind(d, {A}, d.exists(x, x == 'model') && cel.bind(y, 7, y == 7))", True),
        (f"cel.bind(d, {A}, cel.bind(y, 'model', d.exists(x, x == y)))", False),
        (f"{A}.exists(x, cel.bind(y, x, y == 'model'))", False),
        (f"{A}.all(z, cel.bind(y, z, y != '') && {A}.exists(x, x == 'model'))", True),
        (f"{A}.exists_one(x, x == 'model') && cel.bind(y, 7, y == 7)", False),
        (f"{A}.exists(x, x == 'model') && [2, 1].sortBy(y, y) == [1, 2]", True),
        (f"{A}.exists(x, x == 'model') && {A}.?index.optMap(y, y + 1).value() == 4", True),
    ],
)
def test_an_expression_that_the_library_may_misread_is_an_error(expression: str, *, misread: bool) -> None:
    assert may_be_misread(expression) is misread
    assert CelSelector(expression).evaluate(D, GPU) is (SelectorResult.ERROR if misread else SelectorResult.TRUE)


def test_the_library_still_misreads_a_binding_after_a_loop_that_ends_early() -> None:
    """If this fails with a newer library, expressions need not be refused for it."""
    program = cel.NewEnv(
        config=cel.NewEnvConfigFromYaml("name: x\nextensions:\n- name: bindings\n"), variables={"l": cel.Type.DYN}
    ).compile("l.exists(x, x == 1) && cel.bind(y, 7, y == 7)")
    assert program.eval(data={"l": [1, 2]}).value() is False


def test_without_the_extra_every_selector_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    selector = CelSelector("true")
    assert (selector.evaluate(D, GPU), selector.failure()) == (SelectorResult.TRUE, "true")
    monkeypatch.setattr("gangsched.kube.cel.device_selectors._installed", lambda: False)
    assert selector.evaluate(D, GPU) is SelectorResult.ERROR
    assert selector.failure() == "true (no expression can be evaluated: pip install 'gangsched[devices]')"
