"""Native groups that the Job controller adds by itself (feature gate WorkloadWithJob) declare nothing of the user's.

In 1.36 it makes a PodGroup with the policy gang for each Indexed Job whose pods all run at once, in 1.37 one with the
policy basic for each Job, unless spec.scheduling says otherwise. The group is controlled by the Job, its pods name it
in their spec and are owned by it too. A group that the user's template names is neither.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.events import ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.pod import DeviceUse, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from tests.builders import group, node, pods
from tests.gadgets import GPUS, device_claim, gpus
from tests.harness import Harness
from tests.served import served_group, served_pod, served_workload

BASIC: dict[str, Any] = {"basic": {}}
GANG: dict[str, Any] = {"gang": {"minCount": 5}}
CREATED = "1970-01-12T13:46:40Z"
ASKED = {"gangsched.io/gang": "auto"}
TEMPLATE = {"workloadName": "super", "templateName": "workers"}


def native_group(policy: dict[str, Any], *, by_job: bool = True, delegated: bool = False, **spec: Any) -> ForeignGroup:
    """The PodGroup; `by_job`: as the Job's controller makes it, `delegated`: from a template of the Job's own owner."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}
    above = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "train", "uid": "uid-w"}
    owners = {"ownerReferences": [owner] if delegated else [owner, above]} if by_job else {}
    spec = {"schedulingPolicy": policy} | ({"workloadRef": TEMPLATE} if delegated else {}) | spec
    return served_group("native", "train-7fk2p", spec, uid="uid-g", creationTimestamp=CREATED, **owners)


def job(**annotations: str) -> ForeignGroup:
    return served_workload("job", "train", {"parallelism": 5, "completions": 5}, annotations=annotations)


def jobset(*, least: int) -> ForeignGroup:
    """A JobSet with two Jobs of five pods each, of which so many are the least."""
    template = {"spec": {"parallelism": 5, "completions": 5}}
    spec = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": template}]}
    return served_workload("jobset", "set", spec, annotations={"gangsched.io/min-member": str(least)})


