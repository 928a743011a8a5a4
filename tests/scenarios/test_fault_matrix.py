"""Checks what docs/reliability.md says of each fault at each stage of a group, where no other story shows it.

These invariants are checked throughout (`tests.living`): no pod is bound twice, no node is overfilled, and no quorum
stays partly bound.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import Owner, PodPhase
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import foreign_group, group, node, pod, pods
from tests.faulty import WATCHES, Faulty

pytestmark = pytest.mark.without("all", why="these stories change leaders themselves")
SET = Owner("StatefulSet", "a", "set-a", "apps")
MANY = 60
Mishap = Callable[[Faulty], None]


def cluster(*, binds: list[str], foreign: bool = False, seed: int | None = None) -> Faulty:
    """A group of three with three members and a node for them; `binds` gives the results of the bindings."""
    harness = Faulty(seed=seed)
    harness.foresee("bind", binds)
    harness.add(node("n1", cpu=3))
    if foreign:
        said = DEFAULT.declaration({}, {"scheduling.k8s.io/group-name": "a"})
        harness.add(foreign_group("volcano", "default/a", min_member=3), *pods("a", 3, owner=SET, declaration=said))
    else:
        harness.add(group("a", min_member=3), *pods("a", 3, owner=SET))
    return harness


def decided() -> Faulty:
    """All bindings wait to be sent."""
    harness = cluster(binds=["queued for long"] * 3)
    harness.settle()
    return harness


def held(*, foreign: bool = False, seed: int | None = None) -> Faulty:
    """Two are bound, the third is held for a retry, and its place is in the status."""
    harness = cluster(binds=["", "", *["unavailable"] * MANY], foreign=foreign, seed=seed)
    harness.wait(3)
    assert harness.bound() == ["default/a-0", "default/a-1"]
    assert harness.status("default/a").reservation is not None
    return harness


def undone(*, foreign: bool = False, seed: int | None = None) -> Faulty:
    """Two are bound and being evicted, and no response has come yet; the third cannot be bound."""
    harness = held(foreign=foreign, seed=seed)
    harness.foresee("evict", ["unavailable"] * 4)
    harness.wait(18)
    assert len(harness.bound()) == 2
    assert harness.evicted == []
    return harness


def scheduled(*, seed: int | None = None) -> Faulty:
    """All three are running."""
    harness = cluster(binds=[], seed=seed)
    harness.wait(2)
    harness.run_pods()
    harness.wait(2)
    assert harness.status("default/a").phase == "Running"
    return harness


def sent(harness: Faulty, name: str) -> list[str]:
    """The nodes named in this pod's bindings, by all processes."""
    return [effect.node for effect in harness.effects if isinstance(effect, BindPod) and effect.name == name]


# Faults that can happen at any stage and do not change the outcome


def lags(harness: Faulty) -> None:
    for watch in WATCHES:
        harness.stall(watch, 3.0, gap=False)


def expires(harness: Faulty) -> None:
    for watch in WATCHES:
        harness.stall(watch, 3.0, gap=True)


def is_away(harness: Faulty) -> None:
    lags(harness)
    harness.foresee("bind", ["unavailable"] * 3)
    harness.foresee("evict", ["unavailable"] * 3)
    harness.foresee("status", ["failed"] * 2)


def writes_no_status(harness: Faulty) -> None:
    harness.foresee("status", ["failed"] * 4)


def is_replaced(harness: Faulty) -> None:
    harness.fail_over()


def leads_again(harness: Faulty) -> None:
    harness.lead_again()


ANYWHERE = {
    "a watch lags": lags,
    "a watch expires": expires,
    "the API server is away": is_away,
    "the status cannot be written": writes_no_status,
    "the leader is replaced": is_replaced,
    "the leader loses its lease and leads again": leads_again,
}
SEEDS = {"events are repeated in another order": 7}


# Decided, not yet sent


