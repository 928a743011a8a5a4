"""Mistakes that keep pods from being created, and pods that fit no node."""

from __future__ import annotations

from collections.abc import Iterator

from documentation.mistakes.row import (
    Mistake,
    Where,
    annotated,
    claim,
    devices,
    group_and_job,
    job,
    quota,
    stateful_set,
    template,
    volume,
)
from testbed.workloads import pod_group

_TOO_LARGE = (
    "each member asks cpu 40, and the largest node that accepts them has cpu 8; ask for less or add a larger node"
)
_NO_DEVICE = "no node that accepts them offers amd.com/gpu (is its device plug-in running?)"
_NO_CLAIM = "Pod m-… uses the PersistentVolumeClaim missing, which does not exist: create it."
_NO_TEMPLATE = (
    "Pod x-… uses the ResourceClaim gpu, which kube-controller-manager has yet to create from its "
    "ResourceClaimTemplate: if it does not, the pod's Events say why, such as that there is no such template."
)


def made() -> Iterator[tuple[str, Mistake]]:
    """Mistakes that keep pods from being created."""
    yield (
        "minMember above the replicas",
        Mistake(
            objects=[pod_group("d", min_member=3), stateful_set("d", 2, template("d"))],
            group="d",
            told={
                Where.EXPLAIN: "a minimum of at most 2, which is all that the StatefulSet d will make, or more "
                "replicas there",
                Where.POD: "2 of 3 members exist; 1 more member is needed, or a lower minimum",
            },
        ),
    )
    yield (
        "minMember above the Job's pods",
        Mistake(
            objects=group_and_job("e", minimum=3),
            group="e",
            told={
                Where.EXPLAIN: "a minimum of 2, as many as exist",
                Where.GROUP: "2 of 3 members exist; 1 more member is needed, or a lower minimum.",
            },
        ),
    )
    yield (
        "a suspended Job",
        Mistake(
            objects=group_and_job("f", suspend=True),
            group="f",
            told={Where.EXPLAIN: "the end of the suspension of the Job f: set its spec.suspend to false"},
        ),
    )
    yield (
        "a StatefulSet that creates its pods one by one",
        Mistake(
            objects=[pod_group("g", min_member=2), stateful_set("g", 2, template("g"), policy="OrderedReady")],
            group="g",
            told={
                Where.EXPLAIN: "all pods at once of the StatefulSet g, which makes some only when others run: create "
                "the StatefulSet again with podManagementPolicy: Parallel"
            },
        ),
    )
    yield (
        "a Job that has failed",
        Mistake(
            objects=group_and_job("ended", activeDeadlineSeconds=1, made=template("ended", requests={"cpu": "40"})),
            group="ended",
            told={
                Where.EXPLAIN: "a new run: the Job ended has failed (DeadlineExceeded: …); delete it and create it "
                "again"
            },
        ),
    )
    yield (
        "a quota that refuses the pods of a StatefulSet",
        Mistake(
            objects=[
                quota("tokens", "example.com/token"),
                pod_group("q", min_member=1),
                stateful_set("q", 1, template("q", requests={"example.com/token": "1"})),
            ],
            group="q",
            told={
                Where.EXPLAIN: "pods that the StatefulSet q could not make: …exceeded quota: tokens, requested: "
                "requests.example.com/token=1, used: requests.example.com/token=0, limited: "
                "requests.example.com/token=0"
            },
        ),
    )
    yield (
        "a quota that refuses a pod of a Job that is an automatic gang",
        Mistake(
            objects=[
                quota("coupons", "example.com/coupon", "1"),
                annotated(
                    job("undeclared", 2, template("", requests={"example.com/coupon": "1"})),
                    {"gangsched.io/gang": "true"},
                ),
            ],
            group="undeclared",
            told={
                Where.EXPLAIN: "pods that the Job undeclared could not make: …exceeded quota: coupons, …",
                Where.POD: "1 of 2 members exist; 1 more member is needed, or a lower minimum",
            },
        ),
    )
    yield (
        "a quota that refuses the pods of a Deployment",
        Mistake(
            objects=[
                quota("tickets", "example.com/ticket"),
                pod_group("deployed", min_member=1),
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "deployed"},
                    "spec": {
                        "replicas": 1,
                        "selector": {"matchLabels": {"made": "yes"}},
                        "template": template("deployed", requests={"example.com/ticket": "1"}),
                    },
                },
            ],
            group="deployed",
            told={Where.EXPLAIN: "pods that the ReplicaSet deployed-… could not make: …exceeded quota: tickets, …"},
        ),
    )
    yield (
        "the PriorityClass of the pods does not exist",
        Mistake(
            objects=group_and_job("classless", made=template("classless", priorityClassName="urgent")),
            group="classless",
            told={
                Where.EXPLAIN: "pods that the Job classless could not make: …no PriorityClass with name urgent was "
                "found"
            },
        ),
    )
    yield (
        "pods with scheduling gates",
        Mistake(
            objects=group_and_job("gated", made=template("gated", schedulingGates=[{"name": "example.com/wait"}])),
            group="gated",
            told={Where.EXPLAIN: "removing the scheduling gates of 2 members, which do not count until then"},
        ),
    )


