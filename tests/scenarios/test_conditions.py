"""The condition of Kubernetes' own PodGroups, which says whether the group was scheduled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.api.times import format_time
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.effects import PutCondition
from gangsched.core.objects.events import Event, ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup, GroupCondition, SeenCondition, SeenPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, Refused, Result
from gangsched.core.phases import LONGEST_RETRY_S
from gangsched.core.status.native_conditions import LONGEST_MESSAGE
from gangsched.kube.dialects.dialect_table import chosen
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.scenarios.test_foreign import member, members

SET = Owner("StatefulSet", "g", "set-g", "apps")
SCHEDULED = GroupCondition(scheduled=True, reason="Scheduled", generation=1)


def read(
    spec: dict[str, Any] | None = None,
    *,
    name: str = "g",
    uid: str = "uid-g",
    version: str = "v1beta1",
    settings: Settings | None = None,
    generation: int | None = 1,
    changed: float = 0.0,
    **status: Any,
) -> ForeignGroup:
    """The PodGroup, of minCount 2 unless the spec says otherwise, as the API server shows it in this version.

    `changed` is when its managedFields say that the spec was changed; 0.0 if it has none.
    """
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid}
    if generation:
        meta["generation"] = generation
    if changed:
        fields = {"manager": "kubectl", "operation": "Update", "time": format_time(changed)}
        owned = ("f:metadata", "f:spec"), ("f:status",)
        meta["creationTimestamp"] = format_time(999_000.0)
        later = {**fields, "time": format_time(changed + 9999), "subresource": "status"}
        entries = zip((fields, later), owned, strict=True)
        meta["managedFields"] = [entry | {"fieldsV1": {each: {} for each in own}} for entry, own in entries]
    body = {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}} | (spec or {}), "status": status}
    return chosen(settings or Settings()).kinds["native"].read("native", json.dumps(body).encode(), version)[1]


def written(
    scheduled: str, reason: str, message: str = "", *, kind: str = "PodGroupInitiallyScheduled", since: str = ""
) -> dict:
    """A status with the condition, as kube-scheduler writes it."""
    said = {"status": scheduled, "reason": reason, "message": message, "observedGeneration": 1}
    said |= {"lastTransitionTime": since} if since else {}
    return {"conditions": [{"type": "DisruptionTarget", "status": "False"}, {"type": kind, **said}]}


def seen(harness: Harness, name: str = "g") -> SeenCondition:
    phase = harness.foreign[NATIVE, GroupKey("default", name)].phase
    assert isinstance(phase, SeenCondition)
    return phase


def condition(harness: Harness, name: str = "g") -> GroupCondition | None:
    """The condition but for its time."""
    there = seen(harness, name).condition
    return there and replace(there, since=0.0)


def puts(harness: Harness) -> list[PutCondition]:
    return [effect for effect in harness.effects if isinstance(effect, PutCondition)]


def states(harness: Harness) -> list[tuple[bool, str]]:
    return [(effect.condition.scheduled, effect.condition.reason) for effect in puts(harness)]


class TestWhatIsWritten:
    def test_nothing_before_an_attempt_then_false_with_what_is_lacking_and_true_once_the_minimum_is_bound(self):
        harness = Harness.waited(60, read())
        harness.wait(60, *members(1, "native"))
        assert puts(harness) == []
        harness.wait(5, node(cpu=1), *members(1, "native", first=1))
        said = condition(harness)
        assert said is not None
        assert (said.scheduled, said.reason, said.generation) == (False, "Unschedulable", 1)
        assert said.message.startswith("Only 1 of 2 members fit")
        harness.wait(5, node("n2", cpu=1))
        assert condition(harness) == SCHEDULED
        assert states(harness) == [(False, "Unschedulable"), (True, "Scheduled")]

    def test_a_basic_group_is_scheduled_with_its_first_pod(self):
        harness = Harness.waited(60, node(cpu=1), read({"schedulingPolicy": {"basic": {}}}), *members(3, "native"))
        assert condition(harness) == SCHEDULED
        assert len(harness.bound()) == 1

    def test_what_more_room_would_not_help_is_a_scheduler_error(self):
        harness = Harness.waited(5, node(), read({"priorityClassName": "missing"}), *members(2, "native"))
        said = condition(harness)
        assert said is not None
        assert (said.scheduled, said.reason) == (False, "SchedulerError")
        assert "the PriorityClass missing, which does not exist" in said.message

    def test_the_generation_is_that_of_the_spec_that_was_looked_at(self):
        harness = Harness.waited(5, node(cpu=1), read(generation=3), *members(2, "native"))
        first = condition(harness)
        harness.add(
            replace(
                read({"schedulingPolicy": {"gang": {"minCount": 1}}}, generation=4),
                phase=SeenCondition(first, "v1beta1", 4),
            )
        )
        harness.wait(40)
        assert first is not None
        assert (first.scheduled, first.generation) == (False, 3)
        assert condition(harness) == GroupCondition(scheduled=True, reason="Scheduled", generation=4)

    def test_it_changes_its_time_only_with_its_status(self):
        harness = Harness.waited(5, node(cpu=1), read(), *members(2, "native"))
        harness.wait(60, *members(1, "native", first=2, cpu=5))
        harness.wait(5, node("n2", cpu=1))
        changed = [(effect.condition.scheduled, bool(effect.since)) for effect in puts(harness)]
        assert changed[0] == (False, True)
        assert changed[-1] == (True, True)
        assert set(changed[1:-1]) <= {(False, False)}

    def test_a_message_that_quotes_much_is_cut(self):
        harness = Harness()
        harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "x" * 9000)
        harness.wait(120, node(), read(), *members(2, "native"))
        said = condition(harness)
        assert said is not None
        assert (said.scheduled, said.reason, len(said.message)) == (False, "SchedulerError", LONGEST_MESSAGE)
        before = len(puts(harness))
        harness.wait(LONGEST_RETRY_S)
        assert len(puts(harness)) - before <= LONGEST_RETRY_S / 30 + 1

    @pytest.mark.without("all", why="the number of writes is that of one leader")
    def test_a_message_alone_is_written_at_most_every_30_s(self):
        harness = Harness.of(node(cpu=1), read({"schedulingPolicy": {"gang": {"minCount": 9}}}), *members(9, "native"))
        harness.wait(2)
        assert len(puts(harness)) == 1
        for number in range(5):
            harness.wait(4, node(f"m{number}", cpu=1))
        assert len(puts(harness)) == 1
        harness.wait(40)
        assert 1 < len(puts(harness)) <= 3
        said = condition(harness)
        assert said is not None
        assert "Only 6 of 9 members fit" in said.message


class TestTrueIsForEver:
    def test_members_that_are_lost_and_a_raised_minimum_take_nothing_back(self):
        harness = Harness.waited(5, node(cpu=2), read(), *members(2, "native"))
        harness.delete("default/g-0")
        harness.wait(60, *members(1, "native", first=5, cpu=9))
        raised = read({"schedulingPolicy": {"gang": {"minCount": 5}}}, generation=2)
        harness.wait(60, replace(raised, phase=harness.foreign[NATIVE, GroupKey("default", "g")].phase))
        assert condition(harness) == SCHEDULED
        assert states(harness) == [(True, "Scheduled")]

    @pytest.mark.without("all", why="the number of writes is that of one leader")
    def test_a_true_that_the_server_has_not_taken_yet_is_not_followed_by_false(self):
        harness = Harness()
        harness.refuse_phase = lambda _: True
        harness.wait(5, node(cpu=2), read(), *members(2, "native"))
        harness.run_pods(PodPhase.FAILED)
        harness.wait(5)
        harness.delete("default/g-0", "default/g-1")
        harness.wait(100, *(replace(each, uid=f"{each.uid}-2") for each in members(2, "native", cpu=9)))
        harness.refuse_phase = lambda _: False
        harness.wait(LONGEST_RETRY_S)
        assert set(states(harness)) == {(True, "Scheduled")}
        assert condition(harness) == SCHEDULED


class TestItsTime:
    """A new leader knows by it whether the present run's quorum was bound."""

    def renewed(self, harness: Harness) -> bool:
        """Whether the time was written anew, and is that of a binding; then the clock goes on."""
        true = [effect.since for effect in puts(harness) if effect.condition.scheduled]
        assert set(true) <= {int(each.bound_at) for each in harness.pods.values()} | {*true[:1]}
        harness.wait(60)
        return len(true) > 1

    def remake(self, harness: Harness, *numbers: int) -> None:
        """These members are deleted and made again."""
        harness.delete(*(f"default/g-{number}" for number in numbers))
        for number in numbers:
            harness.add(replace(members(1, "native", first=number)[0], uid=f"new-{number}", created=harness.now))
        harness.wait(30)

    def turned_over(self, spec: dict[str, Any] | None, count: int, *, size: int = 2, together: bool = False) -> Harness:
        """A group of which this many members are replaced after it was scheduled, one by one or all together."""
        harness = Harness.waited(60, node(cpu=size), read(spec), *members(size, "native"))
        for numbers in [range(count)] if together else [[number] for number in range(count)]:
            self.remake(harness, *numbers)
        assert len(harness.bound()) == size
        return harness

    def test_is_that_of_the_last_binding(self):
        harness = Harness.waited(60, node(cpu=2), read(), *members(2, "native"))
        assert [effect.since for effect in puts(harness)] == [int(harness.pod("default/g-0").bound_at)]

    @pytest.mark.parametrize("together", [False, True], ids=["one by one", "at once"])
    def test_is_renewed_when_all_members_have_been_made_again(self, together):
        assert self.renewed(self.turned_over(None, 2, together=together))

    def test_is_kept_while_half_of_the_members_of_that_time_live(self):
        assert not self.renewed(self.turned_over(None, 1))

    def test_is_renewed_while_fewer_than_half_of_the_minimum_live(self):
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        assert self.renewed(self.turned_over(spec, 2, size=3))

    def test_never_goes_back_though_another_leader_has_written_a_later_one(self):
        harness = Harness.waited(60, node(cpu=2), read(), *members(2, "native"))
        later = replace(SCHEDULED, since=harness.now)
        shown = SeenCondition(later, "v1beta1", 2)
        harness.wait(60, replace(read(generation=2), phase=shown))
        assert [effect.since for effect in puts(harness) if effect.condition.generation == 2] == [later.since]

    @pytest.mark.without("restarts", "standbys", why="a new leader sees when they were bound")
    def test_is_the_servers_though_answers_come_before_the_watch_shows_the_bindings(self, monkeypatch):
        def arrived(harness: Harness) -> list[Event]:
            return [event for event in harness.inbox if isinstance(event, Result)] or [*harness.inbox]

        monkeypatch.setattr(Harness, "_arrived", arrived)
        harness = Harness.waited(60, node(cpu=2), read(), *members(2, "native", created=999_990.0))
        assert [effect.since for effect in puts(harness)] == [999_990.0]

    def test_is_kept_in_a_group_that_one_member_makes_whole(self):
        assert not self.renewed(self.turned_over({"schedulingPolicy": {"basic": {}}}, 2))

    def test_is_renewed_though_a_raised_min_count_was_never_reached(self):
        harness = Harness.waited(60, node(cpu=2), read(), *members(2, "native"))
        raised = read({"schedulingPolicy": {"gang": {"minCount": 6}}}, generation=2)
        harness.add(replace(raised, phase=replace(seen(harness), generation=2)))
        self.remake(harness, 0)
        self.remake(harness, 1)
        assert self.renewed(harness)
        assert condition(harness) == SCHEDULED

    def test_is_renewed_at_once_though_true_was_written_only_now(self):
        harness = Harness.waited(5, node(cpu=2), read(), *members(2, "native"))
        harness.delete("default/g-0", "default/g-1")
        harness.wait(3)
        harness.wait(5, *(replace(each, uid=f"new-{each.uid}", created=harness.now) for each in members(2, "native")))
        assert self.renewed(harness)

    @pytest.mark.without("restarts", "standbys", why="another leader is what is asked for, at one moment")
    @pytest.mark.parametrize(
        ("ago_s", "created_s", "evicted"),
        [
            pytest.param(10.0, (0.0, 0.0), [], id="both existed when it was scheduled"),
            pytest.param(10.0, (1.0, 1.0), ["default/g-0"], id="neither did"),
            pytest.param(10.0, (1.0, 0.0), ["default/g-0"], id="the one that waits did, with a scheduling gate"),
            pytest.param(3600.0, (1.0, 1.0), [], id="neither did, and one is bound for long"),
        ],
    )
    def test_a_new_leader_undoes_what_was_just_bound_of_a_later_run(self, ago_s, created_s, evicted):
        """Of two members one was bound two seconds after the group was scheduled, and the other waited already."""
        harness = Harness()
        true = harness.now - ago_s
        first, second = (
            replace(each, created=true + after)
            for each, after in zip(members(2, "native", owner=SET), created_s, strict=True)
        )
        shown = SeenCondition(replace(SCHEDULED, since=true), "v1beta1", 1)
        harness.add(node(cpu=1), replace(read(), phase=shown))
        harness.add(replace(first, node="n1", bound_at=true + 2.0), second)
        harness.restart()
        harness.wait(100)
        assert harness.evicted == evicted


