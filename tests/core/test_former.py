"""Which members belong to an owner that was deleted and created again under its name, and therefore do not count."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.ownership import former_among
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.observed import Observed
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.policy import OwnerGuard
from gangsched.core.objects.workload import Workload
from tests.builders import key, pod
from tests.served import served_workload


def owner(uid: str, *, kind: str = "Job", name: str = "train", api_group: str = "batch") -> Owner:
    return Owner(kind=kind, name=name, uid=uid, api_group=api_group)


def driven(name: str, driver: str, **fields: Any) -> Pod:
    return pod(name, owner=owner(driver, kind="Pod", name="driver", api_group=""), **fields)


def former(*members: Pod, foreign: Foreign | None = None) -> list[str]:
    found = former_among(members, {each.uid: each for each in members}, foreign or Foreign())
    return sorted(each.name for each in members if each.uid in found)


@pytest.mark.parametrize(
    ("members", "gone"),
    [
        pytest.param([pod("a"), pod("b")], [], id="nobody owns them"),
        pytest.param([pod("a", owner=owner("1")), pod("b", owner=owner("1"))], [], id="one owner"),
        pytest.param([pod("a", owner=owner("1")), pod("b", owner=owner("2", name="x"))], [], id="two names"),
        pytest.param([pod("a", owner=owner("1")), pod("b", owner=owner("2", kind="X"))], [], id="two kinds"),
        pytest.param([pod("a", owner=owner("1")), pod("b", owner=owner("2", api_group="x"))], [], id="two API groups"),
        pytest.param(
            [pod("a", owner=owner("2"), created=5), pod("b", owner=owner("1"), created=6)],
            ["a"],
            id="the owner with the youngest pod exists",
        ),
        pytest.param(
            [pod("a", owner=owner("1"), node="n1", created=5), pod("b", owner=owner("2"), created=6)],
            ["a"],
            id="a bound pod too",
        ),
        pytest.param(
            [
                pod("a", owner=owner("1"), created=5),
                pod("b", owner=owner("2"), created=6),
                pod("c", owner=owner("1", name="x"), created=1),
            ],
            ["a"],
            id="beside another owner",
        ),
        pytest.param(
            [
                pod("a", workload=Workload("jobset", "s", None, "1"), owner=owner("j1", name="s-w-0"), created=5),
                pod("b", workload=Workload("jobset", "s", None, "2"), owner=owner("j2", name="s-w-1"), created=6),
            ],
            ["a"],
            id="a workload whose Jobs have other names",
        ),
        pytest.param(
            [pod("driver", uid="2", created=6), driven("a", "2", created=7), driven("b", "1", created=8)],
            ["b"],
            id="executors of a driver that is gone",
        ),
        pytest.param(
            [
                pod("driver", uid="d1", owner=owner("1"), created=4),
                driven("a", "d1", created=5),
                pod("b", owner=owner("2"), created=6),
            ],
            ["a", "driver"],
            id="a driver and its executors, whose Job is gone",
        ),
    ],
)
def test_pods_of_an_object_that_was_deleted_do_not_count_for_the_one_that_has_its_name(members, gone):
    assert former(*members) == gone
    assert former(*reversed(members)) == gone


@pytest.mark.parametrize("exists", ["1", "2"])
def test_of_two_owners_whose_pods_are_of_the_same_second_the_one_that_is_watched_exists(exists):
    foreign = Foreign()
    foreign.keep(served_workload("job", "train", {}, uid=exists))
    members = [
        pod(f"pod-{uid}", owner=owner(uid), workload=Workload("job", "train", None, uid), created=5)
        for uid in ("1", "2")
    ]
    assert former(*members, foreign=foreign) == [f"pod-{3 - int(exists)}"]


@pytest.mark.parametrize("guard", OwnerGuard)
def test_they_do_not_count_whatever_the_owner_guard_and_are_no_rivals(guard):
    members = [pod("a", owner=owner("1"), created=5), pod("b", owner=owner("2"), created=6)]
    gang = Gang(key("a"), Observed(pods={each.uid: each for each in members}))
    assert gang.update_ownership(guard, Foreign()) == members[1:]
    assert gang.observed.ownership.owners == {}
    assert gang.observed.ownership.former == {members[0].uid}
