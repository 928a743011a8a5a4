"""kube-scheduler itself judges which nodes have the devices that a pod's claims ask for: see test_oracle.py.

Random pods are judged in test_judged.py. This module has the rules that it does not reach, its past findings, and each
function of the expressions.
"""

from __future__ import annotations

import pytest

from gangsched.core.objects.reasons import NodeReason
from gangsched.kube.cel.evaluation import may_be_misread
from tests.integration.expression_dice import ExpressionDice
from tests.integration.judged import Bench, Json, Surroundings, World, agree
from tests.integration.oracle_devices import DRIVER, claim, device_class, exactly, having, of, slice_of, using
from tests.integration.oracle_worlds import GPU, NAMESPACES, container, node, pod
from tests.judge import Judge


@pytest.fixture(scope="module")
def oracle(judge: Judge) -> Bench:
    return Bench(judge, Surroundings(NAMESPACES))


def device(name: str, taint: str = "", memory: str = "40Gi", **attributes: str | int | bool) -> Json:
    kinds = {str: "string", int: "int", bool: "bool"}
    values = {key: {kinds[type(value)]: value} for key, value in attributes.items()}
    made: Json = {"name": name, "attributes": values, "capacity": {"memory": {"value": memory}}}
    return made | ({"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {})


A = f"device.attributes['{DRIVER}']"
C = f"device.capacity['{DRIVER}']"
FUNCTIONS = {
    "standard": [
        f"device.driver == '{DRIVER}' && !device.allowMultipleAllocations",
        f"has({A}.model) && !has({A}.none) && 'model' in {A} && !('none' in {A})",
        f"{A}.none == 1",
        f"{A}.none == 1 || true",
        f"{A}.none == 1 && false",
        f"{A}.model == 3 || {A}.index != '3'",
        f"{A}.model",
        f"{A}.fresh",
        f"{A}.index < 4 && {A}.index <= 3 && {A}.index > 2 && {A}.index >= 3 && {A}.index < 3.5",
        f"{A}.index + 1 == 4 && {A}.index - 1 == 2 && {A}.index * 2 == 6 && {A}.index / 2 == 1 && {A}.index % 2 == 1",
        f"{A}.index / 0 == 1",
        f"-{A}.index == -3 && 9223372036854775807 + {A}.index > 0",
        f"{A}.model < 'B' && {A}.model + 'x' == 'A100x'",
        f"{A}.fresh ? {A}.index == 3 : {A}.none == 1",
        f"{A}.size() == 7 && size({A}.model) == 4 && 'é'.size() == 1 && [1, 2].size() == 2 && size({{'a': 1}}) == 1",
        f"{A}.model.startsWith('A1') && {A}.model.endsWith('00') && {A}.model.contains('10')",
        f"{A}.model.matches('^A[0-9]+$') && !{A}.model.matches('B') && matches({A}.model, '1')",
        f"int('3') == {A}.index && string({A}.index) == '3' && double({A}.index) == 3.0 && uint({A}.index) == 3u",
        f"{A}.model in ['A100', 'H100'] && !({A}.index in [1, 2]) && 'a' in {{'a': 1}}",
        "bool('true') && !bool('f') && bool('yes')",
        "bool('true') && type(1) == int && dyn(1) == 1 && bytes('a') == b'a'",
        "duration('90s').getMinutes() == 1 && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    ],
    "macros": [
        f"[1, 3].all(x, x <= {A}.index) && [1, 3].exists(x, x == {A}.index)",
        f"[1, 3].exists_one(x, x == {A}.index) && ![3, 3].exists_one(x, x == {A}.index)",
        "[1, 2, 3].map(x, x * 2) == [2, 4, 6] && [1, 2, 3].filter(x, x > 1) == [2, 3]",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && {'a': 1}.all(k, k == 'a')",
        f"{A}.exists(name, name == 'model') && device.attributes.exists(d, d == '{DRIVER}')",
        f"[1].all(x, {A}.none == x)",
    ],
    "bindings": [
        f"cel.bind(d, {A}, d.index == 3 && d.model == 'A100')",
        f"cel.bind(d, {A}, cel.bind(n, d.index + 1, [4, 5].exists(x, x == n)) && d.fresh)",
        "cel.bind(d, device.attributes['no.example.com'], has(d.none))",
        f"cel.bind(x, {A}.none, x == 1)",
    ],
    "optional values": [
        f"{A}.?model.orValue('') == 'A100' && {A}.?none.orValue(7) == 7",
        f"{A}[?'model'].hasValue() && !{A}[?'none'].hasValue() && {A}.?index.value() == 3",
        f"{A}.?none.value() == 1",
        f"{A}.?none.or({A}.?index).orValue(0) == 3 && {A}.?none.or(optional.of(5)).value() == 5",
        f"{A}.?index.optMap(x, x + 1).orValue(0) == 4 && !{A}.?none.optMap(x, x + 1).hasValue()",
        f"{A}.?index.optFlatMap(x, {A}.?model).orValue('') == 'A100'",
        "optional.none() == optional.none() && optional.of(1) == optional.of(1)",
        "!optional.ofNonZeroValue(0).hasValue() && [1, 2][?1].orValue(0) == 2 && [1, 2][?2].orValue(0) == 0",
        f"device.attributes[?'{DRIVER}'].model.orValue('') == 'A100'",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2",
    ],
    "quantities": [
        f"{C}.memory.compareTo(quantity('40960Mi')) == 0 && {C}.memory == quantity('40960Mi')",
        f"{C}.memory.isGreaterThan(quantity('39Gi')) && {C}.memory.isLessThan(quantity('41Gi'))",
        f"{C}.memory.add(quantity('1Gi')).compareTo(quantity('41Gi')) == 0 && sign({C}.memory.sub(1)) == 1",
        f"{C}.memory.add(1).isGreaterThan({C}.memory) && sign({C}.memory.sub({C}.memory)) == 0",
        f"{C}.memory.asInteger() == 42949672960 && {C}.memory.isInteger()",
        "sign(quantity('-2')) == -1 && quantity('1.5').asApproximateFloat() == 1.5",
        "quantity('1.5').isInteger()",
        "quantity('1500m').isInteger()",
        "quantity('1e3').isInteger() && quantity('1Ki').asInteger() == 1024 && quantity('9Ei').isInteger()",
        "quantity('1.5').asInteger() == 1",
        "quantity('50k').add(quantity('20k')) == quantity('70k')",
        "isQuantity('1Ki') && isQuantity('1.5G') && isQuantity('-1') && !isQuantity('x') && !isQuantity('1KB')",
        "isQuantity('') || isQuantity(' 1')",
        "quantity('x') == quantity('1')",
        f"sign({C}.none) == 0",
    ],
    "versions": [
        f"{A}.version.isLessThan(semver('1.10.0')) && {A}.version.isGreaterThan(semver('1.9.9'))",
        f"{A}.version.major() == 1 && {A}.version.minor() == 10 && {A}.version.patch() == 0",
        f"{A}.version.compareTo(semver('1.10.0-rc.1')) == 0 && {A}.version == semver('1.10.0-rc.1')",
        "semver('1.0.0-a.2').isLessThan(semver('1.0.0-a.10')) && semver('1.0.0-a').isLessThan(semver('1.0.0-a.1'))",
        "semver('1.0.0-1').isLessThan(semver('1.0.0-a')) && semver('1.0.0-a').isLessThan(semver('1.0.0'))",
        "semver('1.0.0+a').compareTo(semver('1.0.0+b')) == 0",
        "semver('1.0.0+a') == semver('1.0.0+b')",
        "isSemver('1.0.0') && !isSemver('1.0') && !isSemver('v1.0.0')",
        "!isSemver('1.0.0-01') && !isSemver('1.0.0-a..b')",
        "isSemver('v1.0', true) && isSemver('01.01.01', true) && isSemver('v1', true) && !isSemver('x', true)",
        "semver('v1.0', true) == semver('1.0.0') && semver('01.02.03', true).patch() == 3",
        "isSemver('1.0-a', true) || isSemver('', true)",
        "semver('v1.0.0').major() == 1",
        "semver('1.0.0', false).major() == 1",
    ],
    "texts": [
        f"{A}.model.lowerAscii() == 'a100' && 'xé'.upperAscii() == 'Xé'",
        f"{A}.model.charAt(0) == 'A' && {A}.model.charAt(4) == ''",
        f"{A}.model.charAt(5) == ''",
        f"{A}.model.indexOf('0') == 2 && {A}.model.indexOf('0', 3) == 3 && {A}.model.indexOf('x') == -1",
        f"{A}.model.indexOf('') == 0 && {A}.model.indexOf('0', 9) == -1 && {A}.model.lastIndexOf('') == 4",
        f"{A}.model.indexOf('0', -1) == 0",
        f"{A}.model.lastIndexOf('0') == 3 && {A}.model.lastIndexOf('0', 2) == 2 && {A}.model.lastIndexOf('x') == -1",
        f"{A}.model.lastIndexOf('00', 3) == 2 && {A}.model.lastIndexOf('0', 9) == -1",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b'",
        f"{A}.model.replace('0', 'x') == 'A1xx' && {A}.model.replace('0', 'x', 1) == 'A1x0'",
        "'ab'.replace('', '_') == '_a_b_'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'ab'.split('') == ['a', 'b']",
        "'a,b'.split(',', 0) == [] && 'a,b'.split(',', -1) == ['a', 'b'] && 'a,b'.split(',', 1) == ['a,b']",
        f"{A}.model.substring(1) == '100' && {A}.model.substring(0, 1) == 'A' && {A}.model.substring(4) == ''",
        f"{A}.model.substring(2, 1) == ''",
        f"{A}.model.substring(5) == ''",
        "' \\ta\\n '.trim() == 'a'",
        f"{A}.model.find('[0-9]+') == '100' && {A}.model.find('x') == ''",
        f"{A}.model.findAll('[0-9]') == ['1', '0', '0'] && {A}.model.findAll('0', 1) == ['0']",
        "'x'.findAll('y') == []",
    ],
    "two variables": [
        "[1, 2].exists(i, v, i == 1 && v == 2) && [1, 2].all(i, v, v == i + 1) && !{'a': 1}.all(k, v, v > 1)",
        "[1, 1].existsOne(i, v, i == 0 && v == 1) && ![1, 1].existsOne(i, v, v == 1)",
        "[1, 2].transformList(i, v, v * i) == [0, 2] && [1, 2].transformList(i, v, i > 0, v) == [2]",
        "[1, 2].exists(i, v, [1, 2].exists(j, w, i == 0 && j == 1 && v == 1 && w == 2))",
        f"{A}.exists(name, value, name == 'model' && value == 'A100')",
        f"[1].all(i, v, {A}.none == v)",
    ],
    "formatted": [
        "'%s is %d'.format(['a', 3]) == 'a is 3' && '%f %.2f'.format([1.5, 1.5]) == '1.500000 1.50'",
        "'%x %X %o %b %%'.format([255, 255, 8, 5]) == 'ff FF 10 101 %' && '%s %b'.format([true, true]) == 'true 1'",
        "'%d'.format(['a']) == 'a'",
        "'%d %d'.format([1]) == '1'",
        "'%d'.format([1, 2]) == '1'",
        "strings.quote('a\\n\\\\\"') == '\"a\\\\n\\\\\\\\\\\\\"\"'",
    ],
    "networks": [
        "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0') && !isIP('::ffff:1.2.3.4') && !isIP('01.2.3.4')",
        "!isIP('fe80::1%eth0') && ip('10.0.0.1').family() == 4 && ip('::1').family() == 6 && ip('::1') == ip('0::1')",
        "ip.isCanonical('::1') && !ip.isCanonical('0::1') && ip('0.0.0.0').isUnspecified() && ip('::1').isLoopback()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast()",
        "ip('224.0.1.1').isLinkLocalMulticast() || ip('ff05::1').isLinkLocalMulticast()",
        "ip('169.254.0.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('10.0.0.1').isGlobalUnicast() && ip('2001:db8::1').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast()",
        "ip('255.255.255.255').isGlobalUnicast() || ip('224.0.0.9').isGlobalUnicast() || ip('::').isGlobalUnicast()",
        "ip('x').family() == 4",
        "isCIDR('10.0.0.0/8') && isCIDR('10.0.0.1/8') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33')",
        "isCIDR('10.0.0.0/08') || isCIDR('10.0.0.0/255.0.0.0') || isCIDR('::ffff:1.2.3.4/96')",
        "cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.1.1.1'))",
        "cidr('10.0.0.0/8').containsIP('::1') || cidr('10.0.0.0/8').containsCIDR('::/0')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').prefixLength() == 8",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8') != cidr('10.0.0.0/8')",
        "cidr('x').prefixLength() == 8",
    ],
    "lists and sets": [
        "[1, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted()",
        "[1, 2].sum() == 3 && [1.5, 2.5].sum() == 4.0 && [2, 1].min() == 1 && [1, 2].max() == 2",
        "[1].filter(x, x > 1).min() == 1",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 1].distinct() == [1, 2]",
        "[1].slice(0, 2) == [1]",
        "[2, 1].sort() == [1, 2] && [1, 2].reverse() == [2, 1] && [1] + [2] == [1, 2] && [1, 2][1] == 2",
        "[1][1] == 1",
        "sets.contains([1, 2], [1]) && !sets.contains([1], [1, 2]) && sets.contains([1], [])",
        "lists.range(3) == [0, 1, 2] && [3, 1, 2].sortBy(x, -x) == [3, 2, 1] && ['b', 'a'].sortBy(x, x)[0] == 'a'",
        "sets.equivalent([1, 2, 2], [2, 1]) && sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
    ],
}
UNKNOWN = [
    "{'a': 1, 'b': 2}.transformMap(k, v, v * 2) == {'a': 2, 'b': 4}",
    "isURL('https://a.example.com') && url('https://a.example.com').getScheme() == 'https'",
    "!format.dns1123Label().validate('a').hasValue()",
    "{'a': 1}.transformMapEntry(k, v, {k: v}) == {'a': 1}",
    "string(ip('10.0.0.1')) == '10.0.0.1'",
    "'%s'.format([1.5]) == '1.5'",
    "'%e'.format([1500.0]) != ''",
    "'a1'.find('([a-z])+') == 'a'",
]
"""Expressions that are true for kube-scheduler but make gangsched refuse the pod."""
EXPRESSIONS = [each for of_kind in FUNCTIONS.values() for each in of_kind]


def verdicts_on(oracle: Bench, expressions: list[str]) -> list[tuple[str, str, str]]:
    """Each expression with kube-scheduler's and gangsched's result for one device: true, false or error."""
    gpu = device("d", index=3, model="A100", fresh=True, other=1, none_of="", spare=0)
    gpu["attributes"]["version"] = {"version": "1.10.0-rc.1"}
    claims = [claim(f"c{at}", exactly(each)) for at, each in enumerate(expressions)]
    found = []
    with oracle.world(World([node("n")], others=[device_class("any"), slice_of("n", gpu), *claims])):
        for expression, said in zip(
            expressions, oracle.ask([using(f"c{at}") for at in range(len(claims))]), strict=True
        ):
            failed = any(each.failed for each in said.refused.values())
            theirs = "error" if failed else "true" if said.kube_scheduler else "false"
            unknown = NodeReason.DEVICE_SELECTOR in said.why.values()
            found.append((expression, theirs, "error" if unknown else "true" if said.gangsched else "false"))
    return found


def test_each_function_of_expressions_says_what_it_says_in_kube_scheduler(oracle: Bench) -> None:
    said = verdicts_on(oracle, EXPRESSIONS)
    different = [each for each in said if each[1] != each[2]]
    assert not different, "\n".join(map(str, different))
    assert {theirs for _, theirs, _ in said} == {"true", "false", "error"}


def test_what_expressions_cannot_say_here_is_an_error_and_nothing_else(oracle: Bench) -> None:
    assert verdicts_on(oracle, UNKNOWN) == [(each, "true", "error") for each in UNKNOWN]


@pytest.mark.parametrize("seed", range(25))
def test_random_expressions_say_what_they_say_in_kube_scheduler(oracle: Bench, seed: int) -> None:
    """Of 2,500, of which some fail for the device in both; some are refused because the library may misread them."""
    dice = ExpressionDice(seed)
    said = verdicts_on(oracle, [dice.expression() for _ in range(100)])
    misread = [expression for expression, _, ours in said if ours == "error" and may_be_misread(expression)]
    different = [each for each in said if each[1] != each[2] and each[0] not in misread]
    assert not different, "\n".join(map(str, different))
    assert {theirs for _, theirs, _ in said} == {"true", "false", "error"}
    assert len(misread) < 20


def judged(oracle: Bench, claims: list[Json], *slices: Json) -> list[set[str]]:
    """The nodes that both accept for each of the claims, in a world of the nodes n1 and n2."""
    others = [device_class("any"), *slices, *claims]
    with oracle.world(World([node("n1"), node("n2")], others=others)):
        said = oracle.ask([using(each["metadata"]["name"]) for each in claims])
    agree(said)
    return [set(each.gangsched) for each in said]


def test_all_devices_are_not_known_while_a_pool_of_the_node_is_incomplete(oracle: Bench) -> None:
    """Even if only an alternative requests them, because kube-scheduler evaluates all alternatives first."""
    renewed = slice_of("new", device("b"), pool={"resourceSliceCount": 2}, nodeName="n1")
    claims = [claim("all", exactly(count=None)), claim("one", exactly()), claim("or", [exactly(), exactly(count=None)])]
    assert judged(oracle, claims, slice_of("n1", device("a")), slice_of("n2", device("a")), renewed) == [
        {"n2"},
        {"n1", "n2"},
        {"n2"},
    ]


def test_all_devices_are_not_known_where_two_slices_of_a_pool_have_one_of_the_same_name(oracle: Bench) -> None:
    pool = {"name": "p", "resourceSliceCount": 2}
    twins = [slice_of(name, device("a"), pool=pool, nodeName="n1") for name in ("x", "y")]
    claims = [claim("all", exactly(count=None)), claim("one", exactly())]
    assert judged(oracle, claims, *twins, slice_of("n1", device("b"))) == [set(), {"n1"}]


def test_all_devices_that_break_a_match_end_the_search_though_an_alternative_is_left(oracle: Bench) -> None:
    both = [device("a", numa=0), device("b", numa=1)]
    first = claim("first", [exactly(count=None), exactly(count=1)], match=["numa"])
    last = claim("last", [exactly(count=1), exactly(count=None)], match=["numa"])
    apart = claim("apart", exactly(f"{A}.numa == 0", count=None), match=["numa"])
    assert judged(oracle, [first, last, apart], slice_of("n1", *both)) == [set(), {"n1"}, {"n1"}]


def test_two_claims_with_admin_access_may_have_one_device_and_two_requests_of_one_claim_may_not(oracle: Bench) -> None:
    admin = exactly(adminAccess=True)
    claims = [claim("x", admin), claim("y", admin), claim("twice", admin, admin), claim("both", admin, exactly())]
    slices = slice_of("n1", device("a"))
    assert judged(oracle, claims, slices) == [{"n1"}, {"n1"}, set(), set()]
    with oracle.world(World([node("n1")], others=[device_class("any"), slices, *claims])):
        [said] = oracle.ask([using("x", "y")])
    agree([said])
    assert said.gangsched == {"n1"}


def test_the_scheduler_refuses_a_claim_that_256_pods_share_before_the_api_server_does(oracle: Bench) -> None:
    """A known difference: kube-scheduler notices when it reserves the claim, and tries again."""
    full = having("full", (DRIVER, "n1", "a"), users=256)
    with oracle.world(World([node("n1")], others=[device_class("any"), slice_of("n1", device("a")), full])):
        [said] = oracle.ask([using("full")])
    assert said.kube_scheduler == {"n1"}
    assert said.gangsched == set()


def test_where_some_nodes_list_a_resource_devices_do_not_stand_for_it_on_others(oracle: Bench) -> None:
    """A known difference: kube-scheduler decides node by node."""
    asking = pod(container(gpu="1"))
    others = [device_class("any", extendedResourceName=GPU), slice_of("n1", device("a"))]
    with oracle.world(World([node("n1"), node("n2", gpu="1")], others=others)):
        [said] = oracle.ask([asking])
    assert said.kube_scheduler == {"n1", "n2"}
    assert said.gangsched == {"n2"}
    with oracle.world(World([node("n1"), node("n2", gpu="0")], others=others)):
        [said] = oracle.ask([asking])
    agree([said])
    assert said.gangsched == {"n1"}


def test_the_newest_class_stands_for_a_resource(oracle: Bench) -> None:
    old = device_class("old", f"{A}.numa == 0", extendedResourceName=GPU)
    new = device_class("new", f"{A}.numa == 1", extendedResourceName=GPU)
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    slices = [slice_of("n1", device("a", numa=0)), slice_of("n2", device("b", numa=1))]
    with oracle.world(World([node("n1"), node("n2")], others=[old, new, *slices])):
        [said] = oracle.ask([pod(container(gpu="1"))])
    agree([said])
    assert said.gangsched == {"n2"}


# Counters, shares, distinct values and conditions


def sources(pool: str, memory: str = "80Gi", **where: object) -> Json:
    """The slice of a pool of two with one counter."""
    counters = [{"name": "gpu", "counters": {"memory": {"value": memory}}}]
    spec = {"driver": DRIVER, "pool": pool_of_two(pool), "sharedCounters": counters}
    return of("ResourceSlice", f"{pool}-counters", spec | (where or {"nodeName": pool}))


def pool_of_two(name: str) -> Json:
    return {"name": name, "generation": 1, "resourceSliceCount": 2}


def part(name: str, memory: str, **fields: object) -> Json:
    consumed = [{"counterSet": "gpu", "counters": {"memory": {"value": memory}}}]
    return device(name, size=int(memory.removesuffix("Gi"))) | {"consumesCounters": consumed} | fields


def test_devices_draw_from_the_counters_of_their_pool_and_other_nodes_devices_too(oracle: Bench) -> None:
    halves = slice_of(
        "halves", part("a", "40Gi"), part("b", "40Gi"), part("c", "40Gi"), pool=pool_of_two("n1"), nodeName="n1"
    )
    far = [
        sources("far", allNodes=True),
        slice_of("far-1", part("d", "60Gi"), pool=pool_of_two("far") | {"resourceSliceCount": 3}, nodeName="n1"),
        slice_of("far-2", part("e", "60Gi"), pool=pool_of_two("far") | {"resourceSliceCount": 3}, nodeName="n2"),
    ]
    far[0]["spec"]["pool"]["resourceSliceCount"] = 3
    claims = [claim("two", exactly(f"{A}.size == 40", count=2)), claim("three", exactly(f"{A}.size == 40", count=3))]
    assert judged(oracle, claims, sources("n1"), halves) == [{"n1"}, set()]
    others = [claim("far", exactly(f"{A}.size == 60")), having("had", (DRIVER, "far", "d"))]
    assert judged(oracle, others[:1], *far) == [{"n1", "n2"}]
    assert judged(oracle, others, *far)[0] == set()


def test_a_pool_of_which_too_much_was_allocated_gives_no_device_that_draws_on_it(oracle: Bench) -> None:
    devices = slice_of(
        "all",
        part("a", "60Gi"),
        part("b", "60Gi"),
        part("c", "0Gi"),
        device("d"),
        pool=pool_of_two("n1"),
        nodeName="n1",
    )
    had = having("had", (DRIVER, "n1", "a"), (DRIVER, "n1", "b"))
    claims = [claim("nothing", exactly(f"{A}.?size.orValue(1) == 0")), claim("plain", exactly(f"!has({A}.size)")), had]
    assert judged(oracle, claims, sources("n1"), devices)[:2] == [set(), {"n1"}]


def test_a_pool_with_counters_that_is_incomplete_keeps_only_its_own_nodes_from_having_all_devices(
    oracle: Bench,
) -> None:
    claims = [claim("all", exactly(count=None)), claim("one", exactly())]
    devices = [slice_of(f"other-{name}", device(name), nodeName=name) for name in ("n1", "n2")]
    assert judged(oracle, claims, sources("n1"), *devices) == [{"n2"}, {"n1", "n2"}]


def test_counters_of_a_slice_of_another_node_count(oracle: Bench) -> None:
    halves = [part(name, "40Gi") for name in "abc"]
    devices = slice_of("n2", *halves, pool=pool_of_two("n1"), nodeName="n2")
    claims = [claim("two", exactly(f"{A}.size == 40", count=2)), claim("three", exactly(f"{A}.size == 40", count=3))]
    assert judged(oracle, claims, sources("n1"), devices) == [{"n2"}, set()]


@pytest.mark.parametrize(
    ("asked", "policy", "fits"),
    [
        ("30Gi", None, True),
        ("41Gi", None, False),
        (None, None, False),
        (None, {"default": "30Gi"}, True),
        ("10Gi", {"default": "30Gi", "validValues": ["30Gi", "35Gi"]}, True),
        ("33Gi", {"default": "30Gi", "validValues": ["30Gi", "35Gi"]}, True),
        ("36Gi", {"default": "30Gi", "validValues": ["30Gi", "35Gi"]}, False),
        ("1Gi", {"default": "45Gi", "validRange": {"min": "41Gi"}}, False),
        ("35Gi", {"default": "30Gi", "validRange": {"min": "30Gi", "step": "7Gi"}}, True),
        ("38Gi", {"default": "30Gi", "validRange": {"min": "30Gi", "step": "7Gi"}}, False),
        ("36Gi", {"default": "30Gi", "validRange": {"min": "30Gi", "max": "35Gi"}}, False),
        # Fractions of a byte count since 1.37.
        ("42949672960100m", {"default": "1", "validRange": {"min": "1500m", "step": "500m"}}, False),
        ("1200m", {"default": "1", "validRange": {"min": "42949672959500m", "step": "500m"}}, True),
    ],
)
def test_a_share_is_what_the_request_policy_makes_of_the_request(oracle: Bench, asked, policy, fits) -> None:
    """Of a device with 80Gi of which 40Gi are taken."""
    shared = device("a", memory="80Gi") | {"allowMultipleAllocations": True}
    if policy is not None:
        shared["capacity"]["memory"]["requestPolicy"] = policy
    had = having("had", (DRIVER, "n1", "a"), shareID="s", consumedCapacity={"memory": "40Gi"})
    wanted = exactly(capacity={"requests": {"memory": asked}}) if asked else exactly()
    both = claim("both", wanted, wanted)
    assert judged(oracle, [claim("c", wanted), both, had], slice_of("n1", shared))[:2] == [
        {"n1"} if fits else set(),
        set(),
    ]


def test_a_shared_device_draws_its_counters_once(oracle: Bench) -> None:
    shared = part("a", "80Gi", allowMultipleAllocations=True)
    ten = exactly(capacity={"requests": {"memory": "10Gi"}})
    devices = slice_of("all", shared, part("b", "10Gi"), pool=pool_of_two("n1"), nodeName="n1")
    claims = [claim("twice", ten, ten), claim("beside", ten, exactly(f"{A}.size == 10"))]
    assert judged(oracle, claims, sources("n1"), devices) == [{"n1"}, set()]


def test_a_shared_device_of_which_nothing_is_consumed_draws_its_counters_once(oracle: Bench) -> None:
    shared = device("a") | {"allowMultipleAllocations": True, "consumesCounters": part("a", "80Gi")["consumesCounters"]}
    devices = slice_of("all", shared, pool=pool_of_two("n1"), nodeName="n1")
    had = having("had", (DRIVER, "n1", "a"), shareID="s")
    assert judged(oracle, [claim("another", exactly()), had], sources("n1"), devices)[0] == {"n1"}


def test_a_request_for_all_devices_fails_where_one_of_them_has_no_capacity_left(oracle: Bench) -> None:
    shared = [device(name, memory="80Gi") | {"allowMultipleAllocations": True} for name in "ab"]
    had = having("had", (DRIVER, "n1", "a"), shareID="s", consumedCapacity={"memory": "80Gi"})
    ten = {"requests": {"memory": "10Gi"}}
    claims = [claim("all", exactly(count=None, capacity=ten)), claim("one", exactly(capacity=ten)), had]
    assert judged(oracle, claims, slice_of("n1", *shared))[:2] == [set(), {"n1"}]


def test_a_capacity_is_named_as_the_slice_names_it(oracle: Bench) -> None:
    claims = [
        claim(f"c{at}", exactly(capacity={"requests": {name: "1Gi"}}))
        for at, name in enumerate(["memory", f"{DRIVER}/memory", "none"])
    ]
    assert judged(oracle, claims, slice_of("n1", device("a"))) == [{"n1"}, set(), set()]


def test_devices_say_themselves_where_they_can_be_used(oracle: Bench) -> None:
    own = [device("a", x=1) | {"nodeName": "n1"}, device("b", x=2) | {"allNodes": True}, device("c", x=3)]
    claims = [claim(f"c{at}", exactly(f"{A}.x == {at}")) for at in (1, 2, 3)]
    assert judged(oracle, claims, slice_of("own", *own, perDeviceNodeSelection=True)) == [{"n1"}, {"n1", "n2"}, set()]


def test_devices_of_one_request_have_distinct_values(oracle: Bench) -> None:
    """Of more than two: 1.36 compared only with the last device of a request."""
    devices = slice_of("n1", *(device(name, numa=at % 2) for at, name in enumerate("abc")))
    claims = [claim("three", exactly(count=3), distinct=["numa"]), claim("two", exactly(count=2), distinct=["numa"])]
    assert judged(oracle, claims, devices) == [set(), {"n1"}]


def test_a_claim_whose_device_has_failed_is_refused_and_one_that_waits_is_not(oracle: Bench) -> None:
    fields: Json = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    claims = [having(name, (DRIVER, "n1", name), **fields) for name in ("waiting", "ready", "broken")]
    for made, condition in zip(claims[1:], ["Attached", "Broken"], strict=True):
        true = [{"type": condition, "status": "True"}]
        name = made["metadata"]["name"]
        made["status"]["devices"] = [{"driver": DRIVER, "pool": "n1", "device": name, "conditions": true}]
    devices = [device(name) | fields for name in ("waiting", "ready", "broken")]
    assert judged(oracle, claims, slice_of("n1", *devices)) == [{"n1"}, {"n1"}, set()]
