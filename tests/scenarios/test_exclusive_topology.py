"""JobSets in which each Job gets a topology domain of its own, with pods as JobSet's webhook makes them.

The webhook refuses a Job's pods until the first of them, the leader, has a node. It then selects the leader's domain.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.objects.workload import Workload
from gangsched.kube.workloads.workload_kind import Marks
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

KIND = KINDS["jobset"]
ZONE = "zone"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": ZONE}
BY_SELECTOR = {"alpha.jobset.sigs.k8s.io/node-selector": "true"}
JOB, PRIORITY = "jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/priority"


def replicated(name: str = "workers", *, jobs: int = 2, pods: int = 4, **more: Any) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    template = {"spec": {"parallelism": pods, "completions": pods, "template": {"spec": {"containers": containers}}}}
    return {"name": name, "replicas": jobs, "template": template, **more}


def job_set(
    name: str = "w", *jobs: dict[str, Any], annotations: dict[str, str] = EXCLUSIVE, **spec: Any
) -> ForeignGroup:
    spec = {"replicatedJobs": list(jobs or [replicated()]), **spec}
    return served_workload("jobset", name, spec, annotations=annotations)


class JobSet:
    """Creates the pods of a JobSet's Jobs as its controller, the Job controller and its webhook do."""

    def __init__(self, harness: Harness, name: str = "w", *, jobs: int = 2, pods: int = 4, late_s: float = 0.0) -> None:
        self.name, self._harness, self._jobs, self._pods = name, harness, jobs, pods
        self._late_s = late_s

    def create(self, *, replicated_job: str = "workers") -> None:
        """Create the leaders, and the other pods once the leaders have nodes."""
        for job in range(self._jobs):
            self.lead(job, replicated_job)

    def lead(self, job: int, replicated_job: str = "workers") -> None:
        """Create the leader of one Job, and then its other pods."""
        key = f"key-{self.name}-{job}"
        mine = (Requirement(JOB, "In", (key,)),)
        others = (
            Requirement(JOB, "Exists"),
            Requirement(JOB, "NotIn", (key,)),
            Requirement(PRIORITY, "In", ("0",)),
        )
        self._harness.add(
            self._pod(
                replicated_job,
                job,
                0,
                affinity=[PodTerm(ZONE, mine, namespace_selector=())],
                anti_affinity=[PodTerm(ZONE, others, namespace_selector=())],
            )
        )
        self._harness.after(self._late_s, lambda: self._follow(replicated_job, job))

    def _follow(self, replicated_job: str, job: int) -> None:
        leader = self._harness.pod(f"default/{self.name}-{replicated_job}-{job}-0")
        if not leader.node:
            self._harness.after(1.0, lambda: self._follow(replicated_job, job))
            return
        zone = dict(self._harness.nodes[leader.node].labels)[ZONE]
        self._harness.add(
            *(
                self._pod(replicated_job, job, number, node_selector={ZONE: zone})
                for number in range(1, self._pods)
                if f"uid-default/{self.name}-{replicated_job}-{job}-{number}" not in self._harness.pods
            )
        )

    def _pod(self, replicated_job: str, job: int, number: int, **fields: Any) -> Pod:
        labels = {
            "jobset.sigs.k8s.io/jobset-name": self.name,
            "jobset.sigs.k8s.io/jobset-uid": f"uid-{self.name}",
            "jobset.sigs.k8s.io/replicatedjob-name": replicated_job,
            "jobset.sigs.k8s.io/job-index": str(job),
            "batch.kubernetes.io/job-completion-index": str(number),
            JOB: f"key-{self.name}-{job}",
            PRIORITY: "0",
        }
        owner = Owner("Job", f"{self.name}-{replicated_job}-{job}", f"uid-{self.name}-{replicated_job}-{job}", "batch")
        mark = KIND.mark(Marks(labels, EXCLUSIVE, owner))
        assert mark is not None
        return pod(
            f"default/{self.name}-{replicated_job}-{job}-{number}",
            group="",
            labels=labels,
            owner=owner,
            workload=KIND.workload(mark),
            created=self._harness.now + number,
            **fields,
        )


@pytest.fixture
def auto() -> Harness:
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    return harness


