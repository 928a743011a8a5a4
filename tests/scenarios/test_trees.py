"""Trees of Kubernetes' own groups: PodGroups below CompositePodGroups, bound as their root says.

The first class has the cases of kube-scheduler's own integration tests in 1.37.2 (test/integration/scheduler/podgroup,
cpg_test.go and queueing/queueing_test.go), with the line where each begins. Left out is 655, which is about what the
API server refuses.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.declaration import COMPOSITE, NATIVE, GroupKey
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima, Phase
from gangsched.core.objects.results import BindRefused, EvictionRefused, Refused, Spared
from gangsched.core.planning import budget as units
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import node, pod
from tests.harness import Harness
from tests.served import served_group
from tests.trees import inner, leaf, members_of, under

ROOT = GroupKey("default", "root")
OWNER = Owner("ReplicaSet", "rs", "uid-rs", "apps")


def bound(harness: Harness) -> dict[str, int]:
    """Number of bound pods by the PodGroup that they name."""
    names = [name.removeprefix("default/").rsplit("-", 1)[0] for name in harness.bound()]
    return {name: names.count(name) for name in sorted(set(names))}


def told(harness: Harness, name: str) -> tuple[str, str]:
    found = harness.pod(f"default/{name}")
    return found.condition_reason, found.condition_message


class TestTheCasesOfKubeScheduler:
    def test_89_parts_that_fit_are_bound_and_of_one_that_does_not_none_of_its_groups(self):
        harness = Harness.of(node(cpu=20))
        harness.add(inner("root"), inner("sub1", "root", age=3), inner("sub2", "root", least=None, age=2))
        harness.add(inner("sub3", "root", age=1))
        harness.add(*(leaf(f"pg{number}", "sub1") for number in (1, 2, 3)))
        harness.add(leaf("pg4", "sub2", least=None), leaf("pg5", "sub2"))
        harness.add(leaf("pg6", "sub3"), leaf("pg7", "sub3"))
        for number in (1, 2, 4, 5, 6):
            harness.add(*members_of(f"pg{number}", 3))
        for number in (3, 7):
            harness.add(*members_of(f"pg{number}", 2), *members_of(f"pg{number}", 1, first=2, cpu=100))
        harness.wait(3)
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg4": 3, "pg5": 3}
        assert {told(harness, f"{group}-0")[0] for group in ("pg3", "pg6", "pg7")} == {"Unschedulable"}

    def test_520_a_tree_grows_by_a_group_and_by_a_tree(self):
        harness = Harness.waited(3, node(cpu=20), inner("root", least=None), leaf("pg1", "root"), *members_of("pg1", 3))
        assert bound(harness) == {"pg1": 3}
        harness.wait(3, leaf("pg2", "root"), *members_of("pg2", 3))
        assert bound(harness) == {"pg1": 3, "pg2": 3}
        harness.wait(3, inner("sub", "root"), leaf("pg3", "sub"), *members_of("pg3", 3))
        assert bound(harness) == {"pg1": 3, "pg2": 3}
        assert told(harness, "pg3-0")[0] == "GangIncomplete"
        harness.wait(3, leaf("pg4", "sub"), *members_of("pg4", 3))
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 3, "pg4": 3}


def pair(name: str) -> list[Pod]:
    return members_of(name, 2)


CHAIN = inner("root", least=1), inner("mid", "root", least=1)
BOTH = inner("root"), leaf("pg1", "root", least=2)
WAITS: dict[str, tuple[list[ForeignGroup | Pod | Node], ForeignGroup | Pod | Node, dict[str, str]]] = {
    "queueing 56: its root": (
        [node(cpu=4), CHAIN[1], leaf("pg1", "mid", least=2), *pair("pg1")],
        CHAIN[0],
        {"pg1-0": "PodGroupNotFound"},
    ),
    "queueing 89: a node": (
        [*CHAIN, leaf("pg1", "mid", least=2), *pair("pg1")],
        node(cpu=4),
        {"pg1-0": "Unschedulable"},
    ),
    "queueing 122: a group": (
        [node(cpu=4), *BOTH, *pair("pg1"), *pair("pg2")],
        leaf("pg2", "root", least=2),
        {"pg1-0": "GangIncomplete", "pg2-0": "PodGroupNotFound"},
    ),
    "queueing 159: its last pod": (
        [node(cpu=4), *BOTH, leaf("pg2", "root", least=2), *pair("pg1"), pair("pg2")[0]],
        pair("pg2")[1],
        {"pg2-0": "GangIncomplete"},
    ),
    "queueing 196: a lower minimum": (
        [node(cpu=4), *CHAIN, leaf("pg1", "mid", least=3), *pair("pg1")],
        leaf("pg1", "mid", least=2),
        {"pg1-0": "GangIncomplete"},
    ),
}


@pytest.mark.parametrize(("there", "comes", "reasons"), WAITS.values(), ids=WAITS)
def test_a_tree_waits_for(there, comes, reasons):
    harness = Harness.waited(3, *there)
    assert bound(harness) == {}
    assert {name: told(harness, name)[0] for name in reasons} == reasons
    harness.wait(3, comes)
    assert set(bound(harness).values()) == {2}


class TestTheTree:
    def test_a_missing_object_in_between_is_named_and_awaited(self):
        harness = Harness.of(node(cpu=8), inner("root", least=1), leaf("pg1", "mid", least=2), *members_of("pg1", 2))
        harness.wait(3)
        _, message = told(harness, "pg1-0")
        assert message.startswith("CompositePodGroup mid: There is no CompositePodGroup mid in namespace default: ")
        harness.wait(3, inner("mid", "root", least=1))
        assert bound(harness) == {"pg1": 2}
        assert [str(key) for key in harness.machine.assessments] == ["default/root"]

    def test_a_cycle_is_an_invalid_declaration_until_it_is_cut(self):
        harness = Harness.of(node(cpu=8), inner("a", "b", least=1), inner("b", "a", least=1), leaf("pg1", "a", least=2))
        harness.wait(3, *members_of("pg1", 2))
        assert bound(harness) == {}
        assert told(harness, "pg1-0") == (
            "InvalidDeclaration",
            (
                "CompositePodGroup a: CompositePodGroup a is below itself, as b is above it: delete one of the objects "
                "in between."
            ),
        )
        harness.wait(3, inner("a", least=1, uid="another"))
        assert bound(harness) == {"pg1": 2}

    @pytest.mark.parametrize(("composites", "fits"), [(3, True), (4, False), (5, False)])
    def test_a_tree_has_at_most_four_levels(self, composites, fits):
        harness = Harness.of(node(cpu=8), inner("c0", least=1))
        harness.add(*(inner(f"c{number}", f"c{number - 1}", least=1) for number in range(1, composites)))
        harness.wait(3, leaf("pg1", f"c{composites - 1}", least=2), *members_of("pg1", 2))
        assert bound(harness) == ({"pg1": 2} if fits else {})
        if not fits:
            reason, message = told(harness, "pg1-0")
            assert (reason, "more than 4 levels" in message) == ("InvalidDeclaration", True)

    def test_a_part_above_the_minimum_is_bound_whole_or_not_at_all(self):
        harness = Harness.of(node(cpu=8), inner("root"), *(leaf(f"pg{number}", "root") for number in (1, 2, 3)))
        harness.wait(3, *(pod for number in (1, 2, 3) for pod in members_of(f"pg{number}", 3)))
        assert bound(harness) == {"pg1": 3, "pg2": 3}
        assert told(harness, "pg3-0")[0] == "Unschedulable"
        harness.wait(3, node("n2", cpu=1))
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 3}

    def test_a_part_of_which_a_member_is_bound_is_chosen_before_others(self):
        harness = Harness.of(node(cpu=4), inner("root", least=1), *(leaf(f"pg{number}", "root") for number in (1, 2)))
        harness.wait(3, *members_of("pg1", 3), *members_of("pg2", 1, node="n1"), *members_of("pg2", 2, first=1))
        assert bound(harness) == {"pg2": 3}

    def test_a_replacement_in_a_part_is_bound_alone(self):
        harness = Harness.of(node(cpu=9), inner("root"), *(leaf(f"pg{number}", "root") for number in (1, 2, 3)))
        harness.wait(3, *(pod for number in (1, 2, 3) for pod in members_of(f"pg{number}", 3)))
        harness.run_pods()
        harness.delete("default/pg1-0")
        harness.wait(5)
        assert harness.machine.assessments[ROOT].facts.degraded is False
        harness.wait(3, *members_of("pg1", 1, first=7))
        assert bound(harness) == {"pg1": 3, "pg2": 3, "pg3": 3}

    def test_another_part_that_is_whole_is_enough_if_that_of_the_quorum_cannot_be_bound(self):
        """Regression: the whole part was evicted with what was bound of the quorum, again and again."""
        harness = Harness()
        harness.add(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9, least=2), leaf("b", "root", least=2))
        harness.refuse_bind = lambda effect: (
            BindRefused(effect.uid, effect.node, Refused.DENIED, "no") if effect.name.startswith("a-") else None
        )
        harness.wait(60, *members_of("a", 2, owner=OWNER), *members_of("b", 2, owner=OWNER))
        assert bound(harness) == {"b": 2}
        assert harness.evicted == []
        assert harness.machine.gangs[ROOT].record.phase is Phase.SCHEDULED

    def test_what_a_refused_rollback_has_left_of_a_part_is_rolled_back_once_the_tree_is_scheduled(self):
        """Regression: the rollback of the quorum ended the part, and nothing rolled its last member back."""
        harness = Harness()
        harness.add(node(cpu=9), inner("root", least=1), leaf("a", "root", age=9, least=1), leaf("b", "root", least=2))
        refused = {"a-0": Refused.UNAVAILABLE, "b-1": Refused.DENIED}
        harness.refuse_bind = lambda effect: (
            BindRefused(effect.uid, effect.node, refused[effect.name], "no") if effect.name in refused else None
        )
        harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.BUDGET, "not now")
        harness.wait(25, *members_of("a", 1, owner=OWNER), *members_of("b", 2, owner=OWNER))
        del refused["a-0"]
        harness.wait(30)
        assert bound(harness) == {"a": 1, "b": 1}
        harness.refuse_eviction = lambda _: None
        harness.wait(90)
        harness.end_terminating()
        assert harness.evicted == ["default/b-0"]
        assert bound(harness) == {"a": 1}

    @pytest.mark.without("restarts", "standbys", why="a new leader does not know which member was refused")
    def test_what_was_a_part_beside_a_quorum_that_failed_belongs_to_the_next_quorum(self):
        """Regression: the part gave up, in each call, what the quorum had reserved, if one of its members had gone."""
        harness = Harness.of(node("n1", cpu=5), node("n2", cpu=5), inner("root", least=1))
        harness.add(leaf("a", "root", age=9, least=2), leaf("b", "root", least=2))
        refused = {"a-0": Refused.FORBIDDEN}
        harness.refuse_bind = lambda effect: (
            BindRefused(effect.uid, effect.node, refused[effect.name], "no") if effect.name in refused else None
        )
        harness.wait(30, *members_of("a", 2, owner=OWNER), *members_of("b", 1, owner=OWNER))
        harness.end_terminating()
        harness.wait(3, *members_of("a", 1, first=2, owner=OWNER), *members_of("b", 1, first=2, owner=OWNER))
        refused["a-0"] = Refused.UNAVAILABLE
        harness.wait(30, inner("root", least=2), *members_of("b", 1, first=8, owner=OWNER))
        harness.delete("default/b-0")
        harness.wait(5)
        refused.clear()
        harness.wait(60)
        assert bound(harness) == {"a": 2, "b": 2}

    @pytest.mark.without("standbys", "leaderless", "disorder", why="the story has its own restart")
    def test_a_part_that_a_raised_minimum_asks_for_is_bound_whole_or_not_at_all_after_a_restart_too(self):
        """Regression: what was never bound counted as lost, and lost members are replaced one by one."""
        harness = Harness.of(node(cpu=4), inner("root", least=1), leaf("a", "root", age=5), leaf("b", "root", least=2))
        harness.wait(400, *members_of("a", 3))
        harness.run_pods()
        harness.wait(400)
        harness.wait(60, inner("root", least=2), *members_of("b", 2, created=harness.now))
        harness.restart()
        harness.wait(120)
        assert bound(harness) == {"a": 3}
        harness.wait(30, node("n2", cpu=1))
        assert bound(harness) == {"a": 3, "b": 2}

    @pytest.mark.without("all", why="a call that ends before it has looked at every part")
    def test_a_part_that_a_call_did_not_reach_is_not_bound_in_part_later(self, monkeypatch):
        """Regression: members of such a part, and of one that was refused, were wanted one by one from then on."""
        monkeypatch.setattr(units, "CALL", units.CALL // 16)
        harness = Harness.of(*(node(f"n{number}", cpu=1) for number in range(40)), node("big", cpu=6))
        large = {name: leaf(name, "root", age=age, least=40) for name, age in (("p1", 5), ("p2", 4))}
        harness.add(inner("root", least=1), leaf("a", "root", age=9, least=1), *large.values(), leaf("p3", "root"))
        harness.wait(2, *members_of("a", 1))
        for first, name in enumerate(large):
            sizes = ["7", *(f"{140 * first + number}m" for number in range(1, 40))]
            harness.add(
                *(member for at, size in enumerate(sizes) for member in members_of(name, 1, first=at, cpu=size))
            )
        harness.wait(30, *members_of("p3", 3, cpu=2), pod("other", group="", cpu=1, node="big"))
        assert bound(harness) == {"a": 1, "other": 1}

    def test_a_tree_without_enough_whole_parts_is_degraded(self):
        harness = Harness.of(node(cpu=9), inner("root"), leaf("pg1", "root"), leaf("pg2", "root"))
        harness.wait(3, *members_of("pg1", 3), *members_of("pg2", 3))
        harness.run_pods()
        harness.delete("default/pg1-0")
        harness.wait(5)
        assert harness.machine.assessments[ROOT].facts.degraded
        harness.wait(5, leaf("pg3", "root"), *members_of("pg3", 3))
        assert bound(harness) == {"pg1": 2, "pg2": 3, "pg3": 3}
        assert not harness.machine.assessments[ROOT].facts.degraded

    def test_the_root_says_the_priority(self):
        harness = Harness()
        harness.add(inner("low", least=1, priority=1), leaf("a", "low", least=2, priority=9), *members_of("a", 2))
        harness.add(inner("high", least=1, priority=5), leaf("b", "high", least=2, priority=0), *members_of("b", 2))
        harness.wait(3, node(cpu=3))
        assert bound(harness) == {"b": 2}

    def test_the_root_says_the_topology(self):
        harness = Harness.of(*(node(f"n{number}", cpu=3, labels={"rack": f"r{number}"}) for number in (1, 2)))
        harness.add(inner("root", **under("rack")), leaf("a", "root", least=2), leaf("b", "root", least=2))
        harness.wait(3, *members_of("a", 2), *members_of("b", 2))
        assert bound(harness) == {}
        harness.wait(3, *(node(f"m{number}", cpu=1, labels={"rack": "r1"}) for number in (1, 2)))
        assert bound(harness) == {"a": 2, "b": 2}
        assert {harness.pod(name).node for name in harness.bound()} <= {"n1", "m1", "m2"}

    def test_a_tree_whose_objects_may_not_be_read_waits_and_says_so(self):
        harness = Harness()
        harness.hide(COMPOSITE, "gangsched may not read compositepodgroups.", denied=True)
        harness.wait(3, node(cpu=8), leaf("pg1", "root", least=2), *members_of("pg1", 2))
        assert told(harness, "pg1-0")[0] == "PodGroupUnreadable"
        harness.add(inner("root", least=1))
        harness.show(COMPOSITE)
        harness.wait(3)
        assert bound(harness) == {"pg1": 2}

    def test_a_group_of_the_roots_name_is_told_from_the_tree(self):
        harness = Harness.of(node(cpu=8), inner("x", least=1), leaf("pg1", "x", least=2), leaf("x", least=1))
        harness.wait(3, *members_of("pg1", 2), *members_of("x", 1))
        assert told(harness, "x-0")[0] == told(harness, "pg1-0")[0] == "Contradiction"

    def test_the_source_names_the_kind_of_the_root(self):
        harness = Harness.of(node(cpu=8), inner("root", least=1), leaf("pg1", "root", least=2), *members_of("pg1", 2))
        harness.wait(3)
        assert harness.machine.assessments[ROOT].terms.source == "native CompositePodGroup"
        assert harness.gang("default/root").record.satisfied == Minima(2, (("pg1", 2),))


def racks(**cpus: int) -> list[Node]:
    """One node of so many CPUs in each rack, named like zone, block (if any) and rack, such as z1_b1_r1."""
    made = []
    for name, cpu in cpus.items():
        parts = name.split("_")
        labels = {"zone": parts[0], "block": "_".join(parts[:2]), "rack": parts[-1]}
        made.append(node(name, cpu=cpu, labels=labels))
    return made


def where(harness: Harness) -> dict[str, set[str]]:
    """The nodes of each PodGroup's bound pods."""
    found: dict[str, set[str]] = {}
    for name in harness.bound():
        group = name.removeprefix("default/").rsplit("-", 1)[0]
        found.setdefault(group, set()).add(harness.pod(name).node)
    return found


