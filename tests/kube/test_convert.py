from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Lifetime, Owner, Pod, PodPhase
from gangsched.core.objects.shape import HostPort, NodeTerm, PodTerm, Requirement, Shape, Toleration
from gangsched.kube import wire
from gangsched.kube.reading.node_values import node_value
from gangsched.kube.reading.pod_values import decode_pod, pod_value

GI = 1 << 30


def pod(spec: dict[str, Any] | None = None, *, status: Any = None, **metadata: Any) -> Pod:
    meta = {"name": "a-0", "namespace": "team", "uid": "u", **metadata}
    return pod_value(decode_pod(msgspec.json.encode({"metadata": meta, "spec": spec, "status": status})))


def node(spec: Any = None, status: Any = None, **metadata: Any) -> Node:
    found = {"metadata": {"name": "n1", **metadata}, "spec": spec, "status": status}
    return node_value(msgspec.json.decode(msgspec.json.encode(found), type=wire.Node))


def container(requests: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}, **more}


def test_a_whole_pod_is_read() -> None:
    found = pod(
        {
            "nodeName": "n1",
            "schedulerName": "gangsched",
            "priority": 7,
            "nodeSelector": {"zone": "a", "disk": "ssd"},
            "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 5}, {"operator": "Exists"}],
            "containers": [container({"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": 1})],
        },
        status={"phase": "Running", "nominatedNodeName": "n2"},
        labels={"gangsched.io/pod-group": "a", "app": "x"},
        annotations={"gangsched.io/min-member": "3"},
        creationTimestamp="2026-01-01T00:00:00Z",
        deletionTimestamp="2026-01-01T00:01:00Z",
        ownerReferences=[
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a", "uid": "2", "controller": True},
        ],
    )
    assert (found.uid, found.namespace, found.name, found.node) == ("u", "team", "a-0", "n1")
    assert found.shape == Shape(
        requests=(("cpu", 500), ("memory", GI), ("nvidia.com/gpu", 1)),
        node_selector=(("disk", "ssd"), ("zone", "a")),
        tolerations=(Toleration(key="gpu", operator="Exists"), Toleration(operator="Exists")),
    )
    assert found.created == 1767225600.0
    assert (found.scheduler, found.priority, found.phase) == ("gangsched", 7, PodPhase.RUNNING)
    assert (found.nominated_node, found.terminating, found.gated) == ("n2", True, False)
    assert found.declaration is not None
    assert (found.declaration.group, found.declaration.min_member) == ("a", 3)
    assert found.labels == (("app", "x"), ("gangsched.io/pod-group", "a"))
    assert found.owner == Owner(kind="StatefulSet", name="a", uid="2", api_group="apps")


@pytest.mark.parametrize(
    ("api_version", "group"), [("batch/v1", "batch"), ("v1", ""), ("kubeflow.org/v2beta1", "kubeflow.org"), ("", "")]
)
def test_the_api_group_of_an_owner_is_told(api_version: str, group: str) -> None:
    reference = {"apiVersion": api_version, "kind": "Job", "name": "j", "uid": "1", "controller": True}
    owner = pod(ownerReferences=[reference]).owner
    assert owner is not None
    assert owner.api_group == group


def test_a_pod_of_which_nothing_is_said_has_the_defaults_of_the_api() -> None:
    found = pod_value(decode_pod(b'{"metadata": {}}'))
    assert found == Pod(uid="", namespace="default", name="", shape=Shape(), created=0.0, scheduler="default-scheduler")


def test_null_counts_as_absent_everywhere() -> None:
    nulls = dict.fromkeys(wire.PodSpec.__struct_encode_fields__)
    found = pod(
        nulls,
        status=dict.fromkeys(wire.PodStatus.__struct_encode_fields__),
        labels=None,
        annotations=None,
        ownerReferences=None,
        creationTimestamp=None,
        deletionTimestamp=None,
    )
    assert found.shape == Shape()
    assert found.phase is PodPhase.PENDING
    assert not found.terminating


@pytest.mark.parametrize(
    ("told", "phase"),
    [("Pending", "Pending"), ("Succeeded", "Succeeded"), ("Failed", "Failed"), ("Novel", "Unknown"), ("", "Pending")],
)
def test_phases_are_those_of_the_api_and_a_new_one_is_unknown(told: str, phase: str) -> None:
    assert pod(status={"phase": told}).phase == phase


