"""Which owners of members count as the same, and the message about several."""

from __future__ import annotations

import pytest

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.ownership import CONTROLLERS, UNDISPUTED
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.observed import Observed
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.policy import OwnerGuard
from tests.builders import key, pod


def owner(kind: str, name: str, *, uid: str = "", api_group: str = "batch") -> Owner:
    return Owner(kind=kind, name=name, uid=uid or f"uid-{kind}-{name}", api_group=api_group)


JOB, OTHER_JOB = owner("Job", "one"), owner("Job", "two")
OLD, NEW = (owner("ReplicaSet", f"web-{digest}", api_group="apps") for digest in ("75b4f", "9cd2a"))
CUSTOM = owner("MPIJob", "one", api_group="kubeflow.org")


def guarded(*members: Pod, what: OwnerGuard = OwnerGuard.FLAG) -> Gang:
    gang = Gang(key("a"), Observed(pods={member.uid: member for member in members}))
    gang.update_ownership(what, Foreign())
    return gang


def said_of(gang: Gang) -> str:
    return gang.observed.ownership.described(gang.key.name)


def made(digest: str, replica_set: Owner) -> Pod:
    return pod(f"web-{digest}", owner=replica_set, labels={"pod-template-hash": digest})


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([pod("a-0"), pod("a-1")], id="nobody owns them"),
        pytest.param([pod("a-0", owner=JOB), pod("a-1", owner=JOB)], id="one owner"),
        pytest.param([pod("a-0", owner=JOB)], id="one member"),
        pytest.param([made("75b4f", OLD), made("9cd2a", NEW)], id="a Deployment's rolling update"),
        pytest.param([pod("a-0", role="launcher", owner=JOB), pod("a-1", role="worker", owner=CUSTOM)], id="roles"),
        pytest.param(
            [pod("a-0", uid="driver"), pod("a-1", owner=owner("Pod", "a-0", uid="driver", api_group=""))],
            id="executors owned by a driver that nobody owns",
        ),
        pytest.param(
            [
                pod("a-0", uid="driver", owner=JOB),
                pod("a-1", owner=owner("Pod", "a-0", uid="driver", api_group="")),
                pod("a-2", owner=JOB),
            ],
            id="executors owned by an owned driver",
        ),
        *(
            pytest.param(
                [pod("a-0", owner=JOB, labels={label: "x"}), pod("a-1", owner=CUSTOM, labels={label: "x"})], id=label
            )
            for label in CONTROLLERS
        ),
        pytest.param([pod("a-0", owner=JOB), pod("a-1", owner=OTHER_JOB, terminating=True)], id="the other one leaves"),
        pytest.param([pod("a-0", owner=JOB), pod("a-1", owner=OTHER_JOB, phase="Succeeded")], id="the other one ended"),
        pytest.param([pod("a-0", owner=JOB), pod("a-1", owner=OTHER_JOB, gated=True)], id="the other one is gated"),
    ],
)
def test_these_are_one_group(members):
    gang = guarded(*members)
    assert gang.observed.ownership == UNDISPUTED
    assert said_of(gang) == ""


@pytest.mark.parametrize(
    ("members", "claims"),
    [
        pytest.param(
            [pod("a-0", owner=JOB), pod("a-1", owner=OTHER_JOB), pod("a-2", owner=OTHER_JOB)],
            {"Job.batch one": 1, "Job.batch two": 2},
            id="two owners of a kind",
        ),
        pytest.param(
            [pod("a-0", owner=JOB), pod("a-1")], {"Job.batch one": 1, "no owner": 1}, id="a pod without owner"
        ),
        pytest.param(
            [pod("a-0", role="w", owner=JOB), pod("a-1", role="w", owner=OTHER_JOB), pod("a-2", owner=CUSTOM)],
            {"Job.batch one": 1, "Job.batch two": 1},
            id="two owners in one role",
        ),
        pytest.param(
            [made("75b4f", OLD), made("9cd2a", owner("ReplicaSet", "other-9cd2a", api_group="apps"))],
            {"Deployment web": 1, "Deployment other": 1},
            id="two Deployments",
        ),
        pytest.param(
            [pod("a-0", owner=OLD), pod("a-1", owner=NEW)],
            {"ReplicaSet.apps web-75b4f": 1, "ReplicaSet.apps web-9cd2a": 1},
            id="ReplicaSets that no Deployment made",
        ),
        pytest.param(
            [
                pod("a-0", owner=JOB, labels={CONTROLLERS[0]: "x"}),
                pod("a-1", owner=CUSTOM, labels={CONTROLLERS[0]: "y"}),
            ],
            {f"{CONTROLLERS[0]}=x": 1, f"{CONTROLLERS[0]}=y": 1},
            id="a label's two values",
        ),
        pytest.param(
            [
                pod("a-0", uid="1", owner=owner("Pod", "a-1", uid="2")),
                pod("a-1", uid="2", owner=owner("Pod", "a-0", uid="1")),
            ],
            {"Pod.batch a-0": 1, "Pod.batch a-1": 1},
            id="pods that own each other",
        ),
    ],
)
def test_these_are_several_claims(members, claims):
    gang = guarded(*members)
    assert gang.observed.ownership.owners == claims
    assert gang.live() == list(members)


def test_off_means_off():
    gang = guarded(pod("a-0", owner=JOB), pod("a-1", owner=OTHER_JOB), what=OwnerGuard.OFF)
    assert gang.observed.ownership == UNDISPUTED


def test_the_sentence_says_who_where_and_what_to_do_and_names_at_most_five():
    assert said_of(guarded(pod("a-0", owner=JOB), pod("a-1"))) == (
        "Pods of several owners name the group a: Job.batch one (1), no owner (1). If they are one group, give each "
        "owner's pods a role of their own; if not, give the groups different names."
    )
    many = [pod(f"a-{number}", owner=owner("Job", f"j{number}")) for number in range(7)]
    told = said_of(guarded(*many))
    assert "Job.batch j4 (1) and 2 more. If" in told