def two(name: str, parent: str, **spec: Any) -> list[ForeignGroup | Pod]:
    """A PodGroup that needs two pods, and its two pods."""
    return [leaf(name, parent, least=2, **spec), *members_of(name, 2)]


class TestTheCasesOfKubeSchedulerWithTopology:
    """cpg_tas_test.go; composites need two groups, and groups two pods, unless said.

    Left out are those that preempt (950 to 1908), because gangsched preempts nothing.
    """

    def test_448_where_pods_are_bound_in_two_racks_gangsched_goes_on_in_that_with_most_of_them_and_says_so(self):
        """kube-scheduler gives up there; other groups of the tree are not concerned."""
        harness = Harness.of(*racks(z1_r1=9, z1_r2=9), inner("root", **under("zone")))
        harness.add(leaf("pg1", "root", least=4, **under("rack")), *two("pg2", "root", **under("rack")))
        harness.settle(*members_of("pg1", 2, node="z1_r1"), *members_of("pg1", 1, first=2, node="z1_r2"))
        harness.wait(3, *members_of("pg1", 1, first=3))
        assert harness.pod("default/pg1-3").node == "z1_r1"
        notes = {event.note.split(" and are")[0] for event in harness.events(Reason.TOPOLOGY_BROKEN)}
        assert notes == {"Members must be in one domain of the node label rack"}

    @pytest.mark.parametrize(
        ("top", "mid", "low"),
        [
            ("zone", "block", "rack"),
            ("zone", None, "rack"),
            (None, "zone", "rack"),
            ("zone", "rack", None),
        ],
        ids=["492", "602", "669", "771"],
    )
    def test_three_levels(self, top, mid, low):
        """Room for a part in each of two racks of a block, of which a zone has two, and traps that are too small."""
        harness = Harness.of(*racks(z1_b1_r1=4, z1_b1_r2=3, z1_b2_r3=4, z2_b3_r4=4, z2_b3_r5=4, z2_b4_r6=4, z2_b4_r7=4))
        levels = [under(key) if key is not None else {} for key in (top, mid, low)]
        harness.add(inner("root", **levels[0]))
        harness.add(*(inner(sub, "root", **levels[1]) for sub in ("sub1", "sub2")))
        groups = {"pg1": "sub1", "pg2": "sub1", "pg3": "sub2", "pg4": "sub2"}
        harness.wait(3, *(thing for name, sub in groups.items() for thing in two(name, sub, **levels[2])))
        found = where(harness)
        assert found.keys() == groups.keys()
        parts = {
            "root": set(groups),
            "sub1": {"pg1", "pg2"},
            "sub2": {"pg3", "pg4"},
            **{name: {name} for name in groups},
        }
        wanted = {"root": top, "sub1": mid, "sub2": mid, **dict.fromkeys(groups, low)}
        for part, names in parts.items():
            if wanted[part] is not None:
                nodes = {each for name in names for each in found[name]}
                assert len({dict(harness.nodes[each].labels)[wanted[part]] for each in nodes}) == 1, part

    def test_853_a_bound_pod_decides_the_rack_of_a_subtree(self):
        harness = Harness.of(*racks(z1_r1=4, z1_r2=4, z2_r3=4, z2_r4=4), inner("root", **under("zone")))
        harness.add(inner("sub1", "root", **under("rack")), inner("sub2", "root", **under("rack")))
        harness.add(leaf("pg1", "sub1", least=2), *two("pg2", "sub1"), *two("pg3", "sub2"), *two("pg4", "sub2"))
        harness.wait(3, *members_of("pg1", 1, node="z2_r3"), *members_of("pg1", 1, first=1))
        assert where(harness) == {"pg1": {"z2_r3"}, "pg2": {"z2_r3"}, "pg3": {"z2_r4"}, "pg4": {"z2_r4"}}


