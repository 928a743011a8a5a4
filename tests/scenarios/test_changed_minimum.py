"""Rule 9: a minimum is lowered or raised before the group is scheduled, after it, and in mid-flight."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.config.settings import Settings
from gangsched.core.gang.unrecorded import OUTAGE_S
from gangsched.core.objects.declaration import NATIVE, GroupKey, Role
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import ForeignGroup, GroupCondition, SeenCondition
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods, shape
from tests.harness import Harness
from tests.scenarios.test_conditions import condition, read
from tests.scenarios.test_foreign import members


def held_back(harness: Harness, name: str) -> None:
    """Refuse the pod's binding until `refuse_bind` is reset."""
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no") if effect.name == name else None
    )


def test_a_transaction_in_flight_ends_under_the_minimum_it_was_decided_with():
    harness = Harness()
    held_back(harness, "a-1")
    harness.settle(group("a", min_member=3), *pods("a", 3), node())
    harness.change_spec("default/a", min_member=5)
    harness.refuse_bind = lambda _: None
    harness.wait(2)
    status = harness.status("default/a")
    assert (status.phase, status.minimum, status.bound) == ("Scheduled", 3, 3)
    assert harness.condition("default/a", "Degraded").reason == "MinimumRaised"


def scheduled() -> Harness:
    harness = Harness.waited(2, group("a", min_member=2), *pods("a", 2), node(cpu=4))
    assert harness.status("default/a").phase == "Scheduled"
    return harness


def test_of_a_minimum_raised_after_the_group_was_scheduled_the_difference_is_bound_together_or_not_at_all():
    harness = scheduled()
    harness.change_spec("default/a", min_member=5)
    harness.wait(3, *pods("a", 2, first=2))
    assert len(harness.bound()) == 2
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.condition("default/a", "Degraded").reason == "MinimumRaised"
    assert "raised from 2 to 5; 2 are bound" in harness.condition("default/a", "Degraded").message
    assert harness.pod("default/a-2").condition_reason == "GangIncomplete"
    harness.wait(3, *pods("a", 1, first=4))
    assert len(harness.bound()) == 2
    assert harness.pod("default/a-4").condition_reason == "Unschedulable"
    assert "Only 2 of 3 members fit" in harness.pod("default/a-4").condition_message
    harness.wait(3, node("n2", cpu=1))
    assert len(harness.bound()) == 5
    assert harness.status("default/a").minimum == 5
    assert harness.condition("default/a", "Degraded").reason == "Healthy"


@pytest.mark.without("restarts", why="a new leader has the whole time to complete a part")
def test_what_a_raised_minimum_adds_is_rolled_back_though_a_member_above_it_is_being_bound():
    """Of two roles that are added one member is bound and one refused; the binding of another one has no answer."""
    harness = Harness.waited(2, group("a", min_member=2), *pods("a", 2), node(cpu=5))
    held_back(harness, "a-s")
    harness.withhold = lambda effect: effect.name == "a-z"
    harness.change_spec("default/a", roles=(Role("r", 1), Role("s", 1)))
    owner = Owner("StatefulSet", "a", "set-a", "apps")
    harness.settle(*(pod(f"a-{name}", role=role, owner=owner) for name, role in zip("rsz", "rsr", strict=True)))
    harness.wait(21)
    assert harness.evicted == ["default/a-r"]


def test_members_above_a_reached_minimum_are_bound_one_by_one():
    harness = scheduled()
    harness.settle(*pods("a", 1, first=2))
    assert len(harness.bound()) == 3


def test_a_group_whose_places_expired_is_whole_with_what_it_was_to_have_though_a_role_asks_for_more_since():
    """Found by random walks: its phase was Scheduled, its condition Scheduled was False: "3 of 3 members are bound"."""
    roles = [(Role("w", least, template=shape(1)),) for least in (3, 4)]
    harness = Harness.waited(40, group("a", min_member=3, roles=roles[0], max_schedule_time_s=20.0), node())
    harness.add(*pods("a", 1, role="w"))
    harness.wait(40)
    assert harness.status("default/a").phase == "Degraded"
    harness.change_spec("default/a", min_member=4, roles=roles[1])
    harness.add(*pods("a", 2, first=1, role="w"))
    harness.wait(40)
    status = harness.status("default/a")
    assert (status.phase, status.minimum, status.bound) == ("Scheduled", 3, 3)
    assert (harness.condition("default/a").status, harness.condition("default/a").reason) == (True, "Scheduled")
    assert harness.condition("default/a", "Degraded").reason == "MinimumRaised"
    assert "raised from 3 to 4; 3 are bound" in harness.condition("default/a", "Degraded").message
    harness.add(*pods("a", 1, first=3, role="w"))
    harness.wait(40)
    assert (harness.status("default/a").minimum, len(harness.bound())) == (4, 4)


