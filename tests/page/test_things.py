"""Which of a machine's state goes on the board, and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    Synced,
)
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.status import Condition, GroupStatus, Place, Reservation
from gangsched.page.board import Board
from gangsched.page.machine_reader import STANDBY, UNLISTED, MachineReader, keep
from gangsched.page.things import Thing, things
from gangsched.views import cluster_overview
from gangsched.views.decided_copy import decided
from tests.builders import group, node, pod

NOW = 1_000_000.0


def machine() -> Machine:
    return decided(
        [
            NodesReplaced((node("n1", cpu="4"), node("n2", cpu="4"))),
            GroupsReplaced((group("a", min_member=2, created=NOW - 5),)),
            PodsReplaced((pod("a-0", node="n1", cpu="2"), pod("a-1", cpu="9"), pod("x", group="", node="n2", cpu="1"))),
            Synced(),
        ],
        policy=Policy(),
        now=NOW,
    )


def shown(machine: Machine) -> dict[str, Any]:
    return {name: json.loads(thing) for name, thing in things(cluster_overview.look(machine))}


def test_groups_and_nodes_have_names_and_a_head():
    found = shown(machine())
    assert found.keys() == {"head", "node/n1", "node/n2", "group/default/a"}
    totals = found["head"].pop("totals")
    assert found["head"] == {
        "summary": "1 group, 1 waiting · 2 nodes · cpu 38% · memory 0%",
        "hidden": None,
        "trouble": None,
    }
    assert {name: totals[name] for name in ("groups", "waiting", "running", "starting", "nodes", "closed")} == {
        "groups": 1,
        "waiting": 1,
        "running": 0,
        "starting": 1,
        "nodes": 2,
        "closed": 0,
    }
    cpu = totals["resources"]["cpu"]
    assert (cpu["allocatable"], cpu["requested"], cpu["free"], cpu["shares"]["free"]) == ("8", "3", "5", 0.625)
    here = {"held": False, "state": "starting", "pods": 1}
    assert found["node/n1"]["parts"] == [{"namespace": "default", "name": "a", **here, "share": 0.5}]
    assert found["node/n2"]["parts"] == [{"namespace": None, "name": None, **here, "share": 0.25}]
    assert found["group/default/a"]["roster"] == [["a-0", "n1", "Starting", ""], ["a-1", "", "Pending", ""]]


async def test_a_look_is_taken_while_somebody_follows_and_shows_what_has_changed():
    seen, board, looks = machine(), Board(), 0

    reader = MachineReader(lambda: seen)

    def look():
        nonlocal looks
        looks += 1
        return reader.look()

    keeping = asyncio.create_task(keep(board, look, every_s=0.01))
    await asyncio.sleep(0.05)
    assert looks == 0
    heard = board.follow(silent_s=60)
    first = json.loads(await asyncio.wait_for(anext(heard), 5))
    assert first["whole"]
    seen.handle([PodSeen(pod("x2", group="", node="n2", cpu="1"))], NOW)
    change = json.loads(await asyncio.wait_for(anext(heard), 5))
    assert (change["whole"], change["set"].keys(), change["gone"]) == (False, {"head", "node/n2"}, [])
    await heard.aclose()
    await asyncio.sleep(0.03)
    before = looks
    await asyncio.sleep(0.05)
    assert looks == before
    keeping.cancel()


async def test_a_machine_that_changes_while_it_is_looked_at_is_seen_as_it_is_then():
    seen = machine()
    looking = MachineReader(lambda: seen).look()
    next(looking)
    seen.handle([PodSeen(pod("b-0", group="b", node="n2", cpu="1")), NodesReplaced((node("n2"), node("n3")))], NOW)
    assert [name for name, _ in looking][-1] == "head"


async def test_a_replica_that_has_not_listed_everything_says_so():
    seen = machine()
    found = dict(MachineReader(lambda: seen, lambda: UNLISTED).look())
    assert json.loads(found["head"])["trouble"] == "This replica has not listed the whole cluster yet."


def standby() -> Machine:
    """It has listed a PodGroup that waits, one that its leader has not seen, and a pod of a group without PodGroup."""
    waiting = GroupStatus(Record(phase=Phase.QUEUED), (Condition("Scheduled", False, "Unschedulable", "too big", 7.0),))
    found = Machine(Policy())
    found.handle(
        [
            NodesReplaced((node("n1", cpu="4"),)),
            GroupsReplaced((group("a", min_member=2, status=waiting), group("new", min_member=1, created=NOW - 5))),
            PodsReplaced((pod("a-0", node="n1", cpu="2"), pod("b-0", group="b"), pod("x", group=""))),
        ],
        NOW,
    )
    return found


def test_a_standby_shows_and_counts_podgroups_as_their_statuses_say():
    found = {name: json.loads(thing) for name, thing in MachineReader(standby, lambda: STANDBY).look()}
    assert found.keys() == {"head", "node/n1", "group/default/a", "group/default/new"}
    shown = found["group/default/a"]
    assert (shown["phase"], shown["reason"], shown["message"]) == ("Queued", "Unschedulable", "too big")
    assert (shown["minimum"], shown["members"], shown["bound"]) == (2, 1, 1)
    assert shown["roster"] == [["a-0", "n1", "Starting", ""]]
    assert found["group/default/new"]["phase"] is None
    totals = found["head"]["totals"]
    assert (totals["groups"], totals["waiting"], totals["starting"]) == (2, 2, 1)
    assert found["head"]["trouble"] == STANDBY


def test_what_is_not_shown_any_more_is_not_counted_either():
    """After a contained fault a leader's state is built anew: until its next call, nothing is known of its gangs."""
    seen = machine()
    seen.handle([PodSeen(pod("b-0", group="b", cpu="1"))], NOW)
    reader = MachineReader(lambda: seen)
    assert {"group/default/a", "group/default/b"} < dict(reader.look()).keys()
    seen.assessments.clear()
    found = dict(reader.look())
    assert [name for name in found if name.startswith("group/")] == ["group/default/a"]
    assert json.loads(found["head"])["totals"]["groups"] == len(reader.rows()) == 1