class TestTopologyBelowTheRoot:
    def test_members_above_the_minimum_stay_in_the_domain_of_their_group(self):
        harness = Harness.of(*racks(z1_r1=3, z1_r2=9), pod("blocker", group="", cpu=7, node="z1_r2"))
        harness.wait(3, inner("root", least=1), leaf("pg1", "root", least=3, **under("rack")), *members_of("pg1", 5))
        assert bound(harness)["pg1"] == 3
        assert where(harness)["pg1"] == {"z1_r1"}
        assert told(harness, "pg1-4")[0] == "Unschedulable"

    def test_a_part_above_the_minimum_has_a_domain_of_its_own_inside_that_of_the_tree(self):
        harness = Harness.of(*racks(z1_r1=2, z1_r2=2, z2_r3=2), inner("root", least=2, **under("zone")))
        names = ("pg1", "pg2", "pg3")
        harness.wait(3, *(thing for name in names for thing in two(name, "root", **under("rack"))))
        assert sorted(where(harness).values(), key=str) == [{"z1_r1"}, {"z1_r2"}]
        harness.wait(3, *racks(z1_r9=2))
        assert sorted(where(harness).values(), key=str) == [{"z1_r1"}, {"z1_r2"}, {"z1_r9"}]

    def test_a_group_whose_members_were_all_lost_gets_one_domain_again(self):
        harness = Harness.of(*racks(z1_r1=2, z1_r2=2, z1_r3=1, z1_r4=1), inner("root", least=2))
        harness.wait(3, *two("pg1", "root", **under("rack")), *two("pg2", "root", **under("rack")))
        harness.run_pods()
        harness.delete("default/pg1-0", "default/pg1-1")
        harness.wait(5)
        harness.wait(5, *members_of("pg1", 2, first=5))
        assert len(where(harness)["pg1"]) == 1


