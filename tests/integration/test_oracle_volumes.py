"""kube-scheduler itself judges the volume filters: see test_oracle.py."""

from __future__ import annotations

import pytest

from tests.effort import seeded
from tests.integration.judged import Bench, Json, Surroundings, Verdicts, World, agree
from tests.integration.oracle_volumes import (
    BETA_ZONE,
    CLASSES,
    REGION,
    STATIC,
    VolumeDice,
    capacity,
    claim,
    csi_driver,
    csi_node,
    naming,
    storage_class,
    unclaimed,
    using,
    volume,
    waiting,
)
from tests.integration.oracle_worlds import NAMESPACES, ZONE, node, on, pod
from tests.judge import Judge

STORAGE: list[Json] = [
    *(storage_class(name, mode) for name, mode in CLASSES.items()),
    csi_node("full", a=1),
    csi_node("room-for-1", a=2),
    csi_node("over", a=0),
    csi_node("unlimited", a=None),
    csi_node("other-driver", b=0),
    csi_node("shares", a=1),
    csi_node("unbound-there", a=1),
    csi_node("disks", p=1, e=1),
    *(volume(name) for name in ("there-0", "there-1", "there-2", "v-1", "v-2")),
    volume("same-handle", csi={"driver": "a.csi.example.com", "volumeHandle": "v-1"}),
    volume("in-b", (f"{ZONE} In b",)),
    volume("in-a-or-pool", (f"{ZONE} In a",), ("pool Exists",)),
    volume("nowhere", ()),
    volume("no-numbers", ("pool Gt x",)),
    volume("by-name", ("metadata.name In full",)),
    volume("by-other-name", ("metadata.name NotIn full",)),
    volume("zone-b", labels={ZONE: "b"}),
    volume("zones-a-b", labels={ZONE: "a__b"}),
    volume("zones-wrong", labels={ZONE: "a____b"}),
    volume("beta-b", labels={BETA_ZONE: "b"}),
    volume("region-r", labels={REGION: "r"}),
    volume("files", nfs={"server": "s", "path": "/"}),
    *(
        claim(name, name)
        for name in ("there-0", "there-1", "there-2", "v-1", "v-2", "same-handle", "in-b", "in-a-or-pool")
    ),
    *(claim(name, name) for name in ("nowhere", "no-numbers", "by-name", "by-other-name", "zone-b", "zones-a-b")),
    *(claim(name, name) for name in ("zones-wrong", "beta-b", "region-r", "files")),
    claim("alone", "files", mode="ReadWriteOncePod"),
    claim("alone-used", "files", mode="ReadWriteOncePod"),
    claim("alone-used", "files", mode="ReadWriteOncePod", namespace="blue"),
    claim("there-0-by-another-claim", "there-0"),
    claim("prebound", "v-1", bound=False),
    claim("lost", "v-1", phase="Lost"),
    claim("leaving", "v-1", leaving=True),
    claim("without-volume", "none"),
    claim("at-once", storageClassName="at-once"),
    claim("classless"),
    claim("of-no-class", storageClassName="unheard-of"),
    claim("later", storageClassName="later"),
    storage_class("static", "WaitForFirstConsumer", STATIC),
    storage_class("in-a", "WaitForFirstConsumer", zones=[["a"]]),
    storage_class("in-a-or-b", "WaitForFirstConsumer", zones=[["a"], ["c", "b"]]),
    unclaimed("free-anywhere", size="5Gi"),
    unclaimed("free-in-b", (f"{ZONE} In b",)),
    unclaimed("free-labelled", (f"{ZONE} In b",), size="2Gi", labels={"tier": "x"}),
    unclaimed("free-block", volumeMode="Block"),
    unclaimed("free-many", (f"{ZONE} In a",), size="9Gi", accessModes=["ReadWriteMany", "ReadWriteOnce"]),
    unclaimed("released", size="99Gi", phase="Released"),
    unclaimed("meant", (f"{ZONE} In b",), claimRef={"namespace": "red", "name": "wait-meant"}),
    unclaimed("meant-for-another", size="50Gi", claimRef={"namespace": "blue", "name": "wait-meant"}),
    unclaimed("meant-small", (f"{ZONE} In b",), claimRef={"namespace": "red", "name": "wait-meant-small"}),
    unclaimed("released-for", (f"{ZONE} In b",), phase="Released", claimRef={"namespace": "red", "name": "wait-old"}),
    unclaimed("free-gold", (f"{ZONE} In b",), size="7Gi", volumeAttributesClassName="gold"),
    unclaimed("meant-silver", claimRef={"namespace": "red", "name": "wait-silver"}),
    waiting("wait-old"),
    waiting("wait-gold", volumeAttributesClassName="gold"),
    waiting("wait-silver", volumeAttributesClassName="silver"),
    waiting("wait"),
    waiting("wait-2"),
    waiting("wait-3"),
    waiting("wait-large", size="6Gi"),
    waiting("wait-too-large", size="10Gi"),
    waiting("wait-many", mode="ReadWriteMany"),
    waiting("wait-block", volumeMode="Block"),
    waiting("wait-labelled", selector={"matchLabels": {"tier": "x"}}),
    waiting(
        "wait-not-labelled", selector={"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}
    ),
    waiting("wait-empty-selector", selector={}),
    waiting("wait-meant"),
    waiting("wait-meant-small", size="2Gi"),
    waiting("wait-in-a", storage="in-a"),
    waiting("wait-in-a-or-b", storage="in-a-or-b"),
    waiting("wait-selected", storage="later", selected="full"),
    waiting("wait-selected-nowhere", storage="later", selected="gone"),
    waiting("wait-selected-static", selected="full"),
    waiting("wait-selected-elsewhere", storage="in-a", selected="in-b"),
    *(csi_driver(f"{name}.csi.example.com") for name in ("counted", "empty")),
    csi_driver("uncounted.csi.example.com", capacity=False),
    csi_driver("pd.csi.storage.gke.io"),
    *(
        storage_class(name, "WaitForFirstConsumer", f"{name}.csi.example.com")
        for name in ("counted", "empty", "uncounted", "unknown")
    ),
    storage_class("counted-in-b", "WaitForFirstConsumer", "counted.csi.example.com", zones=[["b"]]),
    storage_class("by-plug-in", "WaitForFirstConsumer", "kubernetes.io/gce-pd"),
    capacity("in-a", "counted", "2Gi", f"{ZONE} a"),
    capacity("in-a-larger", "counted", "4Gi", f"{ZONE} a", "pool"),
    capacity("in-b", "counted", "9Gi", f"{ZONE} b", largest="1Gi"),
    capacity("without-zone", "counted", "1Mi", f"!{ZONE}", largest="3Gi"),
    capacity("without-size", "counted", None, "pool"),
    capacity("nowhere", "counted", "99Gi") | {"nodeTopology": None},
    capacity("of-another-class", "uncounted", "1Mi"),
    capacity("everywhere", "counted-in-b", "2Gi"),
    *(
        waiting(f"wait-{storage}-{size}", storage=storage, size=f"{size}Gi")
        for storage in ("counted", "counted-in-b", "empty", "uncounted", "unknown", "by-plug-in")
        for size in (1, 2, 3, 5)
    ),
    waiting("wait-counted-selected", storage="counted", size="2Gi", selected="in-b"),
    waiting("wait-counted-selected-small", storage="counted", selected="in-b"),
    waiting("wait-counted-or-free", storage="static-counted", size="2Gi"),
    storage_class("static-counted", "WaitForFirstConsumer", "empty.csi.example.com"),
    unclaimed("free-counted", (f"{ZONE} In b",), size="2Gi", storageClassName="static-counted"),
]
WORLD = World(
    nodes=[
        *map(node, ("full", "room-for-1", "over", "unlimited", "other-driver", "shares", "unbound-there", "no-csi")),
        *map(node, ("disks", "iscsi", "iscsi-read", "rbd", "rbd-read", "gce-read")),
        node("in-b", labels={ZONE: "b", "pool": "7"}),
        node("beta-b", labels={ZONE: None, BETA_ZONE: "b"}),
        node("region", labels={ZONE: None, REGION: "r"}),
        node("nowhere", labels={ZONE: None}),
    ],
    pods=[
        on("full", using("there-0")),
        on("room-for-1", using("there-0")),
        on("room-for-1", using("there-0")),
        on("shares", using("v-1")),
        on("unlimited", using("there-1", "there-2")),
        on("unbound-there", using("later")),
        on("in-b", using("alone-used")),
        on("in-b", using("alone"), status={"phase": "Succeeded"}),
        on("no-csi", using("gone")),
        on("disks", naming("gcePersistentDisk", pdName="d")),
        on("disks", naming("awsElasticBlockStore", volumeID="aws://a/vol-12345678")),
        on("gce-read", naming("gcePersistentDisk", pdName="d", readOnly=True)),
        on("iscsi", naming("iscsi", targetPortal="10.0.0.1", lun=0, iqn="iqn.2001-04.com.x:a")),
        on("iscsi-read", naming("iscsi", targetPortal="10.0.0.1", lun=0, iqn="iqn.2001-04.com.x:a", readOnly=True)),
        on("rbd", naming("rbd", monitors=["m", "n"], image="i")),
        on("rbd-read", naming("rbd", monitors=["m", "n"], image="i", readOnly=True)),
    ],
    storage=STORAGE,
)
ISCSI: Json = {"targetPortal": "10.0.0.1", "lun": 0, "iqn": "iqn.2001-04.com.x:a"}
PROBES: dict[str, Json] = {
    "no volume": pod(),
    **{
        f"uses {name}": using(name)
        for name in (each["metadata"]["name"] for each in STORAGE if each["kind"] == "PersistentVolumeClaim")
    },
    "uses a claim that is missing": using("missing"),
    "uses a claim of another namespace": using("v-1", namespace="grey"),
    "uses a claim for one pod in another namespace": using("alone-used", namespace="blue"),
    "uses two volumes": using("v-1", "v-2"),
    "uses a volume by two handles": using("v-1", "same-handle"),
    "uses two volumes, one of which is there": using("there-0", "v-1"),
    "uses a zonal volume and one elsewhere": using("zone-b", "in-a-or-pool"),
    "uses two claims that wait": using("wait", "wait-2"),
    "uses three claims that wait": using("wait", "wait-2", "wait-3"),
    "uses a claim that waits and one of a zone": using("wait", "zone-b"),
    "uses a claim that waits and a larger one": using("wait", "wait-large"),
    "uses claims of two classes that wait": using("wait-in-a", "wait-labelled"),
    "uses two claims that one segment suffices for singly": using("wait-counted-2", "wait-counted-1"),
    "uses a claim that storage suffices for and one that waits": using("wait", "wait-counted-1"),
    "has an ephemeral volume that is not made yet": pod(
        volumes=[
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                },
            }
        ]
    ),
    "names a gce disk": naming("gcePersistentDisk", pdName="d"),
    "reads a gce disk": naming("gcePersistentDisk", pdName="d", readOnly=True),
    "names another gce disk": naming("gcePersistentDisk", pdName="e"),
    "names an aws disk": naming("awsElasticBlockStore", volumeID="vol-12345678"),
    "names an aws disk by its address": naming("awsElasticBlockStore", volumeID="aws://a/vol-12345678"),
    "names another aws disk": naming("awsElasticBlockStore", volumeID="vol-12345679"),
    "names an iscsi disk": naming("iscsi", **ISCSI),
    "reads an iscsi disk": naming("iscsi", **ISCSI, readOnly=True),
    "names an image": naming("rbd", monitors=["n", "o"], image="i"),
    "reads an image": naming("rbd", monitors=["n", "o"], image="i", readOnly=True),
    "names an image of other monitors": naming("rbd", monitors=["o"], image="i"),
    "names an image of another pool": naming("rbd", monitors=["n"], image="i", pool="p"),
    "names another image": naming("rbd", monitors=["n"], image="j"),
}