def test_a_member_that_is_gone_before_its_binding_is_sent_is_never_bound_and_the_rest_does_not_stay() -> None:
    harness = decided()
    harness.retired.add("set-a")
    harness.delete("default/a-1")
    harness.wait(45)
    assert sorted(name for name, _ in harness.bound_log) == ["default/a-0", "default/a-2"]
    harness.wait(30)
    assert harness.bound() == []
    assert harness.status("default/a").phase == "Pending"


def test_without_its_podgroup_nothing_that_waits_to_be_sent_is_sent() -> None:
    harness = decided()
    harness.delete_group("default/a")
    harness.wait(50)
    assert harness.bound() == []
    assert harness.pod("default/a-0").condition_reason == "PodGroupNotFound"


@pytest.mark.parametrize("binds", ["queued", "slow"])
def test_a_status_that_cannot_be_written_is_told_later_and_keeps_no_binding(binds: str) -> None:
    harness = cluster(binds=[binds] * 3)
    writes_no_status(harness)
    harness.wait(2.5)
    assert len(harness.bound()) == 3
    assert harness.status("default/a").phase == ""
    harness.wait(20)
    assert harness.status("default/a").phase == "Scheduled"


def test_a_member_bound_by_somebody_else_before_its_binding_is_sent_counts_where_it_is() -> None:
    harness = cluster(binds=["queued"] * 3)
    harness.settle()
    harness.add(node("n2", cpu=1))
    harness.change("default/a-1", node="n2", bound_at=harness.now)
    harness.wait(5)
    assert harness.pod("default/a-1").node == "n2"
    assert len(harness.bound()) == 3
    assert harness.evicted == []


# In flight


def test_a_binding_that_was_sent_to_a_node_that_is_gone_stands_and_is_lost_with_it() -> None:
    harness = cluster(binds=["slow"] * 3)
    harness.settle()
    harness.delete_node("n1")
    harness.wait(3, node("n2", cpu=3))
    assert {harness.pod(name).node for name in harness.bound()} == {"n1"}
    harness.delete(*harness.bound())
    harness.wait(5)
    assert {harness.pod(name).node for name in harness.bound()} == {"n2"}
    assert len(harness.bound()) == 3


# Held for a retry


def reply_is_lost(harness: Faulty) -> None:
    harness.foresee("bind", ["lost"])


def is_bound_by_somebody_else(harness: Faulty) -> None:
    harness.add(node("n2", cpu=1))
    harness.change("default/a-2", node="n2", bound_at=harness.now)


def is_refused_for_good(harness: Faulty) -> None:
    harness.add(node("n2", cpu=1))
    harness.foresee("bind", ["forbidden", "forbidden"])


def loses_its_room(harness: Faulty) -> None:
    harness.add(node("n2", cpu=1), pod("thief", group="", scheduler="default-scheduler", node="n1"))


@pytest.mark.parametrize(
    ("mishap", "where", "tries"),
    [
        pytest.param(reply_is_lost, "n1", ["n1", "n1"], id="the reply is lost"),
        pytest.param(is_bound_by_somebody_else, "n2", ["n1"], id="somebody else binds it"),
        pytest.param(is_refused_for_good, "n2", ["n1", "n1", "n1", "n2"], id="the server refuses it for good"),
        pytest.param(loses_its_room, "n2", ["n1", "n2"], id="a pod of another scheduler takes its room"),
    ],
)
def test_a_place_that_is_held(mishap: Mishap, where: str, tries: list[str]) -> None:
    """The place is used or given up. `tries`: the nodes of the last binding before the fault and of all later ones."""
    harness = held()
    harness.calm()
    before = len(sent(harness, "a-2"))
    mishap(harness)
    harness.wait(20)
    assert harness.pod("default/a-2").node == where
    assert sent(harness, "a-2")[before - 1 :] == tries
    assert len(harness.bound("default/a-")) == 3
    assert harness.evicted == []
    if where == "n2" and mishap is not loses_its_room:
        harness.settle(pod("next", group=""))
        assert harness.pod("default/next").node == "n1", "the place is free"