def theirs(**fields: Any) -> Pod:
    return member("theirs", "native", scheduler="default-scheduler", **fields)


MINE = member("x-0", "native", labels={"gangsched.io/pod-group": "mine"})
UNWRITTEN = Settings.model_validate({"native": {"writeCondition": False}})


@pytest.mark.parametrize(
    ("things", "bound"),
    [
        pytest.param([read()], 0, id="a group without pods"),
        pytest.param([read(), theirs()], 0, id="all its pods are another scheduler's"),
        pytest.param([read(), *members(2, "native"), theirs()], 2, id="some of its pods are another scheduler's"),
        pytest.param(
            [read(), *members(2, "native"), theirs(phase=PodPhase.SUCCEEDED)], 2, id="a pod of the other has ended"
        ),
        pytest.param([read(settings=UNWRITTEN), *members(2, "native")], 2, id="the setting forbids it"),
        pytest.param([read(), group("g", min_member=1), pod("x", group="g")], 1, id="a gang only shares its name"),
        pytest.param([read(), group("mine", min_member=1), MINE], 1, id="it does not count beside gangsched's own"),
    ],
)
def test_of_some_groups_nothing_is_written(things, bound):
    harness = Harness.waited(60, *things, node(cpu=2))
    assert len(harness.bound()) == bound
    assert puts(harness) == []


