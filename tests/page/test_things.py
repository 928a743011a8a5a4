"""What of a machine is put on the board, and when."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from gangsched.core.machine import Machine
from gangsched.core.objects.events import GroupsReplaced, NodesReplaced, PodSeen, PodsReplaced, Synced
from gangsched.core.objects.policy import Policy
from gangsched.page.board import Board
from gangsched.page.things import keep, things
from gangsched.views.groups import each_row
from gangsched.views.nodes import usages
from gangsched.views.trial import decided
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
    return {name: json.loads(thing) for name, thing in things(each_row(machine), usages(machine))}


def test_groups_and_nodes_have_names_and_a_head():
    found = shown(machine())
    assert found.keys() == {"head", "node/n1", "node/n2", "group/default/a"}
    assert found["head"] == {
        "summary": "1 group, 1 waiting · 2 nodes · cpu 38% · memory 0%",
        "hidden": None,
        "trouble": None,
    }
    assert found["node/n1"]["parts"] == [{"namespace": "default", "name": "a", "held": False, "pods": 1, "share": 0.5}]
    assert found["node/n2"]["parts"] == [{"namespace": None, "name": None, "held": False, "pods": 1, "share": 0.25}]


async def test_a_look_is_taken_while_somebody_follows_and_shows_what_has_changed():
    seen, board, looks = machine(), Board(), 0

    def look():
        nonlocal looks
        looks += 1
        return things(each_row(seen), usages(seen))

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
    looking = things(each_row(seen), usages(seen))
    next(looking)
    seen.handle([PodSeen(pod("b-0", group="b", node="n2", cpu="1")), NodesReplaced((node("n2"), node("n3")))], NOW)
    assert [name for name, _ in looking][-1] == "head"