@pytest.fixture(scope="module")
def oracle(judge: Judge) -> Bench:
    return Bench(judge, Surroundings(NAMESPACES))


@pytest.fixture(scope="module")
def judged(oracle: Bench) -> dict[str, Verdicts]:
    with oracle.world(WORLD):
        return dict(zip(PROBES, oracle.ask(list(PROBES.values())), strict=True))


@pytest.mark.parametrize("probe", PROBES)
def test_each_node_takes_a_pod_with_volumes_exactly_if_kube_scheduler_says_so(
    judged: dict[str, Verdicts], probe: str
) -> None:
    agree([judged[probe]])


def test_where_a_driver_demands_it_pods_with_its_volumes_go_only_to_nodes_that_have_it(oracle: Bench) -> None:
    demanding, other = ({"driver": f"{letter}.csi.example.com", "volumeHandle": letter} for letter in "ba")
    storage = [
        *(csi_driver(name, capacity=None, demanding=True) for name in ("b.csi.example.com", "ebs.csi.aws.com")),
        csi_driver("a.csi.example.com", demanding=False),
        storage_class("later-b", "WaitForFirstConsumer", "b.csi.example.com"),
        csi_node("has-both", a=None, b=None),
        csi_node("is-full", b=0, e=3),
        csi_node("has-other", a=9),
        csi_node("had-it", a=9),
        *(volume(name, csi=source) for name, source in (("b", demanding), ("a", other))),
        *(claim(name, name) for name in "ab"),
        waiting("later-b", storage="later-b"),
    ]
    nodes = [node(name) for name in ("has-both", "is-full", "has-other", "had-it", "no-csi-node")]
    asked = [using("b"), using("a"), using("a", "b"), using("later-b")]
    asked.append(naming("awsElasticBlockStore", volumeID="vol-12345678"))
    with oracle.world(World(nodes, [on("had-it", using("b"))], storage)):
        judged = oracle.ask(asked)
    agree(judged)
    everywhere = {each["metadata"]["name"] for each in nodes}
    assert [verdicts.gangsched for verdicts in judged] == [
        {"has-both"},
        everywhere,
        {"has-both"},
        {"has-both"},
        {"is-full", "no-csi-node"},
    ]