def statuses():
    place = Place("n2", "", 2, (), (("cpu", 1000),))
    held = GroupStatus(Record(phase=Phase.RESERVED), reservation=Reservation(NOW + 60, (place,)))
    return st.sampled_from([GroupStatus(), held, GroupStatus(Record(phase=Phase.RUNNING, running_at=NOW))])


names, nodes = st.sampled_from("abc"), st.sampled_from(["n1", "n2", "n3"])
changes = st.lists(
    st.one_of(
        st.builds(
            lambda name, at, on, cpu: PodSeen(pod(f"{name}-{at}", group=name, node=on, cpu=cpu, created=NOW - 5)),
            *(names, st.integers(0, 2), nodes | st.just(""), st.sampled_from(["1", "2"])),
        ),
        st.builds(lambda at, on: PodSeen(pod(f"x-{at}", group="", node=on, cpu="1")), st.integers(0, 2), nodes),
        st.builds(
            lambda name, minimum, status: GroupSeen(group(name, min_member=minimum, status=status, created=NOW - 9)),
            *(names, st.integers(1, 3), statuses()),
        ),
        st.builds(lambda on, closed: NodeSeen(node(on, cpu="4", unschedulable=closed)), nodes, st.booleans()),
        st.builds(NodeGone, nodes),
        st.builds(lambda name, at: PodGone(f"uid-default/{name}-{at}"), names, st.integers(0, 2)),
        st.builds(lambda name: GroupGone(GroupKey("default", name)), names),
    ),
    max_size=12,
)


@given(st.lists(changes, max_size=6))
def test_what_is_remembered_is_what_a_first_look_would_see(steps):
    seen = machine()
    reader = MachineReader(lambda: seen)
    for step in steps:
        seen.handle(step, NOW)
        assert dict(reader.look()) == dict(things(cluster_overview.look(seen)))


async def test_a_fault_is_told_on_the_page_which_else_would_look_current():
    board = Board()
    board.show({"node/n1": b"1"})

    def look() -> Iterator[Thing]:
        raise KeyError("soak/a")

    heard = board.follow(silent_s=60)
    await anext(heard)
    with pytest.raises(KeyError):
        await asyncio.wait_for(keep(board, look), 10)
    change = json.loads(await asyncio.wait_for(anext(heard), 5))
    assert "This page is out of date" in change["set"]["head"]["trouble"]


def test_what_has_not_changed_is_not_made_anew():
    seen = machine()
    reader = MachineReader(lambda: seen)
    before = dict(reader.look())
    seen.handle([PodSeen(pod("x2", group="", node="n2", cpu="1"))], NOW)
    after = dict(reader.look())
    assert {name for name in after if after[name] is before[name]} == {"node/n1", "group/default/a"}
