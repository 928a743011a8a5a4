"""A fault over a pod or a workload object loses neither, and one in a gang about it parks that gang alone."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.gang import clock
from gangsched.core.membership.by_workload import Undeclared
from gangsched.core.membership.members import Members
from gangsched.core.objects.faults import Fault, Rebuilt, SetAside
from tests.builders import node, pod
from tests.harness import Harness
from tests.scenarios.test_containment import Injector
from tests.scenarios.test_undeclared import AUTO, GANG, bound, job, jobset, of_job, pods_of_job, pods_of_jobset, told
from tests.scenarios.test_undeclared import train_job as above

pytestmark = [
    pytest.mark.faults,
    pytest.mark.without("all", why="a new leader tries a parked group at once, and the fault is in one course only"),
]


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    harness.label_namespace("default", AUTO)
    return harness


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> Injector:
    return Injector(monkeypatch)


def once(injector: Injector, owner: Any, name: str, *, after: bool = False) -> None:
    """Make the next call fail, whatever it is about."""
    injector.into(owner, name, after=after, when=lambda *_args, **_kwargs: not injector.times)


def parked(harness: Harness) -> list[str]:
    """The gangs with a fault since the last call, and after what else the accounts were rebuilt."""
    found = harness.machine.take_faults()
    names = {Fault: "gang", Rebuilt: "contradictions", SetAside: "what"}
    told = [getattr(each, names[type(each)]) for each in found]
    return [each if isinstance(each, str) else "; ".join(each) for each in told]


@pytest.mark.parametrize("after", [False, True])
def test_a_pod_over_which_the_index_fails_is_a_member_and_follows_its_job_all_the_same(harness, injector, after):
    """There is room for one pod: a pod that declared nothing would be bound alone."""
    harness.add(node(cpu="1"), job())
    once(injector, Undeclared, "note", after=after)
    harness.settle(of_job(0))
    members = set(harness.gang("default/job.train").observed.pods)
    faults = parked(harness)
    harness.wait(2, of_job(1), of_job(2))
    before = bound(harness)
    harness.wait(120, node("n2", cpu="2"))

    assert injector.times == 1
    assert (members, faults) == ({"uid-default/train-0"}, ["Pod default/train-0 could not be stored"])
    assert (before, bound(harness)) == (0, 3)


def test_what_its_namespace_and_job_say_later_counts_for_a_pod_that_was_kept_in_a_fault(harness, injector):
    harness.add(node(cpu="1"))
    once(injector, Undeclared, "note")
    harness.settle(of_job(0))
    harness.wait(120, job(annotations={"gangsched.io/gang": "false"}))
    assert (injector.times, parked(harness)) == (1, ["Pod default/train-0 could not be stored"])
    assert bound(harness) == 1


def test_a_pod_that_goes_in_a_fault_is_in_the_index_no_more(harness, injector):
    harness.settle(job(), *pods_of_job(2))
    once(injector, Members, "leave", after=True)
    harness.delete("default/train-0")
    harness.settle()
    index = harness.machine._state.members.undeclared  # noqa: SLF001 - nothing else shows what it still holds
    assert (injector.times, parked(harness)) == (1, ["Pod uid-default/train-0 could not be stored"])
    assert index.of_kind("job") == ["uid-default/train-1"]


@pytest.mark.parametrize("listed", [False, True])
def test_a_change_of_a_job_over_which_its_gang_fails_is_known_all_the_same(harness, injector, listed):
    """Two Jobs change, in one list or in the watch, and the change of the first one fails."""
    harness.wait(2, node(cpu="2"), job(), *pods_of_job(3), job("other"), *pods_of_job(1, "other"))
    injector.into(clock, "reset_back_off", when=lambda gang: gang.key.name == "job.train")
    changed = [job(size=2), job("other", size=1)]
    if listed:
        for each in changed:
            harness.foreign["job", each.key] = each
        harness.show("job")
    else:
        harness.add(*changed)
    harness.wait(2, pod("default/plain-0", group=""))
    before = bound(harness), bound(harness, "other"), bound(harness, "plain"), told(harness)[0]
    injector.armed = False
    harness.delete("default/plain-0")
    harness.wait(120)
    assert (injector.times, parked(harness)) == (1, ["default/job.train"])
    assert before == (0, 1, 1, "InternalError")
    assert harness.gang("default/job.train").observed.group is None
    assert len(harness.gang("default/job.train").observed.pods) == 3


def test_a_fault_over_the_object_above_leaves_the_pods_as_both_objects_say(harness, injector):
    """The TrainJob opts out, so each pod is on its own, although storing the change fails half-way."""
    harness.label_namespace("default", {})
    harness.wait(2, node(cpu="2"), above(annotations=GANG), jobset(), *pods_of_jobset())
    before = bound(harness)
    once(injector, Members, "leave")
    harness.wait(120, above(annotations={"gangsched.io/gang": "false"}))
    assert (injector.times, parked(harness)) == (1, ["trainjob default/train could not be stored"])
    assert (before, bound(harness)) == (0, 2)
