"""The invariants are checked from the outside: a machine that breaks one is caught, whatever its own state says."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.effects import BindPod, Effect, EvictPod
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods
from tests.living import Living
from tests.scenarios.test_rollback import never

SET = Owner("StatefulSet", "a", "set-a", "apps")
OWN = {
    *("machine", "state", "intake", "upkeep", "cycle", "gang", "planning"),
    *("queueing", "cluster", "constraints", "status", "autoscaling"),
}
"""Names that the core decides with, and that the checks must therefore not use."""


class Puppet:
    """A machine that decides what the test says and always reports a valid state."""

    def __init__(self) -> None:
        self.orders: list[list[Effect]] = []
        self.gangs = SimpleNamespace(get=lambda _: SimpleNamespace(run=SimpleNamespace(scheduled_at=1.0)))

    def handle(self, *_: object) -> list[Effect]:
        return self.orders.pop(0) if self.orders else []

    def next_deadline(self) -> None:
        return None

    def validate(self) -> list[str]:
        return []


def bind(name: str) -> BindPod:
    return BindPod(f"uid-default/{name}", "default", name, "n1")


def evict(name: str) -> EvictPod:
    return EvictPod(f"uid-default/{name}", "default", name)


def told(*members: Pod, cpu: int = 3) -> tuple[Living, Puppet]:
    """A group of three with these members, which the puppet has seen."""
    harness, puppet = Living(), Puppet()
    harness.machine = puppet  # type: ignore[assignment]
    harness.settle(node("n1", cpu=cpu), group("a", min_member=3), *(members or pods("a", 3, owner=SET)))
    return harness, puppet


def obey(harness: Living, puppet: Puppet, *orders: Effect) -> None:
    puppet.orders.append(list(orders))
    harness.step()
    harness.settle()


def a_part(harness: Living, puppet: Puppet) -> None:
    obey(harness, puppet, bind("a-0"), bind("a-1"))
    harness.wait(31)
    harness.rule_one.look()


def one_after_the_other(harness: Living, puppet: Puppet) -> None:
    """Three members are bound one after the other, never together."""
    harness.retired.add("set-a")
    obey(harness, puppet, bind("a-0"), bind("a-1"))
    harness.delete("default/a-0")
    harness.settle()
    obey(harness, puppet, bind("a-2"))
    harness.wait(31)
    harness.rule_one.look()


def twice(harness: Living, puppet: Puppet) -> None:
    harness.withhold = lambda _: True
    obey(harness, puppet, bind("a-0"))
    obey(harness, puppet, bind("a-0"))


def again(harness: Living, puppet: Puppet) -> None:
    obey(harness, puppet, bind("a-0"))
    obey(harness, puppet, bind("a-0"))


def amid(harness: Living, puppet: Puppet) -> None:
    harness.withhold = lambda effect: effect.name == "a-1"
    obey(harness, puppet, bind("a-0"), bind("a-1"))
    obey(harness, puppet, evict("a-0"))


@pytest.mark.parametrize(
    ("deed", "found"),
    [
        (a_part, "has been bound in part for 31"),
        (one_after_the_other, "has been bound in part for 31"),
        (twice, "is bound while its binding is on its way"),
        (again, "is bound and is bound again"),
        (amid, "is evicted while bindings are on their way"),
    ],
)
def test_a_broken_promise_is_found(deed: Callable[[Living, Puppet], None], found: str) -> None:
    with pytest.raises(AssertionError, match=found):
        deed(*told())


def test_a_node_that_is_made_to_hold_too_much_is_found() -> None:
    with pytest.raises(AssertionError, match="a-2 is bound to node n1, which then has cpu 3000 of 2000"):
        obey(*told(cpu=2), bind("a-0"), bind("a-1"), bind("a-2"))


def test_the_eviction_of_a_member_that_nothing_would_make_again_is_found() -> None:
    harness, puppet = told(pod("a-0"), pod("a-1"))
    obey(harness, puppet, bind("a-0"))
    with pytest.raises(AssertionError, match="is evicted and not made again"):
        obey(harness, puppet, evict("a-0"))


def refused_with_a_raised_minimum() -> Living:
    """A group whose only binding has been refused, and whose minimum is then raised from one to three."""
    harness = Living()
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no")
    harness.add(node("n1", cpu=1), group("a", min_member=1), *pods("a", 2, owner=SET))
    harness.step()
    harness.step()
    harness.change_spec("default/a", min_member=3)
    return harness


@pytest.mark.parametrize("leader", ["stays", "dies"])
def test_a_quorum_under_way_that_a_rival_completes_is_none_of_the_raised_minimum(leader: str) -> None:
    """It ends under its own terms, which a new leader reads from the status (rule 9)."""
    harness = refused_with_a_raised_minimum()
    harness.add(node("n2", cpu=1), replace(harness.pod("default/a-1"), node="n2", bound_at=harness.now))
    if leader == "dies":
        harness.restart()
    harness.wait(40)
    assert harness.condition("default/a", "Degraded").message == (
        "minMember was raised from 1 to 3; 1 is bound; 2 more members are needed, or a lower minimum."
    )


def of_one_that_a_rival_bound() -> Living:
    """A group with a minimum of one: a rival has bound a member before the machine sees it. There is no more room."""
    harness = Living()
    harness.add(node("n1", cpu=1), group("a", min_member=1, on_degraded=OnDegraded.RESTART))
    harness.settle(pod("a-0", owner=SET, node="n1"), pod("a-1"))
    return harness


def test_a_group_that_a_rival_has_bound_whole_before_the_machine_saw_it_may_be_restarted() -> None:
    """A restart evicts also whom nothing would create again (rule 13)."""
    harness = of_one_that_a_rival_bound()
    harness.delete_node("n1")
    harness.delete("default/a-0")
    harness.wait(3)
    assert "default/a-1" in harness.evicted


def test_what_a_raised_minimum_adds_is_no_quorum_though_a_rival_has_bound_the_first_member() -> None:
    """Rule 1 ends with the first Scheduled; a member that nothing would create again stays without being told."""
    harness = of_one_that_a_rival_bound()
    harness.refuse_bind = never("a-2")
    harness.change_spec("default/a", min_member=3)
    harness.add(node("n2", cpu=2), pod("a-2", owner=SET))
    harness.wait(60)
    assert harness.bound() == ["default/a-0", "default/a-1"]


def test_what_a_raised_minimum_adds_is_rolled_back_though_a_member_above_it_is_being_bound() -> None:
    """Of two roles that are added one member is bound and one refused; the binding of another one has no answer."""
    harness = Living()
    harness.settle(node("n1", cpu=5), group("a", min_member=2), *pods("a", 2, owner=SET))
    harness.refuse_bind = never("a-s")
    harness.withhold = lambda effect: effect.name == "a-z"
    harness.change_spec("default/a", roles=(Role("r", 1), Role("s", 1)))
    harness.settle(*(pod(f"a-{name}", role=role, owner=SET) for name, role in zip("rsz", "rsr", strict=True)))
    harness.wait(21)
    assert harness.evicted == ["default/a-r"]


def test_a_group_without_a_podgroup_of_which_nobody_waits_looks_whole_to_a_new_leader() -> None:
    """A rival binds two of a group of three, and the kubelet refuses one of them; its replacement is bound."""
    harness = Living()
    members = [pod(f"a-{at}", declaration=Declaration("a", min_member=3), owner=SET) for at in range(2)]
    harness.settle(node("n1", cpu=1), *members)
    for each in members:
        harness.add(replace(each, node="n1", bound_at=harness.now))
    harness.restart()
    harness.wait(60, node("n2", cpu=1))
    harness.rule_one.look()
    assert harness.bound() == ["default/a-0", "default/a-1"]


@pytest.mark.parametrize(
    "oracle", ["ledger.py", "naive.py", "plan_judge.py", "promises.py", "faults/audit.py", "faults/objects.py"]
)
def test_what_judges_uses_no_part_of_what_it_judges(oracle: str) -> None:
    source = ast.parse((Path(__file__).parent / oracle).read_text(encoding="utf-8"))
    modules = [each.module or "" for each in ast.walk(source) if isinstance(each, ast.ImportFrom)]
    asked = {each.attr for each in ast.walk(source) if isinstance(each, ast.Attribute)} & {"machine", "gangs", "gang"}

    assert [module for module in modules if module.startswith("gangsched.core") and module.split(".")[2] in OWN] == []
    assert asked == set()
