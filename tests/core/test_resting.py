"""Gangs without live members are found by the workload of their last ones."""

from __future__ import annotations

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.observed import Observed
from gangsched.core.membership.by_workload import Resting
from gangsched.core.objects.record import Record
from gangsched.core.objects.workload import Workload
from tests.builders import group, key, pod


def gang(kind: str = "job", name: str = "t") -> Gang:
    return Gang(key("a"), Observed(group("a")), record=Record(workload=Workload(kind, name, None, "uid")))


def test_a_gang_is_found_until_it_is_gone():
    resting = Resting()
    resting.note(gang())
    found = resting.of("job", key("t")), resting.of_kind("job"), resting.of("job", key("u")), resting.of_kind("lws")
    resting.forget(key("a"))
    assert found == ([key("a")], [key("a")], [], [])
    assert (resting.of("job", key("t")), resting.of_kind("job")) == ([], [])


def test_a_gang_is_found_by_its_present_workload_alone():
    resting = Resting()
    resting.note(gang())
    resting.note(gang("jobset"))
    assert (resting.of("job", key("t")), resting.of("jobset", key("t"))) == ([], [key("a")])


def test_a_gang_with_live_members_is_found_by_these():
    resting, there = Resting(), gang()
    resting.note(there)
    there.observed.note_pod(pod("a-0"))
    resting.note(there)
    assert resting.of("job", key("t")) == []


def test_a_group_that_no_podgroup_tells_of_is_not_kept():
    resting, there = Resting(), gang()
    there.observed.declare(None)
    resting.note(there)
    assert resting.of("job", key("t")) == []


def test_what_is_kept_of_gangs_that_are_gone_is_a_contradiction():
    resting = Resting()
    resting.note(gang())
    assert [*resting.validate({key("a"): None})] == []
    assert [*resting.validate({})] == ["default/a: known by its workload though it is gone"]