class TestPodsOfAnotherScheduler:
    @pytest.mark.parametrize("theirs_first", [False, True])
    def test_the_pod_and_the_tree_are_told(self, theirs_first):
        harness = Harness()
        theirs = members_of("pg2", 1, first=2, scheduler="default-scheduler")
        if theirs_first:
            harness.settle(*theirs)
        harness.add(node(cpu=20), inner("root"), leaf("pg1", "root"), leaf("pg2", "root"))
        harness.settle(*members_of("pg1", 3), *members_of("pg2", 2))
        harness.wait(60, *theirs)
        notes = {event.name: event.note for event in harness.emitted if event.reason == "ForeignMember"}
        assert notes.keys() == {"pg2-2", "pg1-0"}
        assert notes["pg2-2"].startswith("The pod names the group pg2, which is a part of the group root, but its ")
        assert "field spec.schedulingGroup.podGroupName" in notes["pg2-2"]
        assert "1 pod does not count, because its schedulerName is default-scheduler" in told(harness, "pg1-0")[1]
        assert bound(harness) == {}


class TestKai:
    """KAI's subgroups are the same tree in one object."""

    def test_some_of_the_subgroups_are_enough_and_the_others_are_bound_whole(self):
        harness = Harness.of(node(cpu=5), subgroups({"a": 2, "b": 2, "c": 2}, least=2))
        harness.wait(3, *(each for name in "abc" for each in in_subgroup(name, 2)))
        assert bound(harness) == {"a": 2, "b": 2}
        harness.wait(3, node("n2", cpu=1))
        assert bound(harness) == {"a": 2, "b": 2, "c": 2}

    def test_a_pod_without_a_subgroup_comes_after_what_is_needed(self):
        harness = Harness()
        harness.wait(3, node(cpu=3), subgroups({"a": 2, "b": 2}, least=1), *in_subgroup("", 1), *in_subgroup("b", 2))
        assert bound(harness) == {"b": 2, "g": 1}