def rooms(harness: Harness, *cpus: str) -> None:
    """A zone for each entry, whose CPUs are split between two nodes."""
    for number, cpu in enumerate(cpus):
        for side in ("a", "b"):
            harness.add(node(f"n{number}{side}", cpu=int(cpu) // 2, labels={ZONE: f"z{number}"}))


def zones(harness: Harness, name: str = "w") -> dict[str, set[str]]:
    """The domains of each Job's bound pods."""
    found: dict[str, set[str]] = {}
    for each in harness.pods.values():
        if each.node and each.name.startswith(f"{name}-"):
            job = each.name.rpartition("-")[0]
            found.setdefault(job, set()).add(dict(harness.nodes[each.node].labels)[ZONE])
    return found


def bound(harness: Harness, name: str = "w") -> int:
    return sum(bool(each.node) for each in harness.pods.values() if each.name.startswith(f"{name}-"))


def test_each_job_has_a_domain_of_its_own_and_all_are_bound_whole(auto):
    rooms(auto, "4", "4", "4")
    auto.add(job_set())
    JobSet(auto).create()
    auto.wait(10)
    assert bound(auto) == 8
    assert sorted(map(sorted, zones(auto).values())) in ([["z0"], ["z1"]], [["z0"], ["z2"]], [["z1"], ["z2"]])


def test_no_leader_is_bound_unless_all_jobs_have_a_domain_with_room_for_the_whole_job(auto):
    """The second domain has two CPUs for the four pods of a Job, so the Job's last pods would never fit."""
    rooms(auto, "4", "2")
    auto.add(job_set())
    JobSet(auto).create()
    auto.wait(60)
    before = bound(auto)
    rooms(auto, "4", "4")
    auto.wait(20)
    assert (before, bound(auto)) == (0, 8)


def test_an_annotation_of_one_replicated_job_concerns_its_jobs_alone(auto):
    rooms(auto, "4", "4", "2")
    workers = replicated()
    workers["template"]["metadata"] = {"annotations": EXCLUSIVE}
    made = job_set("w", replicated("driver", jobs=1, pods=1), workers, annotations={})
    assert made.spec is not None
    assert [(role.name, role.min_member, role.led) for role in made.spec.roles] == [
        ("driver", 1, False),
        ("workers.0", 4, True),
        ("workers.1", 4, True),
    ]


def test_a_group_of_ones_own_says_why_its_members_do_not_come_and_what_to_do(auto):
    """The label is on the pods, and the minimum in a PodGroup: the leaders wait for pods that in turn wait for them."""
    rooms(auto, "4", "4")
    auto.add(job_set(), group("default/a", min_member=8))
    leader = pod("default/w-workers-0-0", workload=Workload("jobset", "w", None, "uid-w"))
    auto.wait(3, leader)
    assert auto.pod("default/w-workers-0-0").condition_message == (
        "Group a: 1 of 8 members exist; 7 more members are needed, or a lower minimum. The JobSet w creates "
        "some pods only once others "
        "have a node or are ready: use the annotation alpha.jobset.sigs.k8s.io/node-selector too, or annotate it "
        'gangsched.io/gang: "true" instead of naming a group on its pods.'
    )


# JobSets whose places cannot be reserved, or need no reservation


@pytest.mark.without("all", why="nothing is decided")
def test_with_node_selectors_or_one_pod_for_each_job_there_is_nothing_to_hold():
    by_selector = job_set(annotations=EXCLUSIVE | BY_SELECTOR)
    single = job_set("w", replicated(jobs=100, pods=1))
    assert by_selector.spec is not None
    assert single.spec is not None
    assert [(role.name, role.min_member, role.template) for role in by_selector.spec.roles] == [("workers", 8, None)]
    assert (single.spec.roles, single.spec.min_member) == ((), 100)


TOO_MANY = (
    "JobSet w: a gang has at most 64 roles, and each Job with an exclusive topology is one: use the annotation "
    "alpha.jobset.sigs.k8s.io/node-selector too, or fewer Jobs."
)
FAR_TOO_MANY = "JobSet w: it has more than 10000 Jobs, whose names are not kept: use fewer, with more pods each."
IN_ORDER = (
    "JobSet w: the Jobs of 'then' have an exclusive topology and are created only once others are ready, so that no "
    "places can be reserved for them: create the JobSet again without startupPolicy InOrder and dependsOn, or without "
    "the annotation alpha.jobset.sigs.k8s.io/exclusive-topology."
)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"startupPolicy": {"startupPolicyOrder": "InOrder"}}, IN_ORDER),
        ({"replicatedJobs": [replicated(jobs=65)]}, TOO_MANY),
        ({"replicatedJobs": [replicated(jobs=2**31 - 1)]}, FAR_TOO_MANY),
    ],
)
@pytest.mark.without("all", why="nothing is decided")
def test_what_no_places_can_be_held_for_is_refused_by_name(spec, said):
    found = job_set("w", replicated("first"), replicated("then"), **spec)
    assert (found.spec, found.error) == (None, said)


@pytest.mark.without("all", why="nothing is decided")
@pytest.mark.parametrize(
    ("annotations", "role"),
    [({}, "workers"), (EXCLUSIVE, "workers.1"), (EXCLUSIVE | BY_SELECTOR, "workers"), (BY_SELECTOR, "workers")],
)
def test_a_pod_that_waits_for_a_leader_says_which_job_it_belongs_to(annotations, role):
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "w",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "1",
    }
    mark = KIND.mark(Marks(labels, annotations, Owner("Job", "w-workers-1", "u", "batch")))
    assert mark is not None
    assert mark.role == role
