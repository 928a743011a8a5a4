"""The machine's interface: lists that replace the known state, objects that come and go, and values for metrics."""

from __future__ import annotations

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import (
    BudgetGone,
    BudgetsReplaced,
    DemandsReplaced,
    Event,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NamespaceGone,
    NamespaceSeen,
    NamespacesReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    PriorityClassGone,
    PriorityClassSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import BindRefused, PodBound, Refused, StatusRefused, StatusWritten
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.objects.stats import Stage
from tests.builders import foreign_group, group, key, label_pairs, node, pod, pods


def synced(*events: Event) -> Machine:
    machine = Machine(Policy())
    machine.handle([*events, Synced()], 1000.0)
    return machine


def bindings(machine: Machine, *events: Event, now: float = 1000.0) -> list[tuple[str, str]]:
    effects = machine.handle(list(events), now)
    assert machine.validate() == []
    return [(effect.name, effect.node) for effect in effects if isinstance(effect, BindPod)]


def test_a_list_of_pods_forgets_who_is_not_in_it_and_frees_the_room():
    machine = synced(NodeSeen(node(cpu=2)), PodSeen(pod("old", group="", node="n1", cpu=2)), PodSeen(pod("gone-0")))
    plain = pod("new", group="", cpu=2)
    assert bindings(machine, PodsReplaced((plain,))) == [("new", "n1")]
    assert set(machine.cluster.pods) == {plain.uid}
    assert set(machine.gangs) == {key("new")._replace(pod_uid=plain.uid)}


def test_a_list_of_nodes_forgets_who_is_not_in_it():
    machine = synced(NodeSeen(node("n1")), NodeSeen(node("n2")))
    assert bindings(machine, NodesReplaced((node("n3"),)), PodSeen(pod("p", group=""))) == [("p", "n3")]


def test_a_list_of_podgroups_forgets_who_is_not_in_it():
    machine = synced(NodeSeen(node()), GroupSeen(group("a")), GroupSeen(group("b", min_member=1)))
    assert bindings(machine, GroupsReplaced((group("b", min_member=1),)), *map(PodSeen, pods("b", 1))) == [
        ("b-0", "n1")
    ]
    assert set(machine.gangs) == {key("b")}


def test_a_list_of_priority_classes_replaces_those_known():
    a = group("a", min_member=1, priority_class="old")
    machine = synced(PriorityClassSeen("old", PriorityClass(5)), NodeSeen(node()), GroupSeen(a))
    machine.handle([PriorityClassesReplaced((("new", PriorityClass(1)),))], 1000.0)
    assert bindings(machine, *map(PodSeen, pods("a", 1))) == []
    assert bindings(machine, PriorityClassSeen("old", PriorityClass(1))) == [("a-0", "n1")]


KEEPS_OUT = PodTerm(
    "host", (Requirement("app", "In", ("x",)),), namespace_selector=(Requirement("team", "In", ("t",)),)
)


@pytest.mark.parametrize(
    "event",
    [
        NamespaceGone("default"),
        NamespaceSeen("default", label_pairs({"team": "u"})),
        NamespacesReplaced(()),
        NamespacesReplaced((NamespaceSeen("default", label_pairs({"team": "u"})),)),
    ],
)
def test_a_namespace_whose_labels_change_lets_in_whom_anti_affinity_kept_out(event):
    machine = synced(
        NamespaceSeen("default", label_pairs({"team": "t"})),
        NodeSeen(node(labels={"host": "h"})),
        PodSeen(pod("other/keeper", group="", node="n1", anti_affinity=[KEEPS_OUT])),
        PodSeen(pod("p", group="", labels={"app": "x"})),
    )
    assert bindings(machine, TimePassed()) == []
    assert bindings(machine, event) == [("p", "n1")]


@pytest.mark.parametrize(
    "event",
    [
        PodGone("nobody"),
        NodeGone("nowhere"),
        GroupGone(key("none")),
        NamespaceGone("none"),
        PriorityClassGone("none"),
        BudgetGone("default/none"),
        PodBound("nobody", "n1"),
        BindRefused("nobody", "n1", Refused.GONE, "gone"),
        BindRefused(pod("a-0").uid, "elsewhere", Refused.FORBIDDEN, "no"),
        PodBound(pod("a-0").uid, "elsewhere"),
        StatusWritten(key("none"), "5", reserved=True),
        StatusRefused(key("none"), stale=True),
        TimePassed(),
    ],
)
def test_news_of_what_is_unknown_or_outdated_changes_nothing(event):
    machine = synced(NodeSeen(node()), GroupSeen(group("a", min_member=1)), *map(PodSeen, pods("a", 1)))
    (binding,) = machine.gangs[key("a")].operations.bindings.values()
    machine.handle([event], 1000.0)
    assert machine.validate() == []
    assert machine.gangs[key("a")].operations.bindings[binding.pod.uid] is binding
    assert binding.state == "Sent"


def test_stats_count_groups_by_phase_and_plain_pods_only_as_waiting():
    machine = synced(
        NodeSeen(node(cpu=1)),
        GroupSeen(group("a", min_member=1)),
        GroupSeen(group("b", min_member=2)),
        *map(PodSeen, (*pods("a", 1), *pods("b", 2), pod("p", group="", created=9.0))),
    )
    stats = machine.stats()
    assert (stats.pods, stats.nodes, dict(stats.phases)) == (4, 1, {"Binding": 1, "Queued": 1})
    assert (stats.waiting, stats.parked) == (2, 2)
    assert dict(stats.refusals) == {"NeverFits": 1, "Unschedulable": 1}


def test_waits_are_the_seconds_from_complete_to_bound_and_are_taken_once():
    machine = synced(GroupSeen(group("a", min_member=1)), *map(PodSeen, pods("a", 1)))
    machine.handle([NodeSeen(node())], 1007.5)
    machine.handle([PodBound(pod("a-0").uid, "n1")], 1008.0)
    assert machine.take_measured().waits == [(0, 8.0)]
    assert machine.take_measured().waits == []


def test_validate_names_a_binding_that_is_not_counted():
    machine = synced(NodeSeen(node()), GroupSeen(group("a", min_member=1)), *map(PodSeen, pods("a", 1)))
    machine.cluster.forget(pod("a-0").uid)
    assert machine.validate() == ["default/a: uid-default/a-0 is bound to n1 but counted on "]


def test_equal_events_give_equal_effects():
    events: list[Event] = [NodeSeen(node()), *(GroupSeen(group(name, min_member=2)) for name in "abcd"), Synced()]
    events += [PodSeen(member) for name in "dcba" for member in pods(name, 3)]
    assert Machine(Policy()).handle(events, 1.0) == Machine(Policy()).handle(events, 1.0)


def test_a_member_that_changes_its_group_while_its_binding_is_on_the_way_takes_it_along():
    machine = synced(NodeSeen(node()), GroupSeen(group("a", min_member=1)), GroupSeen(group("b", min_member=1)))
    assert bindings(machine, *map(PodSeen, pods("a", 1))) == [("a-0", "n1")]
    assert bindings(machine, PodSeen(pod("a-0", group="b"))) == []
    assert machine.cluster.node_of(pod("a-0").uid) == "n1"
    machine.handle([PodBound(pod("a-0").uid, "n1")], 1000.0)
    assert machine.gangs[key("b")].record.phase == "Scheduled"
    assert machine.gangs[key("a")].record.phase == "Pending"


def test_places_held_later_are_made_durable_anew():
    machine = synced(NodeSeen(node()), GroupSeen(group("a", min_member=2)))
    assert bindings(machine, *map(PodSeen, pods("a", 2))) == [("a-0", "n1"), ("a-1", "n1")]
    refused = BindRefused(pod("a-1").uid, "n1", Refused.UNAVAILABLE, "no")
    machine.handle([PodBound(pod("a-0").uid, "n1"), refused], 1000.0)
    machine.handle([StatusWritten(key("a"), "2", reserved=True)], 1000.0)
    assert bindings(machine, TimePassed(), now=1000.25) == [("a-1", "n1")]
    assert bindings(machine, PodGone(pod("a-1").uid), *map(PodSeen, pods("a", 1, first=2)), now=1001.0) == [
        ("a-2", "n1")
    ]
    machine.handle([BindRefused(pod("a-2").uid, "n1", Refused.UNAVAILABLE, "no")], 1001.0)
    assert bindings(machine, TimePassed(), now=1002.0) == []
    assert bindings(machine, StatusWritten(key("a"), "3", reserved=True), now=1002.0) == [("a-2", "n1")]


def everything() -> list[Event]:
    """At least one fact of every kind, and pods in every state."""
    return [
        NamespacesReplaced((NamespaceSeen("default", label_pairs({"a": "b"})),)),
        PriorityClassesReplaced((("high", PriorityClass(5)),)),
        BudgetsReplaced((DisruptionBudget("default", "b", (), allowed=1),)),
        NodesReplaced((node("n1"), node("n2", unschedulable=True))),
        GroupsReplaced((group("g", min_member=2), group("broken", error="no minMember"), group("empty"))),
        ForeignGroupsReplaced("volcano", (foreign_group("volcano", "v"),)),
        ForeignGroupsReplaced("coscheduling", ()),
        ForeignGroupsHidden("coscheduling", "may not be read"),
        DemandsReplaced(()),
        PodsReplaced(
            (
                *pods("g", 2),
                pod("gated", group="g", gated=True),
                pod("ends", group="g", terminating=True),
                pod("over", group="g", phase="Succeeded", node="n1"),
                pod("there", group="", scheduler="x", node="n1"),
                pod("beyond", group="", scheduler="x", node="not seen"),
                pod("nominated", group="", scheduler="x", nominated_node="n1", priority=1),
                pod("undeclared", group="nobody"),
            )
        ),
    ]


def test_a_successor_that_is_given_the_facts_decides_as_one_that_lists_everything():
    """Steps: a machine has seen a fact of every kind and decides; its facts go to a second machine, then to a third."""
    first = synced(*everything())
    effects = {}
    for name, facts in {
        "lists": everything(),
        "facts": first.facts(),
        "its own": synced(*first.facts()).facts(),
    }.items():
        machine = Machine(Policy())
        effects[name] = machine.handle([*facts, Synced()], 2000.0)
        assert machine.validate() == []
        assert machine.facts() == first.facts()
    assert effects["facts"] == effects["its own"] == effects["lists"]
    assert any(isinstance(effect, BindPod) for effect in effects["facts"])


def test_a_successor_knows_a_binding_that_was_answered_and_not_yet_shown_by_the_watch():
    """Steps: two bindings are decided, one is answered, and the lease is lost before the watch shows it."""
    machine = synced(NodeSeen(node("n1", cpu=1)), NodeSeen(node("n2", cpu=1)))
    members = pods("a", 2, cpu=1)
    given = dict(bindings(machine, GroupSeen(group("a", min_member=2)), *map(PodSeen, members)))
    machine.handle([PodBound(members[0].uid, given["a-0"])], 1001.0)
    heir = Machine(Policy())
    heir.handle(machine.facts(), 1001.0)
    assert bindings(heir, Synced(), now=1002.0) == [("a-1", given["a-1"])]


@pytest.mark.parametrize(
    ("found", "node_after"),
    [
        ([], None),
        ([pod("a-0", group="a", terminating=True)], "n1"),
        ([pod("a-0", group="a", phase="Failed")], "n1"),
        ([pod("a-0", group="a", gated=True)], "n1"),
        ([pod("a-0", group="a", scheduler="other")], ""),
        ([pod("a-0", group="", scheduler="other")], ""),
        ([pod("a-0", group="a", node="n2")], "n2"),
    ],
    ids=["gone", "terminating", "ended", "gated", "another scheduler's", "nobody's", "bound elsewhere"],
)
@pytest.mark.parametrize("leads", [True, False])
def test_news_of_an_earlier_terms_binding_do_no_harm_whatever_has_become_of_the_pod(found, node_after, leads):
    """A binding without a result is read back; meanwhile the watch may have shown that the pod ended."""
    machine = Machine(Policy())
    start: list[Event] = [NodeSeen(node("n1")), NodeSeen(node("n2")), GroupSeen(group("a", min_member=2))]
    machine.handle([*start, *map(PodSeen, found), *([Synced()] if leads else [])], 1000.0)
    machine.handle([PodBound(pod("a-0").uid, "n1")], 1001.0)
    machine.handle([Synced()], 1001.0)
    assert machine.validate() == []
    known = machine.cluster.pods.get(pod("a-0").uid)
    assert (known.node if known is not None else None) == node_after
    machine.handle([PodGone(pod("a-0").uid)], 1002.0)
    assert machine.validate() == []


def test_it_says_how_many_members_a_gang_lacks_to_which_a_new_pod_comes():
    machine = synced(NodeSeen(node("n1")), GroupSeen(group("a", min_member=3)), PodSeen(pod("a-0")))
    assert machine.lacking(pod("a-1")) == (key("a"), 2)
    assert machine.lacking(pod("a-0")) is None, "a member that it has already"
    assert machine.lacking(pod("b-0", group="b")) is None, "a gang that is not known"
    assert machine.lacking(pod("plain", group="")) is None
    machine.handle([PodSeen(pod("a-1")), PodSeen(pod("a-2"))], 1000.0)
    assert machine.lacking(pod("a-3")) is None, "a gang that lacks none"


def test_the_stages_of_a_call_are_told_in_order_and_what_it_has_spent_of_its_budget():
    told: list[Stage | None] = []
    machine = Machine(Policy(), passed=told.append)
    machine.handle([Synced(), NodeSeen(node())], 1000.0)
    told.clear()
    machine.handle([GroupSeen(group("a", min_member=1)), *map(PodSeen, pods("a", 1))], 1001.0)
    assert told == [None, Stage.EVENTS, Stage.UPKEEP, Stage.PLAN, Stage.STATUS]
    assert 0 < machine.take_measured().budget < 1


def test_what_is_reserved_and_what_a_part_of_a_group_takes_are_told_by_resource():
    machine = synced(NodeSeen(node()), GroupSeen(group("a", min_member=2)), *map(PodSeen, pods("a", 2, cpu=2)))
    assert dict(machine.stats().held)["cpu"] == 4000
    assert machine.stats().idle == {}
    machine.handle([PodBound(pod("a-0").uid, "n1"), PodSeen(pod("a-0", cpu=2, node="n1"))], 1002.0)
    stats = machine.stats()
    assert (stats.held["cpu"], stats.idle["cpu"], stats.partial) == (2000, 2000, 1)
    machine.handle([PodBound(pod("a-1").uid, "n1"), PodSeen(pod("a-1", cpu=2, node="n1"))], 1005.0)
    stats = machine.stats()
    assert (stats.held, stats.idle, stats.partial) == ({}, {}, 0)
    assert machine.take_measured().partial_s == [3.0]