@pytest.mark.parametrize(
    ("spec", "requests"),
    [
        (
            {"containers": [container({"cpu": "1"}), container({"cpu": "0.5", "memory": "1Ki"})]},
            {"cpu": 1500, "memory": 1024},
        ),
        ({"containers": [container({"cpu": 2, "memory": 128974848000})]}, {"cpu": 2000, "memory": 128974848000}),
        ({"containers": [container({"cpu": 0.1})]}, {"cpu": 100}),
        ({"containers": [container({"cpu": "0"})]}, {}),
        ({"containers": [{"name": "c"}]}, {}),
        ({"containers": [container({"storage": "1Gi", "nvidia.com/gpu": "2"})]}, {"nvidia.com/gpu": 2}),
        (
            {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "3"})]},
            {"cpu": 3000},
        ),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [container({"cpu": "2"}, restartPolicy="Always"), container({"cpu": "2"})],
            },
            {"cpu": 4000},
        ),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [container({"cpu": "2"}), container({"cpu": "2"}, restartPolicy="Always")],
            },
            {"cpu": 3000},
        ),
        (
            {"containers": [container({"cpu": "4", "memory": "7"})], "resources": {"requests": {"cpu": "1"}}},
            {"cpu": 1000, "memory": 7},
        ),
        ({"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}}, {"cpu": 1250}),
    ],
)
def test_requests_are_summed_as_kube_scheduler_sums_them(spec: dict[str, Any], requests: dict[str, int]) -> None:
    assert dict(pod(spec).shape.requests) == requests


def resizing(actuated: Any, allocated: Any = None, *, where: str = "containerStatuses") -> dict[str, Any]:
    return {where: [{"name": "c", "resources": {"requests": actuated}, "allocatedResources": allocated}]}


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 2000),
        ({"containerStatuses": [{"name": "c"}]}, 2000),
        (resizing({"cpu": "2"}, {"cpu": "2"}), 2000),
        (resizing({"cpu": "4"}, {"cpu": "2"}), 4000),
        (resizing({"cpu": "1"}, {"cpu": "3"}), 3000),
        (resizing({"cpu": "1"}, {"cpu": "1"}), 2000),
        (resizing(None), 2000),
        (resizing({"cpu": "1"}) | {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}, 1000),
        (resizing({"cpu": "1"}) | {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}, 2000),
        (resizing({"cpu": "nonsense"}), 2000),
    ],
)
def test_a_pod_being_resized_holds_the_most_of_what_is_wanted_running_and_admitted(
    status: dict[str, Any], cpu: int
) -> None:
    assert dict(pod({"containers": [container({"cpu": "2"})]}, status=status).shape.requests) == {"cpu": cpu}


@pytest.mark.parametrize("policy", ["Always", None])
def test_the_status_of_init_containers_counts_too(policy: str | None) -> None:
    spec = {"initContainers": [container({"cpu": "2"}, restartPolicy=policy)]}
    status = resizing({"cpu": "5"}, where="initContainerStatuses")
    assert dict(pod(spec, status=status).shape.requests) == {"cpu": 5000}


def test_a_container_that_grows_takes_what_another_gives_up() -> None:
    """The largest of the totals counts, not the total of what is largest for each container."""
    spec = {"containers": [container({"cpu": wish}) | {"name": name} for name, wish in (("a", "1"), ("b", "3"))]}
    shown = [
        resizing({"cpu": cpu}, {"cpu": cpu})["containerStatuses"][0] | {"name": name}
        for name, cpu in (("a", "3"), ("b", "1"))
    ]
    assert dict(pod(spec, status={"containerStatuses": shown}).shape.requests) == {"cpu": 4000}


def test_a_status_of_the_whole_pod_replaces_those_of_its_containers() -> None:
    whole = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "1"}}
    status = resizing({"cpu": "9"}, {"cpu": "9"}) | whole
    assert dict(pod({"containers": [container({"cpu": "2"})]}, status=status).shape.requests) == {"cpu": 3000}


