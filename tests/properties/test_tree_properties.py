"""Trees of groups: the planner against every choice of parts, and the machine against the tree itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.declarations.minima import missing_of, roles_in, tree
from gangsched.core.objects.declaration import Declaration, Level
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Owner, Pod, member_order, role_of
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.record import Choice, Minima
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from tests import naive
from tests.builders import node, pod
from tests.clusters import cluster_of
from tests.effort import examples
from tests.harness import Harness
from tests.naive import World
from tests.preempting import cluster, end, holder, is_whole, victims
from tests.trees import inner, leaf, members_of

Thing = ForeignGroup | Pod | Node
Node_ = tuple[int, Sequence["Node_"]]
"""A minimum and the parts below, empty for a leaf."""


def leaves() -> st.SearchStrategy[Node_]:
    return st.tuples(st.integers(1, 2), st.just(()))


def trees() -> st.SearchStrategy[Node_]:
    """Trees of at most three levels; some ask for more parts than there are."""
    mid = st.one_of(leaves(), leaves(), st.tuples(st.integers(1, 2), st.lists(leaves(), min_size=1, max_size=2)))
    return st.tuples(st.integers(1, 3), st.lists(mid, min_size=1, max_size=4))


def minima_of(found: Node_, names: Iterator[str]) -> Minima:
    least, parts = found
    name = next(names)
    if not parts:
        return Minima(least, ((name, least),), (), name)
    return tree([minima_of(part, names) for part in parts], least=least, name=name)


def names() -> Iterator[str]:
    return (f"g{at}" for at in range(100))


def ways(roles: Mapping[str, int], choices: Sequence[Choice]) -> Iterator[Mapping[str, int]]:
    """The members by role of each choice of parts, in order: outer parts are chosen first."""
    if not choices:
        yield roles
        return
    choice, *others = choices
    for parts in combinations(choice.parts, choice.least):
        more = {role: number for part in parts for role, number in part.roles}
        yield from ways({**roles, **more}, [*others, *(each for part in parts for each in part.choices)])


@st.composite
def scarce(draw: st.DrawFn) -> tuple[World, Minima, list[Pod]]:
    """At most three nodes, a tree, and for each of its groups a member more than it needs, as many, or fewer."""
    world = World()
    for at in range(draw(st.integers(1, 3))):
        world.nodes[f"n{at}"] = Node(name=f"n{at}", allocatable=(("cpu", draw(st.integers(1, 6))), ("pods", 5)))
    least = minima_of(draw(trees()), names())
    members = []
    for role in sorted(roles_in(least)):
        cpu = draw(st.integers(1, 4))
        for at in range(draw(st.integers(1, 3))):
            made = pod(f"{role}-{at}", created=float(at))
            said = Declaration(group="a", role=role)
            members.append(replace(made, shape=Shape(requests=(("cpu", cpu),)), declaration=said))
    return world, least, sorted(members, key=member_order)


@given(scarce())
@settings(max_examples=examples(400))
def test_the_parts_are_the_first_choice_that_fits_and_nothing_is_placed_if_none_does(problem):
    world, least, members = problem
    need = missing_of(least, Counter())
    if not need.met_by(members):
        event("incomplete")
        there = Counter(map(role_of, members))
        assert not any(all(there[role] >= n for role, n in way.items()) for way in ways(need.roles, need.choices))
        return
    cluster = cluster_of(*world.nodes.values())
    snapshot = Snapshot(cluster)
    ask = Ask(members=members, need=need.number, role_needs=need.roles, choices=need.choices)
    found = place(snapshot, ask)
    possible = [
        way
        for way in ways(need.roles, need.choices)
        if naive.quorum_exists(world, [each for each in members if role_of(each) in way], sum(way.values()), way)
    ]
    event("fits" if possible else "refused")
    if not possible:
        assert isinstance(found, Refusal)
        assert not found.exhausted
        assert found.never
        return
    assert isinstance(found, Placement)
    assert Counter(role_of(each) for each, _ in found.assignments) == Counter(dict(possible[0]))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[World, Minima, tuple[Level, ...], list[Pod]]:
    """As `scarce`, with nodes in two zones and three racks, and levels at some parts of the tree."""
    world, least, members = draw(scarce())
    for name, each in world.nodes.items():
        labels = draw(st.sampled_from((("zone", "z1"), ("zone", "z2"), None))), (draw(st.sampled_from("abc")))
        found = (("rack", labels[1]), *([labels[0]] if labels[0] is not None else []))
        world.nodes[name] = replace(each, labels=found)
    parts = [least, *parts_of(least)]
    levels = []
    for part in sorted(parts, key=lambda each: -len([*roles_in(each)])):
        key = draw(st.sampled_from((None, None, "zone", "rack")))
        if key is not None:
            levels.append(Level(key, tuple(roles_in(part))))
    return world, least, tuple(levels), members


def parts_of(least: Minima) -> Iterator[Minima]:
    for choice in least.choices:
        for part in choice.parts:
            yield part
            yield from parts_of(part)
    yield from (Minima(number, ((role, number),)) for role, number in least.roles)


def confined_ways(levels: Sequence[Level], world: World, members: Sequence[Pod]) -> Iterator[list[Pod]]:
    """These members with node selectors that put each level into one domain, in every way."""
    if not levels:
        yield [*members]
        return
    level, *others = levels
    mine = [each for each in members if role_of(each) in level.roles]
    values = {value for each in world.nodes.values() for key, value in each.labels if key == level.key}
    for value in sorted(values) if mine else [""]:
        yield from confined_ways(
            others, world, [selecting(each, level.key, value) if each in mine else each for each in members]
        )


def selecting(found: Pod, key: str, value: str) -> Pod:
    return replace(found, shape=replace(found.shape, node_selector=(*found.shape.node_selector, (key, value))))


@given(labelled())
@settings(max_examples=examples(400), deadline=None)
def test_the_parts_are_the_first_choice_that_fits_with_each_level_in_one_domain(problem):
    world, least, levels, members = problem
    need = missing_of(least, Counter())
    if not need.met_by(members):
        event("incomplete")
        return
    cluster = cluster_of(*world.nodes.values())
    ask = Ask(members=members, need=need.number, role_needs=need.roles, choices=need.choices, levels=levels)
    found = place(Snapshot(cluster), ask)
    possible = [way for way in ways(need.roles, need.choices) if _fits_somehow(world, levels, members, way)]
    event("fits" if possible else "refused")
    if not possible:
        assert isinstance(found, Refusal)
        assert not found.exhausted
        return
    assert isinstance(found, Placement)
    assert Counter(role_of(each) for each, _ in found.assignments) == Counter(dict(possible[0]))
    for level in levels:
        nodes = {where for each, where in found.assignments if role_of(each) in level.roles}
        assert len({dict(world.nodes[where].labels)[level.key] for where in nodes}) <= 1


def _fits_somehow(world: World, levels: Sequence[Level], members: Sequence[Pod], way: Mapping[str, int]) -> bool:
    mine = [each for each in members if role_of(each) in way]
    number = sum(way.values())
    return any(naive.quorum_exists(world, some, number, way) for some in confined_ways(levels, world, mine))


def objects(found: Node_, parent: str, called: Iterator[str], age: int = 40) -> list[ForeignGroup]:
    """The tree as the API server serves it; parts have the order in which they are drawn."""
    least, parts = found
    name = next(called)
    if not parts:
        return [leaf(name, parent, least=least, age=age)]
    below = [each for at, part in enumerate(parts) for each in objects(part, name, called, age - 1 - at)]
    return [inner(name, parent, least=least, age=age), *below]


def broken(least: Minima, bound: Counter[str]) -> list[str]:
    """The parts that have bound members and not all that they need."""
    mine = Counter({role: bound[role] for role in roles_in(least)})
    if not mine.total():
        return []
    wrong = [least.name or "root"] if missing_of(least, mine) else []
    return wrong + [each for choice in least.choices for part in choice.parts for each in broken(part, bound)]


@given(trees(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_what_is_bound_satisfies_the_tree_and_every_part_or_nothing_of_it_is_bound(found, data):
    harness = Harness()
    least = minima_of(found, names())
    things: list[Thing] = [*objects(found, "", names())]
    for role in sorted(roles_in(least)):
        cpu = data.draw(st.integers(1, 3))
        things += members_of(role, data.draw(st.integers(1, 3)), cpu=cpu)
    things += [node(f"n{at}", cpu=data.draw(st.integers(1, 6))) for at in range(data.draw(st.integers(1, 3)))]
    for some in data.draw(st.permutations(things)):
        harness.wait(1, some)
        bound = Counter(name.removeprefix("default/").rsplit("-", 1)[0] for name in harness.bound())
        now = _tree_now(harness)
        assert now is None or broken(now, bound) == []
        for gang in harness.machine.gangs.values():
            assert not gang.record.satisfied.choices
            assert gang.record.quorum is None or not gang.record.quorum.choices
    event("bound" if harness.bound() else "nothing bound")


def _tree_now(harness: Harness) -> Minima | None:
    """The tree by which the machine has just decided."""
    specs = [each.terms.spec for each in harness.machine.assessments.values() if each.terms.spec.tree is not None]
    return specs[0].tree if specs else None


OWNER = Owner("ReplicaSet", "rs", "uid-rs", "apps")


def small() -> st.SearchStrategy[Node_]:
    """A part that may be needed and one beside it, where what happens meets what is under way more often."""
    return st.tuples(st.just(1), st.tuples(*(st.tuples(st.integers(2, 3), st.just(())) for _ in range(2))))


@given(st.one_of(small(), trees()), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_no_part_stays_bound_in_part_whatever_bindings_are_refused_and_wherever_a_leader_starts(found, data):
    """The pods have a controller, which replaces those that are evicted. The number of parts needed changes meanwhile,
    so that the whole tree may have less than it needs, but no part of it.
    """
    harness, draw = Harness(), data.draw
    least = minima_of(found, names())
    harness.add(*objects(found, "", names()))
    harness.add(*(node(f"n{at}", cpu=draw(st.integers(3, 9))) for at in range(draw(st.integers(1, 3)))))
    number, refused = count(), Counter[str]()
    times = st.sampled_from((3, 6, 9, 1000))
    unlucky = draw(st.dictionaries(st.integers(0, 12), st.tuples(st.sampled_from(WHY), times), min_size=1, max_size=6))
    sizes = {role: draw(st.integers(1, 2)) for role in roles_in(least)}

    def refuse(effect: BindPod) -> BindRefused | None:
        why, most = unlucky.get(int(effect.name.rsplit("-", 1)[1]), (Refused.DENIED, 0))
        refused[effect.name] += 1
        return BindRefused(effect.uid, effect.node, why, "no") if refused[effect.name] <= most else None

    def add(role: str, several: int) -> None:
        for _ in range(several):
            harness.add(
                *members_of(role, 1, first=next(number), cpu=sizes[role], owner=OWNER, created=int(harness.now))
            )

    harness.refuse_bind = refuse
    for role in draw(st.permutations(sorted(roles_in(least)))):
        add(role, draw(st.integers(1, 3)))
        _happens(harness, draw)
    lasts = Counter[str]()
    happens = draw(st.sets(st.integers(0, 29), max_size=8))
    changes = draw(st.dictionaries(st.integers(0, 29), st.integers(1, 4), max_size=3)) if found[1] else {}
    for step in range(60):
        if step in changes:
            harness.add(inner("g0", least=changes[step], age=40))
        if step in happens:
            _happens(harness, draw)
            lasts.clear()
        roles = [role_of_name(each.name) for each in harness.pods.values() if each.terminating]
        harness.end_terminating()
        for role in roles:
            add(role, 1)
        if step == 30:
            unlucky.clear()
        harness.wait(10)
        bound = [each.name for each in harness.pods.values() if each.node and not each.terminating]
        wrong = {*broken(least, Counter(map(role_of_name, bound)))} - ({"g0"} if changes else set())
        lasts = Counter({name: lasts[name] + 1 for name in wrong})
        assert all(steps <= 4 for steps in lasts.values())
    event("evicted" if harness.evicted else "nothing evicted")
    assert not lasts


@given(trees(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_who_is_preempted_of_a_tree_is_above_a_minimum_or_the_whole_tree_is(found, data):
    """The cluster is full of the tree. As many leave as are needed while each part can stay whole."""
    found = possible(found)
    least = dict(leaves_of(found, names()))
    members = Counter({role: number + data.draw(st.integers(0, 2)) for role, number in least.items()})
    harness = cluster(*objects(found, "", names()), node(cpu=members.total()))
    harness.wait(3, *(each for role, number in members.items() for each in members_of(role, number, owner=OWNER)))
    assert Counter(map(role_of_name, harness.bound())) == members
    above, wanted = members.total() - sum(least.values()), data.draw(st.integers(1, members.total()))
    if data.draw(st.booleans()):
        harness.restart()
    left = members - Counter(map(role_of_name, victims(harness, *holder(wanted))))
    event("some leave" if wanted <= above else "all leave")
    assert left.total() == (members.total() - wanted if wanted <= above else 0)
    assert all(left[role] >= number for role, number in least.items()) or not left
    end(harness)
    assert is_whole(harness, "high", wanted)


def possible(found: Node_) -> Node_:
    """The tree without any demand for more parts than there are."""
    least, parts = found
    return (min(least, len(parts)) if parts else least), [possible(part) for part in parts]


def leaves_of(found: Node_, called: Iterator[str]) -> Iterator[tuple[str, int]]:
    """The name and the minimum of each leaf; all parts get names."""
    least, parts = found
    name = next(called)
    for part in parts:
        yield from leaves_of(part, called)
    if not parts:
        yield name, least


WHY = (Refused.DENIED, Refused.UNAVAILABLE, Refused.FORBIDDEN)


def role_of_name(name: str) -> str:
    return name.removeprefix("default/").rsplit("-", 1)[0]


def _happens(harness: Harness, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """Time passes, or a leader starts while bindings are on their way, and another scheduler may have been faster."""
    what = draw(st.sampled_from(("nothing", "settled", "seconds", "restart", "leads again", "cut off", "rival")))
    if what == "cut off":
        lost = draw(st.sets(st.integers(0, 12)))
        harness.withhold = lambda effect: int(effect.name.rsplit("-", 1)[1]) in lost
        harness.settle()
        harness.withhold = lambda _: False
    if what in ("cut off", "restart"):
        harness.restart()
    if what == "leads again":
        harness.lead_again()
    there = [each for each in harness.pods.values() if each.node == "n0"]
    used = sum(amount for each in there for name, amount in each.shape.requests if name == "cpu")
    if what == "rival" and used < dict(harness.nodes["n0"].allocatable)["cpu"]:
        harness.add(pod(f"rival-{99 + len(harness.pods)}", group="", cpu=1, node="n0", scheduler="other"))
    if what == "settled":
        harness.settle()
    if what == "seconds":
        harness.wait(draw(st.integers(1, 30)))