def test_of_several_volumes_for_one_claim_kube_scheduler_takes_any_and_gangsched_always_the_first(
    oracle: Bench,
) -> None:
    """So no random world has several volumes that name one claim. (Found by seed 2008.)"""
    meant = [
        unclaimed(name, (f"{ZONE} In {zone}",), claimRef={"namespace": "red", "name": "c"})
        for name, zone in (("second", "b"), ("first", "a"))
    ]
    storage = [storage_class("static", "WaitForFirstConsumer", STATIC), *meant, waiting("c")]
    with oracle.world(World([node(zone, labels={ZONE: zone}) for zone in "abc"], storage=storage)):
        judged = [verdicts for _ in range(5) for verdicts in oracle.ask([using("c")] * 8)]
    assert {verdicts.gangsched for verdicts in judged} == {frozenset("a")}
    assert {verdicts.kube_scheduler for verdicts in judged} == {frozenset("a"), frozenset("b")}


@seeded(4)
def test_a_random_world_of_volumes_is_judged_alike(oracle: Bench, seed: int) -> None:
    dice = VolumeDice(seed)
    nodes = 12
    with oracle.world(dice.volumes_world(nodes=nodes, pods=24)):
        judged = oracle.ask([dice.user() for _ in range(200)])
    agree(judged)
    accepted = sum(len(verdicts.kube_scheduler) for verdicts in judged) / (nodes * len(judged))
    assert 0.05 < accepted < 0.95, "pods that fit everywhere or nowhere tell nothing"