def test_a_resize_of_the_whole_pod_counts_also_resources_that_only_its_status_names() -> None:
    spec = {"resources": {"requests": {"cpu": "2"}}, "containers": []}
    status = {"resources": {"requests": {"cpu": "3", "memory": "1Gi"}}, "allocatedResources": {"cpu": "1"}}
    assert dict(pod(spec, status=status).shape.requests) == {"cpu": 3000, "memory": 1 << 30}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (
            {"containers": [container({"cpu": "abc", "memory": "1"})]},
            "spec.containers[].resources.requests (cpu: 'abc' is not an amount)",
        ),
        (
            {"containers": [container({"cpu": -1, "memory": "1"})]},
            "spec.containers[].resources.requests (cpu: -1 is not an amount)",
        ),
        (
            {"initContainers": [container({"cpu": "1 ", "memory": "1"})]},
            "spec.initContainers[].resources.requests (cpu: '1 ' is not an amount)",
        ),
        ({"resources": {"requests": {"cpu": "", "memory": "1"}}}, "spec.resources.requests (cpu: '' is not an amount)"),
        ({"overhead": {"cpu": "1\n2", "memory": "1"}}, "spec.overhead (cpu: '1\\n2' is not an amount)"),
    ],
)
def test_an_amount_that_cannot_be_read_is_refused_by_name_and_the_rest_counts(spec: dict[str, Any], named: str) -> None:
    shape = pod(spec).shape
    assert shape.unsupported == (named,)
    assert shape.requests == (("memory", 1),)


def test_equal_shapes_are_the_identical_object() -> None:
    first, second = (pod({"containers": [container({"cpu": cpu})]}) for cpu in ("1", "1000m"))
    assert first.shape is second.shape
    assert first.shape is not pod({"containers": [container({"cpu": "2"})]}).shape


@pytest.mark.parametrize(
    ("affinity", "terms"),
    [
        ({}, None),
        ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}, None),
        ({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}, ()),
        (
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]},
                            {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
                            {},
                        ]
                    }
                }
            },
            (
                NodeTerm(expressions=(Requirement(key="zone", operator="In", values=("a", "b")),)),
                NodeTerm(fields=(Requirement(key="metadata.name", operator="NotIn", values=("n1",)),)),
                NodeTerm(expressions=(Requirement(key="gpu", operator="Exists"),)),
                NodeTerm(),
            ),
        ),
    ],
)
def test_required_node_affinity_is_read_term_by_term(affinity: Any, terms: Any) -> None:
    assert pod({"affinity": affinity}).shape.node_affinity == terms


def test_host_ports_are_those_of_containers_and_sidecars_with_defaults_filled_in() -> None:
    def ports(*ports: dict[str, Any], **more: Any) -> dict[str, Any]:
        return container(None, ports=list(ports), **more)

    found = pod(
        {
            "containers": [
                ports(
                    {"containerPort": 80}, {"hostPort": 0}, {"hostPort": 443, "protocol": "UDP", "hostIP": "10.0.0.1"}
                ),
                ports({"hostPort": 80}, {"hostPort": 80}),
            ],
            "initContainers": [ports({"hostPort": 1}), ports({"hostPort": 2}, restartPolicy="Always")],
        }
    )
    assert found.shape.host_ports == (
        HostPort(port=2),
        HostPort(port=80),
        HostPort(port=443, protocol="UDP", ip="10.0.0.1"),
    )


def test_an_ordinary_init_container_equal_to_a_container_takes_no_port_away() -> None:
    same = container(None, ports=[{"hostPort": 5}])
    assert pod({"containers": [same], "initContainers": [same]}).shape.host_ports == (HostPort(port=5),)