def subgroups(minima: dict[str, int], *, least: int, key: str = "") -> ForeignGroup:
    constraint = {"topologyConstraint": {"requiredTopologyLevel": key}} if key else {}
    parts = [{"name": name, "minMember": number} | constraint for name, number in minima.items()]
    return served_group("kai", "g", {"minSubGroup": least, "subGroups": parts}, uid="u")


def in_subgroup(name: str, count: int) -> list[Pod]:
    labels = {"kai.scheduler/subgroup-name": name} if name else {}
    said = DEFAULT.declaration(labels, {"pod-group-name": "g"})
    return [pod(f"{name or 'g'}-{number}", group="", declaration=said) for number in range(count)]


class TestManyParts:
    def test_parts_that_are_alike_are_not_tried_one_after_the_other(self):
        """Regression: the search ended with SearchExhausted after 128 choices of the same kind."""
        harness = Harness.of(node(cpu=4), inner("root", least=4))
        for number in range(20):
            harness.add(leaf(f"large{number}", "root", least=1, age=9), *members_of(f"large{number}", 1, cpu=3))
        for number in range(10):
            harness.add(leaf(f"small{number}", "root", least=1), *members_of(f"small{number}", 1))
        harness.wait(5)
        assert len(bound(harness)) == 4
        assert all(name.startswith("small") for name in bound(harness))

    def test_that_none_of_them_fits_is_certain(self):
        harness = Harness.of(node(cpu=9), inner("root", least=4))
        for number in range(30):
            harness.add(leaf(f"g{number}", "root", least=2), *members_of(f"g{number}", 2, cpu=2 + number % 3))
        harness.wait(5)
        assert bound(harness) == {}
        assert "within the limit of the search" not in told(harness, "g0-0")[1]