def test_a_quorum_whose_rollback_left_members_in_place_is_completed_under_the_minimum_it_was_decided_with():
    """Otherwise the members left in place would wait for as many more as were added to the minimum."""
    harness = Harness(Policy(repair_deadline_s=9))
    held_back(harness, "a-2")
    harness.settle(node("n1", cpu=9), group("a", min_member=3), *pods("a", 3))
    harness.change_spec("default/a", min_member=5)
    harness.wait(12)
    assert harness.condition("default/a", "Degraded").reason == "PartlyBound"
    harness.refuse_bind = lambda _: None
    harness.wait(60)
    status = harness.status("default/a")
    assert (status.phase, status.minimum, status.bound) == ("Scheduled", 3, 3)
    assert harness.condition("default/a", "Degraded").reason == "MinimumRaised"


# Native groups, which have no record, after a restart


UNWRITTEN = Settings.model_validate({"native": {"writeCondition": False}})
TRUE = {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "observedGeneration": 1}
UNCOUNTED = {key: value for key, value in TRUE.items() if key != "observedGeneration"}
FALSE = TRUE | {"status": "False", "reason": "Unschedulable", "observedGeneration": 2}
SHOWN = [
    pytest.param({"settings": UNWRITTEN}, id="not written"),
    pytest.param({}, id="not written yet"),
    pytest.param({"conditions": [FALSE]}, id="False, of the raised minimum"),
    pytest.param({"conditions": [TRUE]}, id="True, of the minimum before"),
    pytest.param({"conditions": [TRUE], "settings": UNWRITTEN}, id="True, by another writer"),
    pytest.param({"generation": None}, id="not written yet, generations are not counted"),
    pytest.param({"generation": None, "conditions": [UNCOUNTED]}, id="True, generations are not counted"),
]
CREATED = 999_000.0


def native(least: int, generation: int, shown: dict, *, changed: float = CREATED) -> ForeignGroup:
    """As the API server shows it; 1.37.2 counts no generations."""
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return read(spec, **{"generation": generation, "changed": changed * ("generation" in shown)} | shown)


def running(least: int, shown: dict) -> Harness:
    """A native group of so many members, scheduled so long ago that no new leader takes it for half bound."""
    harness = Harness.waited(2, node(cpu=least), native(least, 1, shown), *members(least, "native"))
    harness.run_pods()
    harness.wait(OUTAGE_S + 60)
    return harness


@pytest.mark.without("all", why="the story has its own restart")
@pytest.mark.parametrize("shown", SHOWN)
def test_what_a_raised_min_count_adds_is_bound_together_though_a_new_leader_knows_nothing_of_the_raise(shown):
    """Regression: the first new member was bound as a replacement, and the last one waited for ever."""
    harness = running(2, shown)
    harness.add(native(4, 2, shown, changed=harness.now), *members(2, "native", first=2, created=harness.now))
    harness.restart()
    harness.wait(30)
    harness.wait(60, node("n2", cpu=1))
    assert harness.bound() == ["default/g-0", "default/g-1"]
    assert harness.evicted == []
    harness.restart()
    harness.wait(30, node("n3", cpu=1))
    assert len(harness.bound()) == 4


@pytest.mark.without("all", why="the story has its own restart")
@pytest.mark.parametrize("shown", SHOWN)
def test_what_a_raised_min_count_adds_is_bound_together_though_all_members_were_replaced_since_the_raise(shown):
    """Regression: members that were bound after the raise counted as proof that the group had what it asks for."""
    harness = running(2, shown)
    raised = native(4, 2, shown, changed=harness.now)
    harness.add(raised)
    for number in range(2):
        harness.delete(f"default/g-{number}")
        harness.wait(10, *members(1, "native", first=10 + number, created=harness.now))
    harness.run_pods()
    harness.wait(OUTAGE_S + 60)
    harness.add(raised, node("n2", cpu=1), *members(2, "native", first=20, created=harness.now))
    harness.restart()
    harness.wait(60)
    assert harness.bound() == ["default/g-10", "default/g-11"]


