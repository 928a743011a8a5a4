"""Edges of PodGroups of other systems, and of PodGroups that gangsched creates; each docstring gives the steps."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from gangsched.api.podgroup_status import PodGroupStatus
from gangsched.api.status_conversion import status_to_object
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod, MakeGroup, PatchStatus
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.results import BindRefused, Refused, StatusRefused
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import foreign_group, group, node, pod, pods
from tests.harness import Harness

SAYS = Declaration(group="x", min_member=3)
NAMED = DEFAULT.declaration({}, {"scheduling.k8s.io/group-name": "a"})


def unavailable(effect: BindPod) -> BindRefused:
    return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "overloaded")


def of_volcano(count: int) -> Iterator:
    return (replace(each, declaration=NAMED) for each in pods("a", count))


@pytest.mark.parametrize(
    "unclear", [Declaration(group="x", error="The minimum is no number."), Declaration(group="x", contradiction="No.")]
)
def test_no_podgroup_is_made_while_nobody_can_say_the_minimum(unclear):
    """A wrong minimum must not be written down.

    1. One member of a group of three, declared by annotations, is bound; the other bindings wait to be sent.
    2. The annotations become unreadable or contradict themselves, and the two bindings fail.
    3. The annotations are removed. Regression: a PodGroup created at step 2 said minMember 1, and the group counted as
       scheduled.
    """
    harness = Harness()
    harness.withhold = lambda effect: effect.name != "x-0"
    harness.settle(*(pod(f"x-{number}", declaration=SAYS) for number in range(3)), node())
    assert harness.bound() == ["default/x-0"]
    for number in range(3):
        harness.change(f"default/x-{number}", declaration=unclear)
    harness.refuse_bind = unavailable
    harness.send_withheld()
    harness.wait(1)
    assert not any(isinstance(effect, MakeGroup) for effect in harness.effects)
    for number in range(3):
        harness.change(f"default/x-{number}", declaration=Declaration(group="x"))
    harness.wait(5)
    assert not harness.gang("default/x").record.scheduled_at


def test_one_is_made_once_the_minimum_can_be_said_again():
    """As above, but the annotations are corrected instead of removed."""
    harness = Harness()
    harness.withhold = lambda effect: effect.name != "x-0"
    harness.settle(*(pod(f"x-{number}", declaration=SAYS) for number in range(3)), node())
    for number in range(3):
        harness.change(f"default/x-{number}", declaration=Declaration(group="x", error="The minimum is no number."))
    harness.refuse_bind = unavailable
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.settle()
    for number in range(3):
        harness.change(f"default/x-{number}", declaration=SAYS)
    harness.wait(2)
    [made] = [effect for effect in harness.effects if isinstance(effect, MakeGroup)]
    assert made.spec.min_member == 3
    harness.refuse_bind = lambda _: None
    harness.wait(30)
    assert len(harness.bound()) == 3


def test_another_systems_object_that_comes_again_changes_nothing_that_our_podgroup_was_told():
    """A PodGroup of ours and one of Volcano declare a scheduled group; Volcano's is deleted and created again.

    Regression: the Event Scheduled was sent a second time, and the condition's transition time moved.
    """
    harness = Harness.waited(40, node(), group("a", min_member=2), foreign_group("volcano"), *of_volcano(2))
    since = harness.condition("default/a").since
    harness.delete_foreign("volcano", "default/a")
    harness.wait(60)
    harness.wait(60, foreign_group("volcano"))
    assert harness.condition("default/a").since == since
    assert len(harness.events("Scheduled")) == 1


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.without("restarts", why="nothing written says it yet when the leader dies")
def test_another_object_of_the_name_begins_another_run_whether_or_not_a_podgroup_was_made(made):
    """A group of Volcano's is bound, in one case after retries for which gangsched created a PodGroup.

    Another object of the same name replaces Volcano's. Regression: the created PodGroup, which only repeats Volcano's,
    kept the previous run going.
    """
    failures = [5] if made else []

    def refuse(effect: BindPod) -> BindRefused | None:
        if effect.name != "a-1" or not failures or not failures[0]:
            return None
        failures[0] -= 1
        return unavailable(effect)

    harness = Harness()
    harness.refuse_bind = refuse
    harness.wait(60, node(), foreign_group("volcano"), *of_volcano(2))
    assert len(harness.bound()) == 2
    assert bool(harness.groups) is made
    since = harness.gang("default/a").record.scheduled_at
    harness.wait(20, foreign_group("volcano", uid="another"))
    assert harness.gang("default/a").record.scheduled_at > since
    assert harness.evicted == []


@pytest.mark.parametrize("theirs", [False, True])
def test_a_member_that_was_refused_before_the_podgroup_was_replaced_is_tried_again(theirs):
    """A refused member must not be forgotten with the run.

    1. A group of two is bound; a webhook refuses a third member, which is barred for a while.
    2. Another object of the same name replaces the group's; it asks for three. The webhook now lets the member pass.
    3. Regression: when the bar ended, nothing looked at the group again, and it stayed GangIncomplete for ever.
    """
    harness = Harness()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "the webhook says no") if effect.name == "a-2" else None
    )
    declared = foreign_group("volcano") if theirs else group("a", min_member=2)
    harness.add(node(), declared)
    harness.wait(5, *(of_volcano(2) if theirs else pods("a", 2)))
    harness.wait(2, *list(of_volcano(3) if theirs else pods("a", 3))[2:])
    assert len(harness.bound()) == 2
    if theirs:
        harness.add(foreign_group("volcano", uid="another", min_member=3))
    else:
        harness.add(group("a", uid="another", min_member=3))
    harness.settle()
    harness.refuse_bind = lambda _: None
    harness.wait(30)
    assert len(harness.bound()) == 3


def storable(effect: PatchStatus) -> StatusRefused | None:
    """The response of an API server that has our schema."""
    try:
        PodGroupStatus.model_validate(status_to_object(effect.status)["status"])
    except ValidationError:
        return StatusRefused(effect.key, stale=False)
    return None


def test_a_group_with_a_role_longer_than_a_labels_value_is_whole_as_soon_as_the_server_lets_it():
    """Volcano's task is given in an annotation, and a binding fails once.

    Regression: the status with the place held for the retry was refused because the role's name was too long, and the
    other members waited for two minutes.
    """
    said = DEFAULT.declaration({}, {"scheduling.k8s.io/group-name": "a", "volcano.sh/task-spec": "r" * 100})
    failures = [3]

    def refuse(effect: BindPod) -> BindRefused | None:
        if effect.name != "a-1" or not failures[0]:
            return None
        failures[0] -= 1
        return unavailable(effect)

    harness = Harness()
    harness.refuse_bind = refuse
    harness.refuse_status = storable
    harness.wait(10, node(), foreign_group("volcano"), *(replace(each, declaration=said) for each in pods("a", 2)))
    assert len(harness.bound()) == 2


def test_a_demand_of_many_resources_can_be_written():
    """Two members request a hundred resources each; the node has enough for one of them.

    Regression: the API server refused the status because of its demand, so the group never got one.
    """
    many = {f"r{number}.example.com/x": 1 for number in range(100)}
    harness = Harness()
    harness.refuse_status = storable
    harness.wait(10, node(extra=many), group("a", min_member=2), *pods("a", 2, requests=many))
    assert [len(each.requests) for each in harness.status("default/a").demand] == [100]


LONG = "x" * 300_000
HOSTILE = {
    "a time beyond any number": ("scheduler-plugins", {"minMember": 1, "scheduleTimeoutSeconds": 10**400}),
    "a long name twice": ("kai", {"subGroups": [{"name": LONG}, {"name": LONG}]}),
    "a long name": ("kai", {"subGroups": [{"name": LONG}]}),
    "a long parent": ("kai", {"subGroups": [{"name": "a", "parent": LONG}]}),
    "a long task": ("volcano", {"minTaskMember": {LONG: 1}}),
    "a task that would write to a terminal": ("volcano", {"minTaskMember": {"\x1b[2J": 1}}),
    "a long priority class": ("volcano", {"minMember": 1, "priorityClassName": LONG}),
    "a priority class that would write to a terminal": ("tenstack", {"minMember": 1, "priorityClassName": "\x1b[2J"}),
    "a long topology level": ("kai", {"minMember": 1, "topologyConstraint": {"requiredTopologyLevel": LONG}}),
}


def read(dialect: str, spec: object) -> ForeignGroup:
    manifest = {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    return DEFAULT.kinds[dialect].read(dialect, json.dumps(manifest).encode())[1]


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.without("all", why="it has no harness")
def test_a_hostile_text_in_an_object_is_an_error_that_is_short_and_can_be_shown(what):
    """Regression: such texts ended the watch, or went whole into every member's condition and raw to a terminal."""
    found = read(*HOSTILE[what])
    assert found.spec is None
    assert 0 < len(found.error) < 600
    assert found.error.isprintable()