@pytest.mark.parametrize("mishap", [*ANYWHERE, *SEEDS])
def test_a_held_place_outlasts(mishap: str) -> None:
    harness = held(seed=SEEDS.get(mishap))
    harness.calm()
    ANYWHERE.get(mishap, lambda _: None)(harness)
    harness.wait(20)
    assert len(harness.bound()) == 3
    harness.wait(20)
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.evicted == []


@pytest.mark.parametrize("foreign", [False, True], ids=["our own", "another system's"])
def test_a_transaction_with_places_held_is_finished_without_its_podgroup(*, foreign: bool) -> None:
    harness = held(foreign=foreign)
    if foreign:
        harness.delete_foreign("volcano", "default/a")
    else:
        harness.delete_group("default/a")
    harness.calm()
    harness.wait(20)
    assert len(harness.bound()) == 3
    assert harness.evicted == []


def test_places_of_a_group_of_which_nothing_is_bound_are_given_up_with_its_podgroup() -> None:
    harness = cluster(binds=["unavailable"] * MANY)
    harness.wait(3)
    assert harness.status("default/a").reservation is not None
    harness.delete_group("default/a")
    harness.settle()
    harness.calm()
    harness.wait(20, pod("next", group="", cpu=3))
    assert harness.bound() == ["default/next"]


# Being rolled back


def is_cordoned(harness: Faulty) -> None:
    harness.add(replace(harness.nodes["n1"], unschedulable=True))


def is_shared(harness: Faulty) -> None:
    harness.add(pod("thief", group="", scheduler="default-scheduler", node="n1"))


def is_left_alone(harness: Faulty) -> None:
    harness.delete_group("default/a")


UNDOING = {
    **ANYWHERE,
    "the node is cordoned": is_cordoned,
    "a pod of another scheduler lands": is_shared,
    "the PodGroup is deleted": is_left_alone,
}


@pytest.mark.parametrize("mishap", [*UNDOING, *SEEDS])
def test_an_undo_goes_on_though(mishap: str) -> None:
    harness = undone(seed=SEEDS.get(mishap))
    UNDOING.get(mishap, lambda _: None)(harness)
    harness.wait(45)
    assert {"default/a-0", "default/a-1"} <= set(harness.evicted)


def test_an_undo_goes_on_though_another_systems_podgroup_is_deleted() -> None:
    harness = undone(foreign=True)
    harness.delete_foreign("volcano", "default/a")
    harness.wait(9)
    assert sorted(harness.evicted) == ["default/a-0", "default/a-1"]


def test_a_member_that_the_kubelet_refuses_while_it_is_undone_need_not_be_evicted() -> None:
    harness = undone()
    harness.wait(9, replace(harness.pod("default/a-0"), phase=PodPhase.FAILED, rejected=True))
    assert harness.evicted == ["default/a-1"]


# Scheduled


def is_unavailable(harness: Faulty) -> None:
    harness.foresee("bind", ["unavailable"] * 3)


SCHEDULED = {**ANYWHERE, "bindings are not answered": is_unavailable, "the reply is lost": reply_is_lost}


@pytest.mark.parametrize("mishap", [*SCHEDULED, *SEEDS])
def test_a_replacement_is_bound_though(mishap: str) -> None:
    harness = scheduled(seed=SEEDS.get(mishap))
    SCHEDULED.get(mishap, lambda _: None)(harness)
    harness.delete("default/a-1")
    harness.wait(20)
    harness.run_pods()
    harness.wait(20)
    assert len(harness.bound()) == 3
    assert harness.status("default/a").phase == "Running"
    assert harness.evicted == []
    if mishap == "bindings are not answered":
        assert sent(harness, "a-1") == ["n1"] * 5


def test_a_loss_that_cannot_be_written_is_told_later() -> None:
    harness = scheduled()
    harness.retired.add("set-a")
    writes_no_status(harness)
    harness.delete("default/a-1")
    harness.wait(3)
    assert harness.status("default/a").phase == "Running"
    harness.wait(20)
    assert harness.status("default/a").phase == "Degraded"