def of_job(number: int, *, owned: bool, **labels: str) -> Pod:
    """A pod of the Job; `owned`: by the native group too, as its controller writes it."""
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train", "controller": True}]
    if owned:
        owners.append(
            {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "train-7fk2p", "uid": "uid-g"}
        )
    spec = {
        "schedulerName": "gangsched",
        "schedulingGroup": {"podGroupName": "train-7fk2p"},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    return served_pod(f"train-{number}", spec, creationTimestamp=CREATED, labels=labels, ownerReferences=owners)


def started(cpus: int, *others: Any, owned: bool = True, labels: dict[str, str] = ASKED, least: str = "") -> Harness:
    """The Job with its five pods, a node and these others, after five seconds; by default where Jobs are gangs."""
    harness = Harness()
    harness.label_namespace("default", labels)
    said = {"gangsched.io/min-member": least} if least else {}
    harness.wait(5, node("n1", cpu=cpus), job(**said), *others, *(of_job(number, owned=owned) for number in range(5)))
    return harness


def reasons(harness: Harness) -> set[str]:
    return {event.reason for event in harness.emitted}


@pytest.fixture(params=["pods", "object", "both"])
def shown(request: pytest.FixtureRequest) -> str:
    """What shows that the controller made the group."""
    return str(request.param)


@pytest.mark.parametrize("policy", [BASIC, GANG], ids=["basic", "gang"])
def test_where_jobs_are_gangs_the_pods_are_one_automatic_gang_and_are_told_of_it(shown, policy):
    harness = started(4, *([] if shown == "pods" else [native_group(policy)]), owned=shown != "object")
    assert harness.bound() == []
    assert harness.pod("default/train-0").condition_message.startswith("Group job.train")
    assert "NativeGroupIgnored" in reasons(harness)
    harness.wait(5, node("n2", cpu=1))
    assert len(harness.bound()) == 5


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("restarts", "standbys", "leaderless", why="the story tells a watch what no list holds")
def test_a_group_that_cannot_be_read_for_a_while_remains_one_that_the_controller_made():
    harness = started(4, native_group(BASIC), owned=False)
    harness.report(ForeignGroupsHidden("native", "gangsched may not read it."))
    harness.wait(5)
    harness.wait(5, node("n2", cpu=1))
    assert len(harness.bound()) == 5
    harness.report(ForeignGroupsReplaced("native", (native_group(BASIC),)))
    harness.wait(5)
    assert len(harness.bound()) == 5


@pytest.mark.parametrize(("policy", "number"), [(BASIC, 4), (GANG, 0)], ids=["basic", "gang"])
def test_where_jobs_are_no_gangs_the_native_group_counts(shown, policy, number):
    harness = started(4, native_group(policy, by_job=shown != "pods"), owned=shown != "object", labels={})
    assert len(harness.bound()) == number
    assert "NativeGroupIgnored" not in reasons(harness)


@pytest.mark.parametrize(("policy", "number"), [(BASIC, 4), (GANG, 0)], ids=["basic", "gang"])
@pytest.mark.parametrize("delegated", [False, True], ids=["by the template", "by the owner"])
def test_a_group_that_the_user_or_the_jobs_own_owner_names_counts_everywhere(policy, number, delegated):
    """The user's template names it, or its Workload asks for it, as the Job's group-template-name annotation says."""
    native = native_group(policy, delegated=True) if delegated else native_group(policy, by_job=False)
    harness = started(4, native, owned=delegated)
    assert len(harness.bound()) == number
    assert "NativeGroupIgnored" not in reasons(harness)


def test_a_group_of_the_job_alone_declares_nothing_though_no_workload_is_named():
    """Regression: without an owner of the kind Workload it counted as delegated, and four of five pods were bound."""
    harness = started(4, native_group(BASIC, delegated=True, workloadRef=None), owned=False)
    assert harness.bound() == []
    assert harness.pod("default/train-0").condition_reason == "Unschedulable"


class TestWhatTheJobStatesForItsGroup:
    """In Kubernetes 1.37 the controller copies the Job's spec.scheduling to the group that it adds."""

    def test_a_minimum_by_annotation_takes_precedence(self):
        """Regression: the smaller of both counted, so a part of what the user asked for was bound."""
        harness = started(3, native_group({"gang": {"minCount": 3}}), least="4")
        assert harness.bound() == []
        harness.wait(5, node("n2", cpu=1))
        assert len(harness.bound()) == 4

    def test_the_group_of_one_job_says_nothing_about_a_gang_of_several(self):
        """Regression: a JobSet's gang of eight got the minimum of the group that 1.36 makes for its first Job."""
        harness = Harness()
        harness.label_namespace("default", ASKED)
        names = {"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/replicatedjob-name": "w"}
        members = [of_job(number, owned=True, **names) for number in range(5)]
        harness.add(node("n1", cpu=7), jobset(least=8), job(), native_group(GANG), *members)
        harness.wait(5, *(replace(pod, uid=f"{pod.uid}-b", name=f"{pod.name}-b") for pod in members))
        assert harness.bound() == []
        harness.wait(5, node("n2", cpu=3))
        assert len(harness.bound()) == 10

    @pytest.mark.without("disorder", why="asserts what one order of events leads to")
    @pytest.mark.without("restarts", "standbys", "leaderless", why="the story tells a watch what no list holds")
    def test_its_minimum_counts_again_as_soon_as_it_can_be_read_again(self):
        harness = Harness()
        harness.label_namespace("default", ASKED)
        harness.add(node("n1", cpu=3), job(), native_group({"gang": {"minCount": 3}}))
        harness.report(ForeignGroupsHidden("native", "gangsched may not read it."))
        harness.wait(5, *(of_job(number, owned=True) for number in range(5)))
        assert harness.bound() == []
        harness.report(ForeignGroupsReplaced("native", (native_group({"gang": {"minCount": 3}}),)))
        harness.wait(5)
        assert len(harness.bound()) == 3

    def test_its_priority_counts_in_the_order_though_its_members_have_none(self):
        """Regression: the earliest place that the gang may have was found without it."""
        other = group("other", min_member=5, priority=3)
        harness = started(4, native_group(BASIC, priority=7), other, *pods("other", 5))
        assert harness.bound() == []
        harness.wait(5, node("n2", cpu=1))
        assert harness.bound() == [f"default/train-{number}" for number in range(5)]

    def test_claims_that_its_pods_share_are_those_of_the_group(self):
        """The gang is the automatic one; the claim belongs to the group that the pods name."""
        harness = Harness()
        harness.label_namespace("default", ASKED)
        claims = [{"name": "shared", "resourceClaimTemplateName": "one"}]
        harness.add(node("n1", cpu=5), job(), native_group(BASIC, resourceClaims=claims))
        harness.add(GPUS, gpus("n1", 1), device_claim("c", owner="uid-g", group="train-7fk2p"))
        use = DeviceUse("shared", "c", "one", "train-7fk2p")
        harness.wait(5, *(replace(of_job(number, owned=True), device_claims=(use,)) for number in range(4)))
        assert harness.bound() == []
        assert harness.gadgets.allocated() == {}
        harness.wait(5, replace(of_job(4, owned=True), device_claims=(use,)))
        assert len(harness.bound()) == 5
        assert harness.gadgets.claim("c").reserved == ("uid-g",)
