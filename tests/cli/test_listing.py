"""The output of `list` and `top`, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.cli.explain_all import as_json, copied, text, waiting
from gangsched.cli.explain_all import elsewhere as elsewhere_of
from gangsched.cli.group_reader import Reading
from gangsched.cli.leaders import Leaders
from gangsched.cli.top import page, screen
from gangsched.cli.visible_groups import elsewhere, rows
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.events import Event, GroupsReplaced, NodesReplaced, PodsReplaced, Synced
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome, Phase, Record
from gangsched.core.objects.status import Condition, GroupStatus
from gangsched.views.cluster_overview import as_object, look
from gangsched.views.decided_copy import decided
from gangsched.views.diagnosis import from_cluster
from gangsched.views.timeline import Stage
from tests.builders import group, node, pod

NOW = 1_000_000.0


def events(*, nodes=(), groups=(), pods=()) -> list[Event]:
    return [NodesReplaced(tuple(nodes)), GroupsReplaced(tuple(groups)), PodsReplaced(tuple(pods)), Synced()]


def status(phase: Phase, reason: str, since: float, *, degraded: float = 0.0, **fields) -> GroupStatus:
    scheduled = Condition("Scheduled", bool(degraded), reason, "why", since)
    more = (Condition("Degraded", True, "MembersMissing", "gone", degraded),) if degraded else ()
    return GroupStatus(Record(phase=phase), (scheduled, *more), **fields)


def listed(**objects):
    return rows(Reading(group=None, events=events(**objects)), policy=Policy(), now=NOW)


def test_what_waits_longest_comes_first_whatever_it_waits_for():
    found = listed(
        groups=[
            group("runs", min_member=1, status=status(Phase.RUNNING, "Scheduled", NOW - 900)),
            group("queued", min_member=1, status=status(Phase.QUEUED, "Unschedulable", NOW - 20)),
            group("lost", min_member=1, status=status(Phase.DEGRADED, "Scheduled", NOW - 900, degraded=NOW - 30)),
            group("new", min_member=1, created=NOW - 10),
            group("failed", min_member=1, status=status(Phase.FAILED, "Failed", NOW - 800)),
            group("stopped", min_member=1, status=status(Phase.SUSPENDED, "Suspended", NOW - 800)),
            group("backing-off", min_member=1, status=status(Phase.TIMED_OUT, "TimedOut", NOW - 300)),
        ]
    )
    assert [row.key.name for row in found] == ["backing-off", "lost", "queued", "new", "failed", "runs", "stopped"]
    assert [round(NOW - row.since) if row.since else None for row in found] == [300, 30, 20, 10, None, None, None]
    assert [row.reason for row in found][1:4] == ["MembersMissing", "Unschedulable", ""]


def test_members_are_counted_by_what_there_is_and_not_by_a_status_of_before():
    stale = status(Phase.QUEUED, "Unschedulable", NOW - 20, members=9, bound=7)
    [found] = listed(groups=[group("a", min_member=3, status=stale)], pods=[pod("a-0", node="n1"), pod("a-1")])
    assert (found.members, found.minimum, found.bound, list(found.pods)) == (2, 3, 1, ["a-0", "a-1"])


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        ([""], []),
        (["", "gangsched-try"], ["1 PodGroup", "--scheduler-name gangsched-try"]),
        (["b", "a", "b"], ["3 PodGroups", "a, b", "--scheduler-name NAME"]),
    ],
)
@pytest.mark.parametrize("told", [True, False])
def test_podgroups_of_other_installations_are_counted_and_it_is_said_how_to_see_them(owners, said, told):
    """Tried as a new user: beside `gangsched try`, `gangsched list` said that there are no groups."""
    groups = [
        group(f"g{at}", min_member=1, status=status(Phase.QUEUED, "Unschedulable", NOW, scheduler=owner))
        for at, owner in enumerate(owners)
    ]
    reading = Reading(group=None, events=events(groups=groups), told=told)
    found = rows(reading, policy=Policy(), now=NOW)
    assert len(found) == owners.count("")
    sentence = elsewhere(reading, found)
    assert bool(sentence) is bool(said)
    assert all(part in sentence for part in said)


def test_without_the_right_to_see_pods_the_status_counts():
    told = status(Phase.QUEUED, "Unschedulable", NOW - 20, members=9, bound=7)
    listed = GroupsReplaced((group("a", min_member=3, status=told),))
    [found] = rows(Reading(group=None, events=[listed, Synced()], forbidden="no"), policy=Policy(), now=NOW)
    assert (found.members, found.minimum, found.bound) == (9, 3, 7)


@pytest.mark.parametrize(
    ("pods", "phase", "reason"),
    [
        ([{}], Phase.PENDING, ""),
        ([{"condition_reason": "GangIncomplete"}], Phase.PENDING, "GangIncomplete"),
        ([{}, {"condition_reason": "Unschedulable"}], Phase.QUEUED, "Unschedulable"),
        ([{"node": "n1"}, {"condition_reason": "Unschedulable"}], Phase.DEGRADED, "Unschedulable"),
        ([{"node": "n1"}, {"node": "n1"}], Phase.SCHEDULED, ""),
    ],
)
def test_a_gang_that_only_its_pods_declare_is_told_by_them(pods, phase, reason):
    declaration = Declaration(group="bare", min_member=2)
    made = [
        pod(f"bare-{number}", declaration=declaration, created=NOW - 5 + number, **fields)
        for number, fields in enumerate(pods)
    ]
    [found] = listed(nodes=[node()], pods=[*made, pod("plain", group="")])
    assert (found.key.name, found.declared, found.phase, found.reason) == ("bare", False, phase, reason)
    assert (found.members, found.minimum) == (len(pods), 2)
    assert bool(found.since) is (phase is not Phase.SCHEDULED)


_CONTRARY = Declaration(group="bare", min_member=3)
_TOO_LARGE = {"cpu": "99"}


@pytest.mark.parametrize(
    ("pods", "phase"),
    [
        pytest.param([{}], Phase.PENDING, id="incomplete"),
        pytest.param([{}, {"declaration": _CONTRARY}], Phase.PENDING, id="contradiction"),
        pytest.param(
            [{"node": "n1"}, {"node": "n1", "declaration": _CONTRARY}], Phase.PENDING, id="contradiction, bound"
        ),
        pytest.param([{}, {"declaration": Declaration(group="bare", error="no")}], Phase.PENDING, id="invalid"),
        pytest.param([{"condition_reason": "OwnerUnknown"}] * 2, Phase.PENDING, id="unread by the operator"),
        pytest.param([{}, {}], Phase.QUEUED, id="about to be bound"),
        pytest.param([_TOO_LARGE] * 2, Phase.QUEUED, id="without room"),
        pytest.param([{"node": "n1"}, {}], Phase.DEGRADED, id="about to be whole"),
        pytest.param([{"node": "n1"}, _TOO_LARGE], Phase.DEGRADED, id="lacks a member"),
        pytest.param([{"node": "n1"}], Phase.DEGRADED, id="has lost a member"),
        pytest.param([{"node": "n1", "bound_at": NOW - 1}, _TOO_LARGE], Phase.DEGRADED, id="quorum begun"),
        pytest.param([{"node": "n1"}] * 2, Phase.SCHEDULED, id="bound"),
        pytest.param([{"node": "n1", "phase": "Running"}] * 2, Phase.RUNNING, id="runs"),
    ],
)
def test_every_command_tells_the_same_phase_of_a_gang_that_only_its_pods_declare(pods, phase):
    """Regression: `list` said Queued and `explain` Pending where two pods contradict each other."""
    given = {"declaration": Declaration(group="bare", min_member=2), "created": NOW - 5}
    made = [pod(f"bare-{number}", **{**given, **fields}) for number, fields in enumerate(pods)]
    told = events(nodes=[node("n1")], pods=made)
    found = from_cluster(told, GroupKey("default", "bare"), policy=Policy(), now=NOW)
    assert found is not None
    [overview] = look(decided(told, policy=Policy(), now=NOW)).groups
    [row] = listed(pods=made)
    assert {found.phase, overview.phase, row.phase} == {phase}
    assert {each.phase for each in waiting(copied(told, policy=Policy(), now=NOW))} <= {phase}


_NO_GROUP: dict[str, Any] = {"declaration": Declaration(group="bare")}
_INVALID: dict[str, Any] = {"declaration": Declaration(group="bare", error="no")}


@pytest.mark.parametrize(
    ("pods", "groups", "minimum"),
    [
        pytest.param([_NO_GROUP] * 2, [], 0, id="its PodGroup does not exist"),
        pytest.param([_NO_GROUP | {"node": "n1"}] * 2, [], 0, id="its PodGroup was deleted"),
        pytest.param([_INVALID] * 2, [], 0, id="invalid"),
        pytest.param([{"declaration": Declaration(group="bare", min_member=3)}], [], 3, id="declared by pods"),
        pytest.param([_NO_GROUP], [group("bare", min_member=3)], 3, id="declared"),
    ],
)
def test_every_command_tells_the_same_minimum_and_reason(pods, groups, minimum):
    """Regression: `list` said 2/1 members of a group whose minimum nobody knows, and no reason if they were bound."""
    made = [pod(f"bare-{number}", created=NOW - 5, **fields) for number, fields in enumerate(pods)]
    told = events(nodes=[node("n1")], pods=made, groups=groups)
    found = from_cluster(told, GroupKey("default", "bare"), policy=Policy(), now=NOW)
    assert found is not None
    [overview] = look(decided(told, policy=Policy(), now=NOW)).groups
    [row] = listed(pods=made, groups=groups)
    assert {found.minimum, overview.minimum, row.minimum} == {minimum}
    assert row.numbers == f"{len(pods)}/{minimum or '-'}"
    assert Stage.COMPLETE not in {each.stage for each in row.moments}
    if all(each.node for each in made):
        assert {found.reason, overview.reason, row.reason} == {"PodGroupNotFound"}
        assert {found.message, overview.message, row.message} == {found.message}


def test_every_command_tells_that_the_operator_has_yet_to_bind_what_fits():
    """Regression: `explain` without a name told the phase of the copy, which is as good as bound."""
    queued = group("a", min_member=2, status=status(Phase.QUEUED, "Unschedulable", NOW - 5))
    declared = [pod(f"a-{number}", group="a") for number in range(2)]
    for pods in (declared, [pod("lone", group="")]):
        told = events(nodes=[node("n1")], groups=[queued] if pods is declared else (), pods=pods)
        [each] = waiting(copied(told, policy=Policy(), now=NOW))
        found = from_cluster(told, each.key, policy=Policy(), now=NOW)
        assert found is not None
        assert (each.phase, each.reason, each.message) == (found.phase, found.reason, found.message)
        assert found.phase == Phase.QUEUED


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED, Phase.SUSPENDED])
def test_what_has_ended_does_not_wait(phase):
    """Regression: `explain` without a name, which shows what waits, told of every group that had succeeded."""
    ended = Record(phase=phase, outcome=Outcome.FAILED if phase is Phase.FAILED else Outcome.SUCCEEDED)
    there = group("a", min_member=2, status=GroupStatus(ended))
    assert [row.since for row in listed(groups=[there])] == [0.0]
    assert not [*waiting(copied(events(groups=[there]), policy=Policy(), now=NOW))]


def test_what_waits_for_other_schedulers_is_told_by_their_names():
    """Of a group whose pods have a misspelt schedulerName, `explain` without a name said that nothing waits."""
    queued = partial(status, Phase.QUEUED, "Unschedulable", NOW)
    several = [group(f"g{at}", min_member=1, status=queued(scheduler="b")) for at in range(4)]
    runs = group("runs", min_member=1, status=status(Phase.RUNNING, "Scheduled", NOW, scheduler="b"))
    other = group("other/h", min_member=1, status=queued(scheduler="a"))
    told = events(groups=[*several, other, runs])
    machine = copied(told, policy=Policy(), now=NOW)
    assert elsewhere_of(told, machine, "other") == {"a": ["other/h"]}
    others = elsewhere_of(told, machine)
    assert others == {"a": ["other/h"], "b": [f"default/g{at}" for at in range(4)]}
    leaders = Leaders(("One leads.",), leads=True)
    *_, of_a, of_b = text([], others, leaders, 200)
    assert of_a == (
        "Not listed: 1 waiting PodGroup of the schedulerName a (other/h); ask about one by name, or with "
        "--scheduler-name a."
    )
    assert "4 waiting PodGroups of the schedulerName b (default/g0, default/g1, default/g2 and 1 more);" in of_b
    assert as_json([], others, leaders)["elsewhere"] == [
        {"schedulerName": "a", "podGroups": ["other/h"]},
        {"schedulerName": "b", "podGroups": others["b"]},
    ]


def test_a_group_whose_pods_another_scheduler_has_refused_is_told():
    pods = [pod("a-0", scheduler="gangshed", condition_reason="Unschedulable")]
    told = events(groups=[group("a", min_member=1)], pods=pods)
    assert elsewhere_of(told, copied(told, policy=Policy(), now=NOW)) == {"gangshed": ["default/a"]}


def test_a_group_without_members_waits_whatever_its_minimum():
    """Regression: what a former run had made of its minimum hid it from `explain` without a name."""
    former = Record(phase=Phase.PENDING, run_start=NOW - 9, scheduled_at=NOW - 8, outcome=Outcome.UNDECIDED)
    there = group("a", min_member=2, status=GroupStatus(former), created=NOW - 9)
    assert [(row.phase, bool(row.since)) for row in listed(groups=[there])] == [(Phase.PENDING, True)]
    [found] = waiting(copied(events(groups=[there]), policy=Policy(), now=NOW))
    assert (found.key.name, found.phase, found.reason, found.members) == ("a", Phase.PENDING, "NoMembers", 0)


def test_all_of_many_groups_are_seen_and_explained():
    """Regression: one call of the machine is bounded, and with 51 groups `explain` failed with a KeyError."""
    many = 120
    groups = [group(f"g{number:03}", min_member=2) for number in range(many)]
    pods = [pod(f"g{number:03}-{each}", group=f"g{number:03}", cpu="9") for number in range(many) for each in range(2)]
    told = events(nodes=[node()], groups=groups, pods=pods)
    assert len(rows(Reading(group=None, events=told), policy=Policy(), now=NOW)) == many
    assert len(list(waiting(copied(told, policy=Policy(), now=NOW)))) == many
    found = from_cluster(told, GroupKey("default", "g119"), policy=Policy(), now=NOW)
    assert found is not None
    assert found.shortfall is not None


class TestTop:
    def overview(self):
        told = events(
            nodes=[
                node("full", cpu="4", gpu=8),
                node("half", cpu="4", gpu=8),
                node("shut", cpu="4", unschedulable=True),
                node("odd", cpu="4", taints=["example.com/gone=x:NoExecute"]),
            ],
            groups=[group("a", min_member=2, status=status(Phase.RUNNING, "Scheduled", NOW - 5))],
            pods=[
                *(pod(f"a-{number}", node="full", gpu=4, cpu="1") for number in range(2)),
                pod("other", group="", node="half", cpu="2", gpu=4, scheduler="default-scheduler"),
                pod("done", group="", node="half", cpu="2", phase="Succeeded"),
                pod("waits", group="b", cpu="1", created=NOW - 3),
            ],
        )
        return look(decided(told, policy=Policy(), now=NOW))

    def test_nodes_show_what_is_requested_and_by_which_groups(self):
        lines = list(page(self.overview()))
        assert lines[0] == "2 groups, 1 waiting · 4 nodes, 2 closed · cpu 25% · memory 0% · gpu 75%"
        at = next(number for number, line in enumerate(lines) if line.startswith("NODE "))
        assert [line.split() for line in lines[at:]] == [
            ["NODE", "CPU", "MEMORY", "NVIDIA.COM/GPU", "PODS", "GROUPS"],
            ["full", "50%", "0%", "8/8", "2", "default/a", "(2)"],
            ["half", "50%", "0%", "4/8", "1", "-"],
            ["odd", "0%", "0%", "-", "0", "gone"],
            ["shut", "0%", "0%", "-", "0", "cordoned"],
        ]

    def test_a_page_has_no_more_lines_than_the_terminal(self):
        groups = [group(f"g{number}", min_member=1) for number in range(50)]
        told = events(nodes=[node(f"n{number}") for number in range(50)], groups=groups)
        lines = screen(look(decided(told, policy=Policy(), now=NOW)), width=80, height=24)
        assert len(lines) <= 24
        assert [line for line in lines if line.startswith("and ")] == ["and 42 more", "and 42 more"]

    @given(
        *(st.lists(st.text("abc", min_size=1, max_size=63), max_size=30, unique=True) for _ in range(2)),
        st.integers(60, 120),
        st.integers(4, 60),
        st.sampled_from(["", "You may not list nodes, because of a very long reason, " * 3]),
    )
    def test_a_screen_fits_the_terminal_whatever_the_names(self, groups, nodes, width, height, hidden):
        told = events(
            nodes=[node(name, labels={}) for name in nodes],
            groups=[group(name, min_member=1) for name in groups],
            pods=[pod(f"{name}-0", group=name, node=nodes[0]) for name in groups if nodes],
        )
        overview = replace(look(decided(told, policy=Policy(), now=NOW)), hidden=hidden)
        lines = screen(overview, width=width, height=height)
        assert len(lines) <= height
        assert max(map(len, lines)) <= width
        if hidden and height > 10:
            assert any("You may not list nodes" in line for line in lines)

    def test_a_program_gets_all_of_it(self):
        found: Any = as_object(self.overview())
        [full, *_] = found["nodes"]
        assert (full["name"], full["requested"]["nvidia.com/gpu"], full["allocatable"]["cpu"]) == ("full", "8", "4")
        part = {"namespace": "default", "name": "a", "held": False, "state": "starting", "pods": 2, "share": 1.0}
        assert (full["scarcest"], full["parts"]) == ("nvidia.com/gpu", [part])
        assert {each["name"] for each in found["groups"]} == {"a", "b"}