@pytest.mark.without("all", why="the story has its own restart")
@pytest.mark.parametrize("shown", [each for each in SHOWN if each.id != "False, of the raised minimum"])
def test_lost_members_are_replaced_one_by_one_if_the_min_count_was_never_changed(shown):
    harness = running(4, shown)
    harness.add(node(cpu=3), native(4, 1, shown))
    harness.delete("default/g-2", "default/g-3")
    harness.add(*members(2, "native", first=4, created=harness.now))
    harness.restart()
    harness.wait(60)
    assert harness.bound() == ["default/g-0", "default/g-1", "default/g-4"]


@pytest.mark.without("all", why="no story")
@pytest.mark.parametrize(
    ("generation", "changed", "expected"),
    [
        (1, CREATED + 60, False),
        (2, CREATED, True),
        (None, CREATED, False),
        (None, CREATED + 60, True),
        (None, 0.0, False),
    ],
)
def test_the_generation_says_whether_a_spec_was_changed_and_managed_fields_where_there_is_none(
    generation, changed, expected
):
    """Regression: a label that the client of the spec changed later counted as a change of the spec."""
    seen = read(generation=generation, changed=changed).phase
    assert isinstance(seen, SeenCondition)
    assert seen.changed is expected


@pytest.mark.without("all", why="the story has its own restart")
def test_a_condition_that_gangsched_does_not_write_says_nothing_of_the_present_run():
    """Regression: by the True of an earlier run a new leader went on with a quorum that was half bound."""
    harness = Harness()
    asks = read({"schedulingPolicy": {"gang": {"minCount": 4}}}, conditions=[TRUE], settings=UNWRITTEN)
    there = members(4, "native", created=harness.now, owner=Owner("StatefulSet", "s", "set-s", "apps"))
    bound = [replace(each, node="n1", bound_at=harness.now + 5) for each in there[:2]]
    harness.now += 7
    harness.nodes["n1"] = node("n1", cpu=3)
    harness.pods = {each.uid: each for each in (*bound, *there[2:])}
    harness.foreign[NATIVE, asks.key] = asks
    harness.restart()
    harness.wait(600)
    assert harness.evicted == ["default/g-0", "default/g-1"]


@pytest.mark.without("all", why="the story has its own restart")
@pytest.mark.parametrize("changed", [3, 5], ids=["lowered", "raised and reached"])
def test_lost_members_are_replaced_one_by_one_once_a_changed_min_count_was_reached(changed):
    """Regression: the condition kept the generation of the first minimum, so that replacements counted as its raise."""
    harness = running(4, {})
    there = harness.foreign[NATIVE, GroupKey("default", "g")].phase
    assert isinstance(there, SeenCondition)
    harness.add(node("n2"), *members(1, "native", first=4, created=harness.now))
    harness.wait(60, replace(native(changed, 2, {}), phase=replace(there, generation=2)))
    assert condition(harness) == GroupCondition(scheduled=True, reason="Scheduled", generation=2)
    harness.add(node("n2", cpu=0))
    harness.delete(*harness.bound()[2:])
    harness.add(node(cpu=changed - 1), *members(2, "native", first=7, created=harness.now))
    harness.restart()
    harness.wait(60)
    assert len(harness.bound()) == changed - 1


@pytest.mark.without("all", why="the refusal ends at a certain time")
@pytest.mark.parametrize("again", ["", "at once", "later"])
@pytest.mark.parametrize("least", [4, 9])
def test_a_part_of_which_a_member_is_bound_is_finished_though_the_group_is_deleted(again: str, least: int) -> None:
    """Regression: the place of the other member was released, so that a half of the part stayed bound for ever."""
    harness = Harness.settled(node(cpu=9), group("a", min_member=2), *pods("a", 2))
    fails = True

    def refuse(effect: BindPod) -> BindRefused | None:
        late = fails and effect.name == "a-3"
        return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no") if late else None

    harness.refuse_bind = refuse
    harness.change_spec("default/a", min_member=4)
    harness.wait(1, *pods("a", 2, first=2))
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-2"]
    harness.delete_group("default/a")
    if again == "at once":
        harness.add(group("a", min_member=least, uid="uid-2", created=harness.now))
    harness.wait(2)
    fails = False
    if again == "later":
        harness.add(group("a", min_member=least, uid="uid-2", created=harness.now))
    harness.wait(120)
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-2", "default/a-3"]