def placed() -> Iterator[tuple[str, Mistake]]:
    """Pods that fit no node."""
    yield (
        "more CPUs than any node has",
        Mistake(
            objects=group_and_job("j", made=template("j", requests={"cpu": "40"})),
            group="j",
            told={Where.EXPLAIN: _TOO_LARGE, Where.POD: _TOO_LARGE, Where.GROUP: _TOO_LARGE, Where.LOG: _TOO_LARGE},
        ),
    )
    yield (
        "a GPU that no node offers",
        Mistake(
            objects=group_and_job("k", made=template("k", requests={"amd.com/gpu": "1"})),
            group="k",
            told={Where.EXPLAIN: _NO_DEVICE, Where.POD: _NO_DEVICE},
        ),
    )
    yield (
        "a node selector that no node matches",
        Mistake(
            objects=group_and_job("l", made=template("l", nodeSelector={"disk": "ssd"})),
            group="l",
            told={
                Where.EXPLAIN: "a wider nodeSelector disk=ssd: 2 nodes not matched",
                Where.POD: "Of 3 nodes: 2 not matched by nodeSelector disk=ssd; 1 with a taint that is not tolerated: "
                "dedicated=gpus:NoSchedule.",
            },
        ),
    )
    yield (
        "a taint that is not tolerated",
        Mistake(
            objects=group_and_job("t", made=template("t", nodeSelector={"pool": "gpus"})),
            group="t",
            told={
                Where.EXPLAIN: "tolerating or removing dedicated=gpus:NoSchedule: 1 node with that taint",
                Where.POD: "1 with a taint that is not tolerated: dedicated=gpus:NoSchedule",
            },
        ),
    )
    yield (
        "a claim that does not exist",
        Mistake(
            objects=group_and_job("m", 1, made=template("m", **volume("missing"))),
            group="m",
            told={Where.EXPLAIN: _NO_CLAIM, Where.POD: _NO_CLAIM},
        ),
    )
    yield (
        "a claim of a StorageClass that does not exist",
        Mistake(
            objects=[claim("unbound", "nosuch"), *group_and_job("v", 1, made=template("v", **volume("unbound")))],
            group="v",
            told={
                Where.POD: "Pod v-… uses the PersistentVolumeClaim unbound, which is not bound: provide a "
                "PersistentVolume that it can be bound to."
            },
        ),
    )
    yield (
        "a ResourceClaimTemplate that does not exist",
        Mistake(
            objects=group_and_job("x", 1, made=template("x", **devices("nosuch"))),
            group="x",
            told={Where.EXPLAIN: _NO_TEMPLATE, Where.POD: _NO_TEMPLATE},
        ),
    )
    yield (
        "a namespace that no operator serves",
        Mistake(
            objects=group_and_job("unserved", made=template("unserved", scheduler="other")),
            command=("explain", "--scheduler-name", "other", "{namespace}/unserved"),
            told={
                Where.OUTPUT: "a running operator that serves this namespace and schedulerName, if this does not "
                "change: see its log, /readyz and --namespace"
            },
        ),
    )
