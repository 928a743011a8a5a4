"""Mistakes in the declaration and name of a group, and PodGroups that the API server rejects."""

from __future__ import annotations

from collections.abc import Iterator

from documentation.mistakes.row import LABEL, Mistake, Where, annotated, group_and_job, job, marked, template
from testbed.workloads import member, pod_group

_NO_CLASS = "spec.priorityClassName names the PriorityClass urgent, which does not exist: create it or name another."
_NO_ROLES = (
    "names the role worker, but the group o has no roles: correct the label gangsched.io/role or add the role to the "
    "PodGroup."
)
_NO_STRATEGY = (
    "The placement strategy example.com/Best is not installed: install the plug-in that provides it, or use one of …."
)
_NO_GROUP = (
    "There is no PodGroup h in namespace {namespace}: create it, or give the pods the annotation "
    "gangsched.io/min-member."
)


def declared() -> Iterator[tuple[str, Mistake]]:
    """Mistakes in how a group is declared or named."""
    yield (
        "the label on the Job instead of its pod template",
        Mistake(
            objects=group_and_job("a", made=template("", scheduler="default-scheduler"), labels={LABEL: "a"}),
            group="a",
            told={
                Where.EXPLAIN: f"the label {LABEL} in spec.template.metadata.labels of the Job a, which has it only on "
                "itself",
                Where.GROUP: f"No pod names this PodGroup yet: label pods {LABEL} and set schedulerName.",
            },
        ),
    )
    yield (
        "the group's name misspelt",
        Mistake(
            objects=[pod_group("training", min_member=2), job("b", 2, template("trainig"))],
            group="trainig",
            told={
                Where.EXPLAIN: "the right name in the pods' label: there is a PodGroup training",
                Where.POD: "There is no PodGroup trainig in namespace {namespace}: create it, or give the pods …",
            },
        ),
    )
    yield (
        "a group with the right name in another namespace",
        Mistake(
            objects=[pod_group("c", min_member=2) | {"elsewhere": True}, job("c", 2, template("c"))],
            group="c",
            told={
                Where.EXPLAIN: "a PodGroup in the pods' own namespace {namespace}: {elsewhere}/c counts only for pods "
                "of its own",
                Where.POD: "There is no PodGroup c in namespace {namespace}: create it, or give the pods …",
            },
        ),
    )
    yield (
        "a PodGroup of another system, with gangsched's label",
        Mistake(
            objects=[
                {
                    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                    "kind": "PodGroup",
                    "metadata": {"name": "foreign"},
                    "spec": {"minMember": 2},
                },
                job("foreign", 2, template("foreign")),
            ],
            group="foreign",
            told={
                Where.EXPLAIN: f"the label scheduling.x-k8s.io/pod-group in place of the label {LABEL}, because the "
                "PodGroup foreign that exists is one of scheduler-plugins; or a PodGroup of gangsched.io",
                Where.POD: "There is no PodGroup foreign in namespace {namespace}: create it, or give the pods …",
            },
        ),
    )
    yield (
        "no PodGroup at all",
        Mistake(objects=[job("h", 2, template("h"))], group="h", told={Where.EXPLAIN: _NO_GROUP, Where.POD: _NO_GROUP}),
    )
    yield (
        "schedulerName forgotten",
        Mistake(
            objects=group_and_job("i", made=template("i", scheduler="default-scheduler")),
            group="i",
            told={
                Where.EXPLAIN: "another schedulerName: 2 pods of default-scheduler named the group without effect",
                Where.EVENT: "The pod names the group i, but its schedulerName is default-scheduler: it is not a "
                "member. Set schedulerName to gangsched or remove the label.",
                Where.GROUP: "2 pods name this PodGroup with a schedulerName that gangsched does not serve "
                "(default-scheduler): correct their schedulerName.",
            },
        ),
    )
    yield (
        "schedulerName misspelt, and no PodGroup",
        Mistake(
            objects=[job("misspelt", 2, template("misspelt", scheduler="gangshed"))],
            group="misspelt",
            told={
                Where.EXPLAIN: "The group belongs to the installation of gangsched that serves the schedulerName "
                "gangshed, because 2 pods that name it have this schedulerName.",
                Where.EVENT: "The pod names the group misspelt, but no scheduler named gangshed has reacted "
                "to it within 20s: set schedulerName to gangsched, or run the scheduler of that name.",
            },
        ),
    )
    yield (
        "schedulerName misspelt, and no group",
        Mistake(
            objects=[member("lonely", scheduler="gangshed")],
            group="lonely",
            told={
                Where.ERROR: "the pod lonely of namespace {namespace} has the schedulerName gangshed, not gangsched: "
                "create it again with spec.schedulerName: gangsched, or name its scheduler with --scheduler-name",
            },
        ),
    )
    yield (
        "a role, but the group has none",
        Mistake(
            objects=group_and_job("o", 1, made=marked(template("o"), labels={"gangsched.io/role": "worker"})),
            group="o",
            told={Where.EXPLAIN: f"Pod o-… {_NO_ROLES}", Where.POD: f"Pod o-… {_NO_ROLES}"},
        ),
    )
    yield (
        "a role misspelt",
        Mistake(
            objects=[
                pod_group("roles", min_member=1, roles=[{"name": "worker", "minMember": 1}]),
                job("roles", 1, marked(template("roles"), labels={"gangsched.io/role": "wroker"})),
            ],
            group="roles",
            told={
                Where.POD: "names the role wroker, but the group roles has only worker: correct the label "
                "gangsched.io/role or add the role to the PodGroup."
            },
        ),
    )
    yield (
        "an annotation that is not a number",
        Mistake(
            objects=[job("four", 2, marked(template("four"), annotations={"gangsched.io/min-member": "four"}))],
            group="four",
            told={
                Where.POD: "Pod four-…: The annotation gangsched.io/min-member is 'four': write a whole number from 1 "
                "to 2147483647.",
            },
        ),
    )
    yield (
        "different minima in pods and PodGroup",
        Mistake(
            objects=group_and_job("two", made=marked(template("two"), annotations={"gangsched.io/min-member": "3"})),
            group="two",
            told={
                Where.POD: "The PodGroup says minMember 2, the pods say 3 by the annotation gangsched.io/min-member: "
                "make them equal or remove the latter."
            },
        ),
    )
    yield (
        "a namespace's label misspelt, gangsched.io/gang: yes",
        Mistake(
            objects=[job("auto", 2, template("")) | {"elsewhere": True}],
            group="auto",
            told={
                Where.EVENT: "The pods of Job auto are scheduled one by one. To have them bound all together or not at "
                "all, label the namespace {elsewhere} gangsched.io/gang=auto (it is 'yes'), or annotate Job auto "
                'gangsched.io/gang: "true".'
            },
        ),
    )
    yield (
        "a workload's annotation misspelt, gangsched.io/gang: yes",
        Mistake(
            objects=[annotated(job("wish", 2, template("")), {"gangsched.io/gang": "yes"})],
            group="wish",
            told={Where.EXPLAIN: 'Job wish: The annotation gangsched.io/gang is \'yes\': write "true" or "false".'},
        ),
    )
    yield (
        "the PriorityClass of the group does not exist",
        Mistake(
            objects=[pod_group("n", min_member=1, priorityClassName="urgent"), job("n", 1, template("n"))],
            group="n",
            told={Where.EXPLAIN: _NO_CLASS, Where.POD: _NO_CLASS},
        ),
    )
    yield (
        "a placement strategy that is not installed",
        Mistake(
            objects=[
                pod_group("p", min_member=1, placement={"strategy": "example.com/Best"}),
                job("p", 1, template("p")),
            ],
            group="p",
            told={Where.EXPLAIN: _NO_STRATEGY, Where.POD: _NO_STRATEGY},
        ),
    )


def refused() -> Iterator[tuple[str, Mistake]]:
    """PodGroups that the API server rejects."""
    for what, spec, told in (
        ("minMember 0", {"minMember": 0}, "spec.minMember in body should be greater than or equal to 1"),
        (
            "maxScheduleTime: 10 min",
            {"minMember": 1, "maxScheduleTime": "10 min"},
            (
                'spec.maxScheduleTime: Invalid value: "10 min": must be hours, minutes and seconds such as 90s, 5m or '
                "1h30m, from 1s to 168h (7 days)"
            ),
        ),
        ("a field misspelt", {"minMembers": 2}, 'unknown field "spec.minMembers"'),
        (
            "minMember above maxMember",
            {"minMember": 3, "maxMember": 2},
            "spec.maxMember must be at least spec.minMember: raise maxMember or lower minMember",
        ),
    ):
        body = pod_group("refused", min_member=1) | {"spec": spec}
        yield what, Mistake(objects=[body], alone=True, told={Where.KUBECTL: told})