def test_nothing_is_written_of_a_group_of_another_namespace_than_the_only_one():
    harness = Harness(Policy(namespace="other"))
    harness.wait(60, node(cpu=2), read(), *members(2, "native"))
    assert puts(harness) == []


def test_once_the_other_schedulers_pods_are_gone_it_is_written():
    harness = Harness.waited(60, theirs(), node(cpu=2), read(), *members(2, "native"))
    harness.delete("default/theirs")
    harness.wait(5)
    assert condition(harness) == SCHEDULED


@pytest.mark.without("all", why="the number of writes is that of one leader")
def test_a_write_that_is_refused_is_repeated_ever_less_often():
    harness = Harness()
    harness.refuse_phase = lambda _: True
    harness.wait(3600, node(cpu=2), read(), *members(2, "native"))
    assert 10 < len(puts(harness)) <= 6 + 3600 / LONGEST_RETRY_S
    harness.refuse_phase = lambda _: False
    harness.wait(LONGEST_RETRY_S)
    assert condition(harness) == SCHEDULED
    told = len(puts(harness))
    harness.wait(3600)
    assert len(puts(harness)) == told


@pytest.mark.without("restarts", "standbys", "leaderless", why="an event is handed over beside the API server")
def test_after_an_upgrade_of_the_api_server_the_condition_is_that_of_the_new_version():
    """An object of v1alpha2 has PodGroupScheduled; 1.37 serves v1beta1, whose object has no condition."""
    harness = Harness.waited(5, node(cpu=2), read(version="v1alpha2"), *members(2, "native"))
    assert [effect.version for effect in puts(harness)] == ["v1alpha2"]
    harness.report(ForeignGroupsHidden("native", "gangsched has not been able to list it."))
    harness.foreign[NATIVE, GroupKey("default", "g")] = read(
        version="v1beta1", **written("True", "Scheduled", kind="PodGroupScheduled")
    )
    harness.report(ForeignGroupsReplaced("native", (harness.foreign[NATIVE, GroupKey("default", "g")],)))
    harness.wait(5)
    assert [effect.version for effect in puts(harness)] == ["v1alpha2", "v1beta1"]
    assert condition(harness) == SCHEDULED