ANYWHERE = {"topologyKey": "zone", "labelSelector": {}}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (ANYWHERE, PodTerm(topology_key="zone", selector=(), namespaces=("team",))),
        ({"topologyKey": "zone"}, PodTerm(topology_key="zone", selector=None, namespaces=("team",))),
        (
            ANYWHERE | {"namespaces": ["b", "a"]},
            PodTerm(topology_key="zone", selector=(), namespaces=("b", "a")),
        ),
        (
            ANYWHERE | {"namespaceSelector": {}},
            PodTerm(topology_key="zone", selector=(), namespaces=(), namespace_selector=()),
        ),
        (
            ANYWHERE | {"namespaces": ["b"], "namespaceSelector": {"matchLabels": {"x": "y"}}},
            PodTerm(
                topology_key="zone",
                selector=(),
                namespaces=("b",),
                namespace_selector=(Requirement(key="x", operator="In", values=("y",)),),
            ),
        ),
        (
            {
                "topologyKey": "zone",
                "labelSelector": {
                    "matchLabels": {"b": "2", "a": "1"},
                    "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}],
                },
            },
            PodTerm(
                topology_key="zone",
                selector=(
                    Requirement(key="a", operator="In", values=("1",)),
                    Requirement(key="b", operator="In", values=("2",)),
                    Requirement(key="c", operator="DoesNotExist"),
                ),
                namespaces=("team",),
            ),
        ),
    ],
)
def test_required_anti_affinity_keeps_the_namespaces_it_means(term: Any, expected: PodTerm) -> None:
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert pod({"affinity": required}).shape.anti_affinity == (expected,)


def test_preferred_anti_affinity_forbids_nothing() -> None:
    preferred = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    found = pod({"affinity": preferred})
    assert found.shape.anti_affinity == ()
    assert found.shape.unsupported == ()


@pytest.mark.parametrize(
    ("spec", "status", "lifetime"),
    [
        pytest.param(None, None, Lifetime(), id="nothing"),
        pytest.param({}, {"conditions": []}, Lifetime(), id="empty"),
        pytest.param({"preemptionPolicy": "Never"}, {}, Lifetime(preempts=False), id="preempts nobody"),
        pytest.param({"preemptionPolicy": "PreemptLowerPriority"}, {}, Lifetime(), id="preempts by default"),
        pytest.param({"terminationGracePeriodSeconds": 0}, {}, Lifetime(grace_s=0), id="ends at once"),
        pytest.param({"terminationGracePeriodSeconds": 600}, {}, Lifetime(grace_s=600), id="ends slowly"),
        pytest.param({"activeDeadlineSeconds": 60}, {}, Lifetime(deadline_s=60), id="ends by itself"),
        pytest.param({}, {"startTime": "2026-01-01T00:00:00Z"}, Lifetime(start=1767225600.0), id="started"),
        pytest.param({}, {"startTime": "yesterday"}, Lifetime(), id="started nobody knows when"),
        pytest.param({}, {"conditions": [{"type": "Ready", "status": "True"}]}, Lifetime(ready=True), id="ready"),
        pytest.param({}, {"conditions": [{"type": "Ready", "status": "False"}]}, Lifetime(), id="not ready"),
        pytest.param({}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, Lifetime(), id="perhaps ready"),
        pytest.param({}, {"conditions": [{"type": "ContainersReady", "status": "True"}]}, Lifetime(), id="almost"),
        pytest.param({"activeDeadlineSeconds": "60"}, {}, Lifetime(), id="unreadable"),
        pytest.param(
            {},
            {"containerStatuses": [{"state": {}}, {"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            Lifetime(not_started="ImagePullBackOff"),
            id="a container waits",
        ),
        pytest.param(
            {},
            {"initContainerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            Lifetime(not_started="CrashLoopBackOff"),
            id="an init container waits",
        ),
        pytest.param({}, {"containerStatuses": [{"state": {"waiting": {}}}]}, Lifetime(), id="waits without a reason"),
    ],
)
def test_how_a_pod_begins_runs_and_ends_is_read(spec: Any, status: Any, lifetime: Lifetime) -> None:
    assert pod(spec, status=status).lifetime == lifetime


def test_equal_lifetimes_are_the_identical_object() -> None:
    status = {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]}
    assert pod(status=status).lifetime is pod(status=status).lifetime
    assert pod().lifetime is pod({}).lifetime


def test_gates_hold_a_pod_back() -> None:
    assert pod({"schedulingGates": [{"name": "example.com/wait"}]}).gated
    assert not pod({"schedulingGates": []}).gated


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        (
            {"type": "PodScheduled", "status": "False", "reason": "GangIncomplete", "message": "m"},
            ("GangIncomplete", "m"),
        ),
        ({"type": "PodScheduled", "status": "False", "reason": None}, ("", "")),
        ({"type": "PodScheduled", "status": "True", "reason": "x", "message": "m"}, ("", "")),
        ({"type": "Ready", "status": "False", "reason": "x", "message": "m"}, ("", "")),
    ],
)
def test_what_a_pod_was_told_is_its_condition_of_not_being_scheduled(condition: Any, told: tuple[str, str]) -> None:
    found = pod(status={"conditions": [{"type": "Initialized", "status": "True"}, condition]})
    assert (found.condition_reason, found.condition_message) == told


DRIVER = {"apiVersion": "v1", "kind": "Pod", "name": "pi-driver", "uid": "1"}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "name": "pi", "uid": "2"}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi", "uid": "3", "controller": True}


