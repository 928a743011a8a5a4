"""The phase of Volcano's PodGroups, for controllers that create no pods before it is Inqueue."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from msgspec.structs import replace

from gangsched.config.settings import Settings
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.installations import Installations
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import PutPhase
from gangsched.core.objects.events import ForeignGroupSeen, ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import ForeignGroup, ForeignPhase, SeenPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.phases import LONGEST_RETRY_S, Phases
from gangsched.core.queueing.agenda import Agenda
from gangsched.kube.dialects.dialect_table import chosen
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.scenarios.test_foreign import g, members

KEY = GroupKey("default", "g")


def empty(**fields: Any) -> ForeignGroup:
    found: ForeignGroup = g(**{"phase": SeenPhase(), **fields})
    return found


def phase(harness: Harness, dialect: str = "volcano") -> str:
    seen = harness.foreign[dialect, KEY].phase
    assert isinstance(seen, SeenPhase)
    return seen.text


def writes(harness: Harness) -> list[str]:
    return [effect.phase.value for effect in harness.effects if isinstance(effect, PutPhase)]


def test_pods_may_be_created_for_a_group_that_has_none_and_no_room_is_held_for_it():
    """There is no node and no pod: the controller waits for the phase before it creates pods."""
    harness = Harness.settled(empty(min_member=3))
    assert phase(harness) == "Inqueue"
    assert harness.machine.gangs == {}
    harness.wait(600)
    assert writes(harness) == ["Inqueue"]


def test_the_phase_follows_the_gang_from_its_first_pod_to_its_end_and_a_new_run_begins_with_inqueue():
    harness = Harness.settled(empty())
    harness.wait(2, *members(2))
    assert (phase(harness), harness.bound()) == ("Inqueue", [])
    harness.wait(2, node())
    assert (phase(harness), len(harness.bound())) == ("Running", 2)
    harness.run_pods()
    harness.wait(2)
    assert phase(harness) == "Running"
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(2)
    assert phase(harness) == "Completed"
    harness.delete("default/g-0", "default/g-1")
    harness.wait(60)
    assert phase(harness) == "Completed"
    harness.wait(2, *(replace(each, uid=f"{each.uid}-2", created=harness.now) for each in members(1)))
    assert phase(harness) == "Inqueue"
    assert writes(harness) == ["Inqueue", "Running", "Completed", "Inqueue"]


def test_members_that_are_lost_may_be_created_again():
    """Volcano's phase Pending or Unknown would stop the controller or make it restart the job."""
    harness = Harness.waited(2, node(), empty(), *members(2))
    assert phase(harness) == "Running"
    harness.delete("default/g-0")
    harness.wait(5)
    assert phase(harness) == "Inqueue"
    harness.wait(5, *members(1, first=5))
    assert phase(harness) == "Running"
    harness.delete("default/g-1", "default/g-5")
    harness.wait(5)
    assert phase(harness) == "Inqueue"


@pytest.mark.parametrize(
    "seen",
    [SeenPhase(text) for text in ("Pending", "Inqueue", "Running", "Unknown", "Completed", "Nonsense")],
    ids=lambda seen: seen.text,
)
def test_a_phase_that_somebody_else_wrote_stays(seen):
    harness = Harness.waited(600, node(), empty(phase=seen), *members(2))
    assert harness.foreign["volcano", KEY].phase == seen
    assert len(harness.bound()) == 2
    assert writes(harness) == []


def test_a_phase_that_is_taken_over_is_left_alone_until_it_is_empty_again():
    harness = Harness.settled(node(), empty())
    harness.wait(600, empty(phase=SeenPhase("Pending")), *members(2))
    assert phase(harness) == "Pending"
    harness.wait(2, empty())
    assert phase(harness) == "Running"


@pytest.mark.without("all", why="the number of writes is that of one leader")
def test_a_writer_that_was_first_and_is_not_seen_yet_is_tried_again_ever_less_often():
    """The API server refuses the write, as it does when Volcano's leader wrote first; after an hour it accepts."""
    harness = Harness()
    harness.refuse_phase = lambda _: True
    harness.wait(29, empty())
    assert len(writes(harness)) == 1
    harness.wait(2)
    assert len(writes(harness)) == 2
    harness.wait(3600)
    assert 10 < len(writes(harness)) <= 4 + 3600 / LONGEST_RETRY_S
    harness.refuse_phase = lambda _: False
    harness.wait(LONGEST_RETRY_S)
    assert phase(harness) == "Inqueue"
    told = len(writes(harness))
    harness.wait(3600)
    assert len(writes(harness)) == told


@pytest.mark.without("all", why="the number of writes is that of one leader")
def test_an_object_in_the_place_of_another_whose_deletion_was_not_seen_does_not_wait_for_the_pause_of_that():
    harness = Harness()
    harness.refuse_phase = lambda effect: effect.uid != "another"
    harness.wait(1, empty())
    harness.settle(empty(uid="another"))
    assert phase(harness) == "Inqueue"