def test_two_systems_podgroups_of_one_name_have_each_their_own():
    """A PodGroup of Volcano without pods does not hide the native one whose pods are bound."""
    volcano = chosen(Settings.model_validate({"volcano": {"writePhase": ["default"]}})).kinds["volcano"]
    meta = {"name": "g", "namespace": "default", "uid": "uid-v"}
    body = json.dumps({"metadata": meta, "spec": {"minMember": 2}}).encode()
    harness = Harness.waited(5, node(cpu=2), read(), volcano.read("volcano", body, "v1beta1")[1], *members(2, "native"))
    assert condition(harness) == SCHEDULED
    assert harness.foreign["volcano", GroupKey("default", "g")].phase == SeenPhase("Inqueue", ours=True)


# What is read from the PodGroup


@pytest.mark.parametrize(
    ("version", "status", "seen"),
    [
        ("v1beta1", {}, SeenCondition(None, "v1beta1", 1)),
        ("v1beta1", {"conditions": None}, SeenCondition(None, "v1beta1", 1)),
        ("v1beta1", written("True", "Scheduled"), SeenCondition(SCHEDULED, "v1beta1", 1)),
        ("v1alpha3", written("True", "Scheduled"), SeenCondition(SCHEDULED, "v1alpha3", 1)),
        ("v1alpha2", written("True", "Scheduled"), SeenCondition(None, "v1alpha2", 1)),
        (
            "v1alpha2",
            written("False", "Unschedulable", "why", kind="PodGroupScheduled"),
            SeenCondition(GroupCondition(False, "Unschedulable", "why", 1), "v1alpha2", 1),
        ),
        (
            "v1beta1",
            written("True", "Scheduled", since="2026-01-02T03:04:05Z"),
            SeenCondition(replace(SCHEDULED, since=1767323045.0), "v1beta1", 1),
        ),
        ("v1beta1", written("True", "Scheduled", since="yesterday"), None),
        ("v1beta1", written("Unknown", "x"), SeenCondition(GroupCondition(False, "x", "", 1), "v1beta1", 1)),
        ("v1beta1", {"conditions": "no"}, None),
    ],
)
@pytest.mark.without("all", why="nothing is decided")
def test_the_type_is_that_of_the_version(version, status, seen):
    assert read(version=version, **status).phase == seen