@pytest.mark.without("all", why="it is about what a process does that goes on")
@pytest.mark.parametrize("hidden", [(NATIVE,), (COMPOSITE, NATIVE), (NATIVE, COMPOSITE)], ids="+".join)
def test_a_tree_is_tried_again_once_its_groups_can_be_read_again(hidden: tuple[str, ...]) -> None:
    """Regression: nothing looked at it again, and it waited for ever with PodGroupUnreadable."""
    harness = Harness.settled(node(cpu=8), inner("root", least=1), leaf("a", "root", least=2))
    for dialect in hidden:
        harness.hide(dialect, "the server says 503")
    harness.wait(5, *members_of("a", 2))
    assert harness.pod("default/a-0").condition_reason == "PodGroupUnreadable"
    for dialect in hidden:
        harness.show(dialect)
        harness.wait(1)
    harness.wait(600)
    assert harness.bound() == ["default/a-0", "default/a-1"]


def test_the_podgroup_that_records_a_basic_tree_can_be_read() -> None:
    """Regression: its maxScheduleTime was none that a PodGroup may have."""
    harness = Harness.of(node(cpu=9), inner("root", least=None), leaf("a", "root", least=3), leaf("b", "root", least=3))
    harness.refuse_bind = lambda each: (
        BindRefused(each.uid, each.node, Refused.UNAVAILABLE, "no") if each.name == "a-2" else None
    )
    harness.wait(1, *members_of("a", 3))
    assert harness.group("default/root").error == ""