@pytest.mark.without("all", why="nothing but the phases is there")
def test_nothing_is_decided_of_a_gang_that_has_not_been_brought_up_to_date_since_a_restart():
    phases = Phases(Policy(), Installations(Policy()), Agenda())
    phases.note(ForeignGroupSeen(empty()))
    assert phases.decide((), {KEY: cast("Gang", None)}, {}, 0.0) == []
    phases.note(ForeignGroupSeen(empty()))
    assert phases.decide((), {}, {}, 0.0) == [PutPhase(KEY, empty().uid, ForeignPhase.INQUEUE)]


@pytest.mark.without("restarts", "standbys", "leaderless", why="an event is handed over beside the API server")
def test_nothing_is_written_while_the_objects_cannot_be_read():
    harness = Harness()
    harness.refuse_phase = lambda _: True
    harness.settle(empty())
    harness.report(ForeignGroupsHidden("volcano", "why"))
    harness.settle()
    before = len(writes(harness))
    harness.refuse_phase = lambda _: False
    harness.wait(3600)
    assert len(writes(harness)) == before
    harness.report(ForeignGroupsReplaced("volcano", (harness.foreign["volcano", KEY],)))
    harness.settle()
    assert phase(harness) == "Inqueue"


@pytest.mark.without("restarts", "standbys", "leaderless", why="an event is handed over beside the API server")
def test_lists_of_other_kinds_take_nothing_away_and_of_its_own_what_is_gone():
    harness = Harness()
    harness.refuse_phase = lambda _: True
    harness.settle(empty())
    harness.report(ForeignGroupsReplaced("kai", ()))
    harness.wait(31)
    assert len(writes(harness)) == 2
    harness.report(ForeignGroupsReplaced("volcano", ()))
    harness.wait(3600)
    assert len(writes(harness)) == 2


def test_an_object_of_another_namespace_than_the_only_one_is_left_alone():
    harness = Harness(Policy(namespace="other"))
    harness.wait(60, empty())
    assert writes(harness) == []


def test_a_gang_that_only_shares_the_name_says_nothing_of_the_object():
    """A PodGroup of gangsched's own whose group is bound; Volcano's PodGroup of that name has no pods."""
    harness = Harness.waited(5, node(), empty(), group("g", min_member=1), pod("x", group="g"))
    assert harness.bound() == ["default/x"]
    assert phase(harness) == "Inqueue"


def test_a_declaration_that_is_refused_keeps_no_pods_away_because_they_say_why():
    harness = Harness.settled(g(error="podgroups g: wrong.", phase=SeenPhase()))
    assert phase(harness) == "Inqueue"


# What is read from the PodGroup


def read(namespaces: tuple[str, ...], **body) -> SeenPhase | None:
    settings = Settings.model_validate({"volcano": {"writePhase": list(namespaces)}})
    meta = {"name": "g", "namespace": "default", "uid": "u", **body.pop("metadata", {})}
    text = json.dumps({"metadata": meta, "spec": {"minMember": 2}, **body}).encode()
    seen = chosen(settings).kinds["volcano"].read("volcano", text, "v1beta1")[1].phase
    assert seen is None or isinstance(seen, SeenPhase)
    return seen


def entry(manager: str, operation: str = "Apply", **owned: Any) -> dict:
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": owned}


OWNED: dict[str, Any] = {"f:status": {"f:phase": {}}}
SPEC_ONLY: dict[str, Any] = {"f:spec": {"f:minMember": {}}, "f:status": {}}


@pytest.mark.parametrize(
    ("managers", "status", "seen"),
    [
        ([], None, SeenPhase()),
        ([], {}, SeenPhase()),
        ([], {"phase": ""}, SeenPhase()),
        ([], {"phase": "Inqueue"}, SeenPhase("Inqueue")),
        ([entry("gangsched", **OWNED)], {"phase": "Inqueue"}, SeenPhase("Inqueue", ours=True)),
        ([entry("gangsched", "Update", **OWNED)], {"phase": "Inqueue"}, SeenPhase("Inqueue")),
        ([entry("vc-scheduler", "Update", **OWNED)], {"phase": "Running"}, SeenPhase("Running")),
        (
            [entry("gangsched", **OWNED), entry("kubectl", "Update", **OWNED)],
            {"phase": "Running"},
            SeenPhase("Running"),
        ),
        (
            [entry("training-operator", "Update", **SPEC_ONLY), entry("gangsched", **OWNED)],
            {"phase": "Running"},
            SeenPhase("Running", ours=True),
        ),
    ],
)
@pytest.mark.without("all", why="nothing is decided")
def test_whose_the_phase_is_the_managers_of_the_field_say(managers, status, seen):
    more = {} if status is None else {"status": status}
    assert read(("default",), metadata={"managedFields": managers}, **more) == seen


@pytest.mark.without("all", why="nothing is decided")
def test_the_phase_is_read_only_where_it_is_to_be_written():
    assert read((), status={"phase": "Inqueue"}) is None
    assert read(("other",), status={"phase": "Inqueue"}) is None
    assert read(("default",), status={"phase": ["no"]}) is None
