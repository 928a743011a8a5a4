"""kube-scheduler itself judges the filters: both must agree about every pod on every node of every world.

Features that gangsched refuses by name (`Shape.unsupported`) are not tested. A new predicate needs lines in `PROBES`
and a node or pod in `WORLD` on which it decides; the random worlds combine what the table tests separately.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.effort import seeded
from tests.integration.judged import Bench, Json, Standing, Surroundings, Verdicts, World, agree
from tests.integration.oracle_worlds import (
    HOST,
    HOST_USERS,
    NAMESPACES,
    PRIORITIES,
    RESTART_ALL,
    RUNTIME_CLASSES,
    TOLERATES_ALL,
    ZONE,
    Dice,
    amounts,
    container,
    edges,
    heir,
    init,
    node,
    on,
    pod,
    resized,
    restarting_all,
    shuns,
    wants,
)
from tests.judge import Judge

GI = 1 << 30
DONE: Json = {"phase": "Succeeded"}
CORDON = "node.kubernetes.io/unschedulable"
SIDECAR = "Always"
APP_A: Json = {"labelSelector": {"matchLabels": {"app": "a"}}}
TEAM_BLUE: Json = {"matchLabels": {"team": "blue"}}
NO_TEAM: Json = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}

# A node for each kind of existing pod, named after its special feature.
THERE = {
    "empty": [],
    "ended": [pod(container(cpu="3", ports=["8080"]))],
    "sidecars": [
        pod(container(cpu="1"), initContainers=init(container(cpu="1", policy=SIDECAR), container(cpu="1500m")))
    ],
    "init-before-sidecar": [
        pod(container(cpu="1"), initContainers=init(container(cpu="3"), container(cpu="1", policy=SIDECAR)))
    ],
    "overhead": [pod(container(cpu="1", memory="1Gi"), runtimeClassName="heavy")],
    "pod-level": [pod(container(cpu="1", memory="1Gi"), resources={"requests": amounts(cpu="2")})],
    "thousandths": [pod(container(cpu="0.1m", memory="1500m"), container(cpu="1.2m"))],
    "limits-only": [pod(container(limits=amounts(cpu="1500m", memory="3Gi")))],
    "memory-overcommitted": [pod(container(memory="6Gi")), pod(container(memory="6Gi"))],
    "devices-used": [pod(container(gpu=2, native=1)), pod(container(gpu=1, huge="32Mi", cpu="1"))],
    "port-any": [pod(container(ports=["8080"]))],
    "port-ip": [pod(container(ports=["10.0.0.1@8080"]))],
    "port-v6": [pod(container(ports=["::@8080"]))],
    "port-udp": [pod(container(ports=["8080/UDP"]))],
    "port-sidecar": [pod(initContainers=init(container(ports=["8080"], policy=SIDECAR)))],
    "port-init": [pod(initContainers=init(container(ports=["8080"])))],
    "port-host-network": [pod(container(ports=["8080"]), hostNetwork=True)],
    "shuns-app-a": [pod(**shuns(**APP_A))],
    "shuns-all": [pod(**shuns(labelSelector={}))],
    "shuns-none": [pod(**shuns())],
    "shuns-blue-by-name": [pod(**shuns(**APP_A, namespaces=["blue"]))],
    "shuns-blue-by-label": [pod(**shuns(**APP_A, namespaceSelector=TEAM_BLUE))],
    "shuns-teamless-and-red": [pod(**shuns(**APP_A, namespaceSelector=NO_TEAM, namespaces=["red"]))],
    "shuns-everywhere": [pod(**shuns(**APP_A, namespaceSelector={}))],
    "shuns-its-like": [pod(labels={"app": "a"}, **shuns(labelSelector={}, matchLabelKeys=["app", "rev"]))],
    "shuns-others": [pod(labels={"app": "a"}, **shuns(labelSelector={}, mismatchLabelKeys=["app"]))],
}
# Likewise for each kind of pod that can be nominated to a node.
HEIRS = {
    "heir-cpu": pod(container(cpu="2")),
    "heir-of-more-priority": pod(container(cpu="2"), priorityClassName="high"),
    "heir-of-less-priority": pod(container(cpu="2"), priorityClassName="low"),
    "heir-of-the-unheard-of": pod(container(cpu="2", limits={"example.com/unheard-of": "1"})),
    "heir-pod-level": pod(container(cpu="1"), resources={"requests": amounts(cpu="3")}),
    "heir-sidecar": pod(
        container(cpu="1"), initContainers=init(container(cpu="1", policy=SIDECAR), container(cpu="2"))
    ),
    "heir-port": pod(container(ports=["8080"])),
    "heir-shuns-app-a": pod(**shuns(**APP_A)),
    "heir-shuns-blue-by-label": pod(**shuns(**APP_A, namespaceSelector=TEAM_BLUE)),
    "heir-of-less-priority-shuns-all": pod(**shuns(labelSelector={}), priorityClassName="low"),
}
STATUSES = {
    "resize-up": resized(actuated=amounts(cpu="3"), allocated=amounts(cpu="1")),
    "resize-admitted": resized(actuated=amounts(cpu="500m"), allocated=amounts(cpu="3500m")),
    "resize-down": resized(actuated=amounts(cpu="500m"), allocated=amounts(cpu="500m")),
    "resize-infeasible": resized(actuated=amounts(cpu="500m"), pending="Infeasible"),
    "resize-deferred": resized(actuated=amounts(cpu="500m"), pending="Deferred"),
}
# Statuses of pods that request 2 CPU at pod level and 1 in their container.
POD_LEVEL_STATUSES: dict[str, Json] = {
    "pod-level-up": {"resources": {"requests": amounts(cpu="1")}, "allocatedResources": amounts(cpu="1")},
    "pod-level-down": {"resources": {"requests": amounts(cpu="3")}, "allocatedResources": amounts(cpu="2")},
    "pod-level-allocated": {"allocatedResources": amounts(cpu="3")},
    "pod-level-memory": {"resources": {"requests": amounts(memory="2Gi")}},
    "pod-level-infeasible": {
        "resources": {"requests": amounts(cpu="500m")},
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    },
    "pod-level-deferred": {
        "resources": {"requests": amounts(cpu="500m")},
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
    },
}
WORLD = World(
    nodes=[
        *(node(name, gpu=4, native=3, huge="64Mi") for name in THERE),
        *map(node, STATUSES),
        *map(node, POD_LEVEL_STATUSES),
        *map(node, HEIRS),
        node("resize-sidecar"),
        node("resize-init"),
        node("resize-pod-level"),
        node("resize-under-pod-level"),
        node("leaving", pods="1"),
        node("leaving-ended", pods="1"),
        node("pods-unsaid", pods=None),
        node("pods-none", pods="0"),
        node("pods-full", pods="2"),
        node("pods-ended", pods="2"),
        node("odd-amounts", cpu="3999.5m", memory=f"{8 * GI - 1}500m", disk=None),
        node("cordoned", cordoned=True),
        node("cordoned-and-tainted", cordoned=True, taints=[f"{CORDON}:NoSchedule"]),
        node("cordon-taint-only", taints=[f"{CORDON}:NoSchedule"]),
        node("dedicated", taints=["dedicated=batch:NoSchedule"], labels={"pool": "batch"}),
        node("valueless", taints=["dedicated:NoSchedule"]),
        node("evicting", taints=["dedicated=batch:NoExecute", "soft:PreferNoSchedule"]),
        node("soft", taints=["dedicated=batch:PreferNoSchedule"]),
        node("two-taints", taints=["dedicated=batch:NoSchedule", "gpu=present:NoExecute"]),
        node("not-ready", taints=["node.kubernetes.io/not-ready:NoExecute"]),
        node("unlabelled", labels={HOST: None, ZONE: None}),
        node("gen-7", labels={"gen": "7"}),
        node("gen-007", labels={"gen": "007", "pool": "batch"}),
        node("gen-x", labels={"gen": "x", "pool": "other"}),
        node("gen-huge", labels={"gen": "9223372036854775808"}),
        node("gen-empty", labels={"gen": ""}),
        node("zone-b-1", labels={ZONE: "b"}),
        node("zone-b-2", labels={ZONE: "b"}),
        node("twin-1", labels={HOST: "twin"}),
        node("twin-2", labels={HOST: "twin"}),
        node("feature-restart", features=[RESTART_ALL]),
        node("feature-users", features=[HOST_USERS, "Unheard"]),
        node("features", features=[RESTART_ALL, HOST_USERS]),
    ],
    pods=[
        *(on(name, each, status=DONE if name == "ended" else {}) for name, pods in THERE.items() for each in pods),
        *(on(name, pod(container(cpu="2")), status=status) for name, status in STATUSES.items()),
        *(
            on(name, pod(container(cpu="1"), resources={"requests": amounts(cpu="2")}), status=status)
            for name, status in POD_LEVEL_STATUSES.items()
        ),
        *(heir(name, manifest) for name, manifest in HEIRS.items()),
        heir("ghost", pod(**shuns(labelSelector={}, topologyKey=ZONE))),
        on(
            "resize-sidecar",
            pod(initContainers=init(container(cpu="1", policy=SIDECAR))),
            status=resized(actuated=amounts(cpu="2"), init_container=True),
        ),
        on(
            "resize-init",
            pod(initContainers=init(container(cpu="1"))),
            status=resized(actuated=amounts(cpu="2"), init_container=True),
        ),
        on(
            "resize-pod-level",
            pod(resources={"requests": amounts(cpu="1")}),
            status={"resources": {"requests": amounts(cpu="2", memory="1Gi")}, "allocatedResources": amounts(cpu="3")},
        ),
        on(
            "resize-under-pod-level",
            pod(container(cpu="1"), resources={"requests": amounts(cpu="2")}),
            status=resized(actuated=amounts(cpu="3")),
        ),
        on("leaving", pod(container(ports=["8080"]), **shuns(**APP_A)), leaving=True),
        on("leaving-ended", pod(container(ports=["8080"]), **shuns(**APP_A)), status=DONE, leaving=True),
        *[on("pods-full")] * 2,
        on("pods-ended"),
        on("pods-ended", status=DONE),
        on("pods-ended", status={"phase": "Failed"}),
        on("zone-b-1", pod(**shuns(**APP_A, topologyKey=ZONE))),
        on("twin-1", pod(**shuns(**APP_A))),
        on("unlabelled", pod(**shuns(**APP_A, topologyKey=ZONE))),
        on("ghost", pod(**shuns(labelSelector={}, topologyKey=ZONE))),
    ],
)


def tolerating(*tolerations: Json) -> Json:
    return pod(tolerations=list(tolerations))


def tolerant(*terms: tuple[str, ...], **spec: Any) -> Json:
    """A pod that only node affinity can exclude from a node."""
    return pod(**TOLERATES_ALL, **wants(*terms), **spec)


PROBES: dict[str, Json] = {
    "nothing asked": pod(),
    # Tolerations
    "tolerates everything": pod(**TOLERATES_ALL),
    "tolerates every NoSchedule": tolerating({"operator": "Exists", "effect": "NoSchedule"}),
    "tolerates every NoExecute": tolerating({"operator": "Exists", "effect": "NoExecute"}),
    "tolerates a key": tolerating({"key": "dedicated", "operator": "Exists"}),
    "tolerates a key's NoExecute": tolerating({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}),
    "tolerates a value": tolerating({"key": "dedicated", "operator": "Equal", "value": "batch"}),
    "tolerates a value by default": tolerating({"key": "dedicated", "value": "batch", "effect": "NoSchedule"}),
    "tolerates the empty value": tolerating({"key": "dedicated", "operator": "Equal"}),
    "tolerates another value": tolerating({"key": "dedicated", "value": "other"}),
    "tolerates one of two taints": tolerating({"key": "gpu", "operator": "Exists"}),
    "tolerates two taints": tolerating({"key": "gpu", "operator": "Exists"}, {"key": "dedicated", "value": "batch"}),
    "tolerates for a while": tolerating(
        {"key": "dedicated", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
    ),
    "tolerates a cordon": tolerating({"key": CORDON, "operator": "Exists"}),
    "tolerates a cordon's value": tolerating({"key": CORDON, "operator": "Equal", "value": ""}),
    "tolerates another cordon": tolerating({"key": CORDON, "operator": "Equal", "value": "x"}),
    "tolerates a cordon's NoExecute": tolerating({"key": CORDON, "operator": "Exists", "effect": "NoExecute"}),
    "of a class with tolerations": pod(runtimeClassName="batch"),
    # Node affinity
    "selects a label": pod(nodeSelector={"pool": "batch"}),
    "selects a label and tolerates": pod(nodeSelector={"pool": "batch"}, **TOLERATES_ALL),
    "selects two labels": pod(nodeSelector={"pool": "batch", "gen": "007"}, **TOLERATES_ALL),
    "selects the empty value": pod(nodeSelector={"gen": ""}),
    "selects and wants": tolerant(("gen Exists",), nodeSelector={"pool": "batch"}),
    "wants In": tolerant(("pool In batch other",)),
    "wants NotIn": tolerant(("pool NotIn batch",)),
    "wants Exists": tolerant(("pool Exists",)),
    "wants DoesNotExist": tolerant(("pool DoesNotExist",)),
    "wants Gt": tolerant(("gen Gt 6",)),
    "wants Gt, equal": tolerant(("gen Gt 7",)),
    "wants Lt": tolerant(("gen Lt 8",)),
    "wants Lt, equal": tolerant(("gen Lt 7",)),
    "wants Lt of the largest number": tolerant(("gen Lt 9223372036854775807",)),
    "wants Gt of no number": tolerant(("gen Gt x",)),
    "wants Gt of no number, or else": tolerant(("gen Gt x",), ("gen In x",)),
    "wants an empty term": tolerant(()),
    "wants an empty term, or else": tolerant((), ("gen In 7",)),
    "wants two things at once": tolerant(("gen Exists", "pool Exists")),
    "wants one of two things": tolerant(("gen In 7",), ("pool In batch",)),
    "wants a name": tolerant(("metadata.name In gen-7",)),
    "wants one of two names": tolerant(("metadata.name In gen-7",), ("metadata.name In empty",)),
    "wants two names at once": tolerant(("metadata.name In gen-7", "metadata.name In empty")),
    "wants another name": tolerant(("metadata.name NotIn gen-7", "gen Exists")),
    "wants a name and a label": tolerant(("metadata.name In gen-7", "pool Exists"), ("metadata.name In gen-007",)),
    "wants a name, or else": tolerant(("metadata.name In gen-7",), ("pool In other",)),
    "wants a name that is no node's": tolerant(("metadata.name In ghost",)),
    "prefers a label": pod(
        affinity={
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}}
                ]
            }
        }
    ),
    # Host ports
    **{
        f"takes port {port}": pod(container(ports=[port]))
        for port in (
            "8080",
            "8080/UDP",
            "8080/SCTP",
            "10.0.0.1@8080",
            "10.0.0.2@8080",
            "0.0.0.0@8080",
            "::@8080",
            "9090",
        )
    },
    "takes a port twice": pod(container(ports=["8080", "10.0.0.1@8080"])),
    "takes a port of the host's network": pod(
        container(ports=["8080"]) | {"ports": [{"containerPort": 8080}]}, hostNetwork=True
    ),
    "takes a port in a sidecar": pod(initContainers=init(container(ports=["8080"], policy=SIDECAR))),
    "takes a port in an init container": pod(initContainers=init(container(ports=["8080"]))),
    # Resources: what fits an empty node exactly, and a little more
    "sidecar, then init, fits": pod(initContainers=init(container(cpu="1", policy=SIDECAR), container(cpu="3"))),
    "sidecar, then init, is too much": pod(
        initContainers=init(container(cpu="1", policy=SIDECAR), container(cpu="3001m"))
    ),
    "init, then sidecar, fits": pod(initContainers=init(container(cpu="4"), container(cpu="1", policy=SIDECAR))),
    "two sidecars and a container fit": pod(
        container(cpu="2"), initContainers=init(container(cpu="1", policy=SIDECAR), container(cpu="1", policy=SIDECAR))
    ),
    "two sidecars and a container are too much": pod(
        container(cpu="2001m"),
        initContainers=init(container(cpu="1", policy=SIDECAR), container(cpu="1", policy=SIDECAR)),
    ),
    "inits of different resources": pod(
        container(cpu="1", memory="1Gi"), initContainers=init(container(cpu="4"), container(memory="8Gi"))
    ),
    "pod-level requests fit": pod(container(cpu="1"), container(cpu="1"), resources={"requests": amounts(cpu="4")}),
    "pod-level requests are too much": pod(container(cpu="1"), resources={"requests": amounts(cpu="4001m")}),
    "pod-level requests of one resource": pod(container(memory="9Gi"), resources={"requests": amounts(cpu="1")}),
    "pod-level limits only": pod(container(cpu="1"), resources={"limits": amounts(cpu="5", memory="1Gi")}),
    "pod-level requests and overhead": pod(
        container(cpu="1"), resources={"requests": amounts(cpu="4")}, runtimeClassName="heavy"
    ),
    "overhead fits": pod(container(cpu="3750m"), runtimeClassName="heavy"),
    "overhead is too much": pod(container(cpu="3751m"), runtimeClassName="heavy"),
    "overhead alone": pod(runtimeClassName="heavy"),
    "cpu below a thousandth": pod(container(cpu="3.9991")),
    "cpu in exponents": pod(container(cpu="4e0")),
    "memory in thousandths fits": pod(container(memory=f"{8 * GI}000m")),
    "memory in thousandths is too much": pod(container(memory=f"{8 * GI}001m")),
    "memory in decimals": pod(container(memory="8.6G")),
    "half of the cpu": pod(container(cpu="2")),
    "more than half of the cpu": pod(container(cpu="2001m")),
    "cpu only": pod(container(cpu="1")),
    "limits only": pod(container(limits=amounts(cpu="4", memory="8Gi"))),
    "zeros": pod(container(cpu="0", memory="0", gpu=0)),
    "disk": pod(container(disk="20Gi")),
    "too much disk": pod(container(disk="21Gi")),
    "two devices": pod(container(gpu=2)),
    "three devices of a native domain": pod(container(native=3)),
    "a device that no node has": pod(container(limits={"example.com/unheard-of": "1"})),
    "huge pages": pod(container(cpu="1", huge="32Mi")),
    "more huge pages": pod(container(cpu="1", huge="34Mi")),
    "much of everything": pod(container(cpu="4", memory="8Gi", disk="20Gi", gpu=4, native=3, huge="64Mi")),
    # Anti-affinity of existing pods
    **{
        f"{app} in {namespace}": pod(namespace=namespace, labels=labels)
        for namespace in NAMESPACES
        for app, labels in {
            "app a": {"app": "a"},
            "app b": {"app": "b"},
            "no app": {},
            "app a and more": {"app": "a", "rev": "1"},
        }.items()
    },
    # Features that the kubelet must declare
    "restarts all containers": pod(restarting_all(container())),
    "restarts all containers from a sidecar": pod(initContainers=init(restarting_all(container(policy=SIDECAR)))),
    "restarts one container": pod(
        container(policy="Never")
        | {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}
    ),
    "has users of its own": pod(hostUsers=False),
    "has users of its own on the host's network": pod(hostUsers=False, hostNetwork=True),
    "needs two features": pod(restarting_all(container()), hostUsers=False, hostNetwork=True),
    "app a, tolerant": pod(labels={"app": "a"}, **TOLERATES_ALL),
}


@pytest.fixture(scope="module")
def oracle(judge: Judge) -> Bench:
    return Bench(judge, Surroundings(NAMESPACES, RUNTIME_CLASSES, PRIORITIES))


@pytest.fixture(scope="module")
def judged(oracle: Bench) -> dict[str, Verdicts]:
    """The results for the table; pods that fill a node exactly, or exceed it by one unit, are under `edge …`."""
    with oracle.world(WORLD):
        probes = PROBES | {f"edge {number}": probe for number, probe in enumerate(edges(oracle.cluster()))}
        return dict(zip(probes, oracle.ask(list(probes.values())), strict=True))


@pytest.mark.parametrize("probe", PROBES)
def test_each_node_takes_a_pod_exactly_if_kube_scheduler_says_so(judged: dict[str, Verdicts], probe: str) -> None:
    agree([judged[probe]])


def test_what_is_free_is_counted_to_the_last_unit(judged: dict[str, Verdicts]) -> None:
    on_the_edge = [verdicts for name, verdicts in judged.items() if name.startswith("edge")]
    agree(on_the_edge)
    assert {bool(verdicts.kube_scheduler) for verdicts in on_the_edge} == {True, False}


def test_no_node_of_the_table_is_there_in_vain(judged: dict[str, Verdicts]) -> None:
    names = {each["metadata"]["name"] for each in WORLD.nodes}
    accepted = [verdicts.kube_scheduler for verdicts in judged.values()]
    assert frozenset.union(*accepted) == names - {"pods-unsaid", "pods-none", "pods-full", "leaving"}
    assert not frozenset.intersection(*accepted)


@seeded(5)
def test_a_random_world_is_judged_alike(oracle: Bench, seed: int) -> None:
    dice = Dice(seed)
    nodes = 16
    with oracle.world(dice.world(nodes=nodes, pods=32)):
        wishes = oracle.ask([dice.probe() for _ in range(200)])
        agree(wishes + oracle.ask(edges(oracle.cluster())))
    accepted = sum(len(verdicts.kube_scheduler) for verdicts in wishes) / (nodes * len(wishes))
    assert 0.05 < accepted < 0.95, "pods that fit everywhere or nowhere tell nothing"


@pytest.mark.parametrize(
    ("there", "kube_scheduler"),
    [([], frozenset({"n1", "n2", "n3"})), ([on("alone", pod(**shuns(**APP_A)))], frozenset({"n2", "n3"}))],
)
def test_a_zone_that_a_nominated_pod_wants_alone_is_closed_though_kube_scheduler_closes_its_node_at_most(
    oracle: Bench, there: list[Standing], kube_scheduler: frozenset[str]
) -> None:
    """The one difference: kube-scheduler may give the zone away, and the nominated pod then cannot use its node.

    It considers nominations node by node, and skips anti-affinity entirely for a pod that no existing pod shuns.
    """
    nodes = [node("n1"), node("n2"), node("n3", labels={ZONE: "b"}), node("alone", cordoned=True)]
    with oracle.world(World(nodes, [*there, heir("n1", pod(**shuns(**APP_A, topologyKey=ZONE)))])):
        [meant, other] = oracle.ask([pod(labels={"app": "a"}), pod()])
    assert (meant.kube_scheduler, meant.gangsched) == (kube_scheduler, frozenset({"n3"}))
    assert other.kube_scheduler == other.gangsched == {"n1", "n2", "n3"}


# Volumes that a pod names itself, without a claim; the first count against a node's limits.
LIMITED_VOLUMES: dict[str, Json] = {
    "awsElasticBlockStore": {"volumeID": "v"},
    "azureDisk": {"diskName": "v", "diskURI": "/subscriptions/s/v", "kind": "Managed"},
    "cinder": {"volumeID": "v"},
    "gcePersistentDisk": {"pdName": "v"},
    "portworxVolume": {"volumeID": "v"},
}
OTHER_VOLUMES: dict[str, Json] = {
    "azureFile": {"secretName": "s", "shareName": "v"},
    "csi": {"driver": "csi.vsphere.vmware.com"},
    "emptyDir": {},
    "fc": {"targetWWNs": ["0123456789abcdef"], "lun": 0},
    "glusterfs": {"endpoints": "e", "path": "v"},
    "hostPath": {"path": "/v"},
    "nfs": {"server": "s", "path": "/v"},
    "vsphereVolume": {"volumePath": "v"},
}
CSI_DRIVERS = [
    "disk.csi.azure.com",
    "ebs.csi.aws.com",
    "cinder.csi.openstack.org",
    "csi.vsphere.vmware.com",
    "file.csi.azure.com",
    "pd.csi.storage.gke.io",
    "pxd.portworx.com",
]


def test_inline_volumes_that_count_against_a_nodes_limits_and_others_are_judged_alike(oracle: Bench) -> None:
    """azureDisk, cinder and portworxVolume were ignored, so a pod with one was placed on a node at its limit."""
    volumes = LIMITED_VOLUMES | OTHER_VOLUMES
    limits = [{"name": name, "nodeID": "n", "allocatable": {"count": 0}} for name in CSI_DRIVERS]
    full = {"kind": "CSINode", "metadata": {"name": "full"}, "spec": {"drivers": limits}}
    with oracle.world(World([node("full"), node("unlimited")], storage=[full])):
        probes = [pod(volumes=[{"name": "v", kind: source}]) for kind, source in volumes.items()]
        judged = dict(zip(volumes, oracle.ask(probes), strict=True))
    agree([*judged.values()])
    assert {kind for kind in volumes if "full" not in judged[kind].kube_scheduler} == LIMITED_VOLUMES.keys()


def test_fractions_of_a_byte_are_added_before_they_are_rounded(oracle: Bench) -> None:
    """They are legal, though the API server warns about them. Rounding each one gave a sum one byte too large."""
    halves = pod(container(memory=f"{4 * GI - 1}500m"), container(memory=f"{4 * GI}500m"))
    with oracle.world(World([node("empty"), node("there")], [on("there", halves)])):
        agree(oracle.ask([halves, *edges(oracle.cluster())]))