@pytest.mark.parametrize(
    ("references", "group"),
    [
        ([DRIVER | {"controller": True}], "pi-driver"),
        ([DRIVER], "pi-driver"),
        ([DRIVER | {"controller": False}, CONFIG], "pi-driver"),
        ([DRIVER, DRIVER | {"name": "other", "uid": "9"}], None),
        ([DRIVER, DRIVER | {"name": "other", "uid": "9", "controller": True}], "other"),
        ([DRIVER, JOB], None),
        ([CONFIG], None),
    ],
)
def test_an_executor_is_of_the_driver_that_owns_it_whether_or_not_as_its_controller(
    references: list[dict[str, Any]], group: str | None
) -> None:
    found = pod(labels={"spark-role": "executor", "exec-cpu": "1"}, ownerReferences=references)
    assert (found.declaration and found.declaration.group) == group
    controller = next((each for each in references if each.get("controller")), None)
    assert (found.owner and found.owner.name) == (controller and controller["name"])


def test_without_a_controller_there_is_no_owner() -> None:
    references = [{"kind": "ReplicaSet", "name": "a", "uid": "1", "controller": False}, {"kind": "X", "name": "b"}]
    assert pod(ownerReferences=references).owner is None


def test_a_whole_node_is_read() -> None:
    found = node(
        {
            "unschedulable": True,
            "taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "k", "value": "v", "effect": "NoExecute"}],
        },
        {
            "capacity": {"cpu": "64"},
            "allocatable": {
                "pods": "110",
                "cpu": "7910m",
                "memory": "1Ki",
                "nvidia.com/gpu": "0",
                "storage": "1Gi",
                "odd": "1x",
                "example.com/fpga": "abc",
                "hugepages-2Mi": "4Mi",
            },
        },
        labels={"zone": "a", "arch": "arm64"},
    )
    assert found == Node(
        name="n1",
        allocatable=(("cpu", 7910), ("hugepages-2Mi", 4 << 20), ("memory", 1024), ("pods", 110)),
        labels=(("arch", "arm64"), ("zone", "a")),
        taints=(Taint(key="gpu", effect="NoSchedule"), Taint(key="k", effect="NoExecute", value="v")),
        unschedulable=True,
        awaited=("example.com/fpga", "nvidia.com/gpu"),
    )


@pytest.mark.parametrize(
    ("capacity", "allocatable", "awaited"),
    [
        pytest.param("8", "8", (), id="all are well"),
        pytest.param("8", "7", ("nvidia.com/gpu",), id="one is unwell"),
        pytest.param("8", "0", ("nvidia.com/gpu",), id="the plug-in has gone"),
        pytest.param("0", "0", ("nvidia.com/gpu",), id="the kubelet has been restarted"),
        pytest.param("8", None, ("nvidia.com/gpu",), id="none is offered yet"),
        pytest.param(None, "8", (), id="the capacity is not said"),
    ],
)
def test_devices_that_come_back_are_awaited(capacity, allocatable, awaited) -> None:
    def status(gpus, cpu):
        return {"cpu": cpu, "hugepages-2Mi": "0"} | ({} if gpus is None else {"nvidia.com/gpu": gpus})

    found = node({}, {"capacity": status(capacity, "8"), "allocatable": status(allocatable, "7")})
    assert found.awaited == awaited


def test_a_node_of_which_nothing_is_said_can_give_nothing() -> None:
    assert node() == Node(name="n1")
