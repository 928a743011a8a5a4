"""What admission adds to pods in a simulation; tests/integration/test_admission.py compares it with the API server."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.whatif.world.manifests import ManifestError
from gangsched.whatif.world.pod_admission import Admission
from tests.whatif.test_expanded import Json, body, world

CONTAINERS: Json = {"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "3"}}
LIMITS = body("v1", "LimitRange", "l", limits=[CONTAINERS])
BOXED: Json = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "boxed"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "500m"}},
    "scheduling": {"nodeSelector": {"runtime": "boxed"}, "tolerations": [{"key": "boxed", "operator": "Exists"}]},
}
PRIORITY_CLASS: Json = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}


def pod(name: str = "p", *, cpu: str = "", meta: Json | None = None, **spec: Any) -> Json:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    containers = [{"name": "c", "image": "x", "resources": resources}]
    asked = {"schedulerName": "gangsched", "containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(meta or {})}, "spec": asked}


def whole(resources: Json) -> Json:
    return {"containers": [{"name": "c", "image": "x", "resources": resources}]}


def made(*objects: Json) -> Pod:
    [found] = world(*objects).pods
    return found


def requests(found: Pod) -> Json:
    return dict(found.shape.requests)


def refused(*objects: Json) -> str:
    with pytest.raises(ManifestError) as error:
        world(*objects)
    return str(error.value)


@pytest.mark.parametrize(
    ("classes", "spec", "priority", "preempts"),
    [
        pytest.param([], {}, 0, True, id="no class"),
        pytest.param([], {"priority": 7, "priorityClassName": "c", "preemptionPolicy": "Never"}, 7, False, id="seen"),
        pytest.param([], {"priorityClassName": "system-node-critical"}, 2_000_001_000, True, id="a system class"),
        pytest.param([{"value": 5}], {"priorityClassName": "c0"}, 5, True, id="a class"),
        pytest.param([{"value": 5, "preemptionPolicy": "Never"}], {"priorityClassName": "c0"}, 5, False, id="meek"),
        pytest.param([{"value": 5, "preemptionPolicy": "Never"}], {}, 0, True, id="one that it does not name"),
        pytest.param(
            [{"value": 5, "globalDefault": True}, {"value": -1, "globalDefault": True, "preemptionPolicy": "Never"}],
            {},
            -1,
            False,
            id="the lower of two defaults",
        ),
    ],
)
def test_a_pod_gets_its_priority_and_preemption_from_its_priority_class(classes, spec, priority, preempts):
    objects = [{**PRIORITY_CLASS, "metadata": {"name": f"c{at}"}, **each} for at, each in enumerate(classes)]
    found = made(pod(**spec), *objects)
    assert (found.priority, found.lifetime.preempts) == (priority, preempts)


def test_a_worlds_priority_classes_say_whether_they_preempt():
    meek = {**PRIORITY_CLASS, "metadata": {"name": "meek"}, "value": 5, "preemptionPolicy": "Never"}
    assert world(meek).priority_classes["meek"] == PriorityClass(5, preempts=False)


def test_a_limit_range_gives_containers_the_requests_that_they_lack():
    assert requests(made(pod(), LIMITS)) == {"cpu": 2000}
    assert requests(made(pod(cpu="1"), LIMITS)) == {"cpu": 1000}
    elsewhere = {**LIMITS, "metadata": {"name": "l", "namespace": "other"}}
    assert requests(made(pod(), elsewhere)) == {}


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"type": "Container", "max": {"cpu": "1"}}, "cpu"),
        ({"type": "Container", "min": {"cpu": "3"}}, "below the minimum"),
        ({"type": "Pod", "max": {"cpu": "1"}}, "has no limit, or is above the maximum"),
        ({"type": "Pod", "maxLimitRequestRatio": {"cpu": "1"}}, "too large for its request"),
    ],
)
def test_a_limit_range_refuses_what_breaks_it(item, said):
    assert said in refused(pod(cpu="2"), {**LIMITS, "spec": {"limits": [item]}})


def test_what_a_pod_states_itself_is_filled_in_after_what_its_containers_get():
    """Regression: the pod requested its own limit, as before 1.37, although a container had got a request."""
    limits = {"limits": {"cpu": "4"}}
    assert requests(made(pod(resources=limits), LIMITS)) == {"cpu": 2000}
    assert requests(made(pod(resources=limits))) == {"cpu": 4000}
    assert requests(made(pod(cpu="0", resources=limits))) == {}


LIMITED: Json = {"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "limits": {"cpu": "2", "hugepages-2Mi": "2Mi"}}
UNLIMITED: Json = {"requests": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("own", "containers", "limits"),
    [
        ({"requests": {"cpu": "1"}}, [LIMITED], {"cpu": "2000m", "hugepages-2Mi": 2097152}),
        ({"requests": {"cpu": "3"}}, [LIMITED], {"cpu": "3", "hugepages-2Mi": 2097152}),
        ({"requests": {"cpu": "3"}}, [LIMITED, LIMITED], {"cpu": "4000m", "hugepages-2Mi": 4194304}),
        ({"requests": {"cpu": "3"}}, [UNLIMITED, UNLIMITED], {}),
        ({"requests": {"cpu": "3"}}, [{"limits": {"cpu": "1"}}, UNLIMITED], {}),
        ({"limits": {"cpu": "3"}}, [LIMITED], {"cpu": "3", "hugepages-2Mi": 2097152}),
        ({"requests": {"memory": "1Gi"}}, [UNLIMITED], {}),
        ({"requests": {"hugepages-2Mi": "8Mi"}}, [LIMITED], {"cpu": "2000m", "hugepages-2Mi": "8Mi"}),
        ({}, [LIMITED], {}),
    ],
)
def test_a_pod_that_states_amounts_has_the_limits_that_its_containers_all_have(own, containers, limits):
    """`defaultPodLevelLimits` of 1.37: at least what the pod requests."""
    named = [{"name": f"c{at}", "image": "x", "resources": each} for at, each in enumerate(containers)]
    spec = Admission({}).spec("default", {"containers": named, "resources": own}, "p")
    assert (spec["resources"].get("limits") or {}) == limits


def test_a_claim_can_break_a_limit_range_too():
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}}
    large = {**claim, "spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert "storage" in refused(large, {**LIMITS, "spec": {"limits": [item]}})


ABOVE_DEFAULT = (
    "the request of cpu of container c is above its limit, with the defaults of LimitRange l: change one of them"
)


def set_of(kind: str = "ReplicaSet", cpu: str = "1", *, spec: Json | None = None, **fields: Any) -> Json:
    return body("apps/v1", kind, replicas=2, template={"spec": pod(cpu=cpu)["spec"] | (spec or {})}, **fields)


@pytest.mark.parametrize(
    ("spec", "limits", "said"),
    [
        ({"priorityClassName": "urgent"}, {}, "PriorityClass urgent is missing: add its manifest"),
        ({"runtimeClassName": "boxed"}, {}, "RuntimeClass boxed is missing: add its manifest"),
        (
            {},
            {"type": "Container", "max": {"cpu": "500m"}},
            ABOVE_DEFAULT,
        ),
        (
            {},
            {"type": "Container", "min": {"cpu": "3"}},
            "cpu is below the minimum of LimitRange l for a Container: change the amount",
        ),
    ],
)
def test_a_workload_whose_pods_are_refused_is_told_and_the_rest_is_decided(spec, limits, said):
    """Regression: nothing at all was decided, although the API server accepts the workload."""
    limit_range = {**LIMITS, "metadata": {"name": "l"}, "spec": {"limits": [limits] if limits else []}}
    elsewhere = pod("other", cpu="1", meta={"namespace": "other"})
    found = world(set_of(spec=spec), limit_range, elsewhere)
    assert [each.name for each in found.pods] == ["other"]
    assert found.refused == [f"f, document 1: ReplicaSet w: 2 of its 2 pods are not created, because {said}"]


def test_a_workload_whose_own_template_contradicts_itself_is_refused_whole():
    wrong = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}]}
    said = refused(set_of(spec=wrong), LIMITS)
    assert said.endswith("because the request of cpu of container c is above its limit: change one of them")


def test_a_stateful_set_whose_claims_break_a_limit_range_makes_no_pods():
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    claims = [{"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "2Gi"}}}}]
    found = world(set_of("StatefulSet", volumeClaimTemplates=claims), {**LIMITS, "spec": {"limits": [item]}})
    assert found.pods == []
    assert "2 of its 2 pods are not created, because storage" in found.refused[0]


def test_a_runtime_class_adds_overhead_selector_and_tolerations():
    found = made(pod(cpu="1", runtimeClassName="boxed"), BOXED)
    assert requests(found) == {"cpu": 1500}
    assert found.shape.node_selector == (("runtime", "boxed"),)
    assert "boxed" in {each.key for each in found.shape.tolerations}


def test_a_runtime_class_that_is_missing_or_contradicts_the_pod_refuses_it():
    assert "RuntimeClass boxed is missing" in refused(pod(runtimeClassName="boxed"))
    other = pod(runtimeClassName="boxed", nodeSelector={"runtime": "r"})
    assert "requires another value of runtime" in refused(other, BOXED)
    assert "its overhead is not that of its RuntimeClass" in refused(pod(overhead={"cpu": "1"}))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (whole({"requests": {"example.com/gpu": "1"}}), "container c requests example.com/gpu without an equal limit"),
        (whole({"requests": {"hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "4Mi"}}), "requests hugepages-2Mi"),
        (whole({}) | {"resources": {"requests": {"hugepages-2Mi": "2Mi"}}}, "the pod requests hugepages-2Mi"),
        (whole({"limits": {"gpu": 8}}), "container c asks for gpu, which no container can: write the whole name"),
        (whole({"requests": {"pods": "1"}}), "container c asks for pods, which no container can"),
        (whole({"limits": {"requests.example.com/gpu": "1"}}), "asks for requests.example.com/gpu, which no"),
        (whole({"limits": {"example.com/gpu": "500m"}}), "container c asks for a part of one example.com/gpu"),
        (whole({}) | {"initContainers": whole({"limits": {"example.com/gpu": "1.5"}})["containers"]}, "a part of one"),
        ({"tolerations": [{"key": "level", "operator": "Gt", "value": "3"}]}, "a toleration has the operator Gt"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "3"}]}, "a toleration of a has a value"),
        ({"tolerations": [{"value": "3"}]}, "a toleration has no key"),
    ],
)
def test_what_the_api_server_does_not_accept_by_default_is_refused(spec, said):
    """A gang with such pods was "completely bound", and in the cluster none of them was created."""
    assert said in refused(pod(**spec))


@pytest.mark.parametrize(
    "limits",
    [
        {"cpu": "1500m", "memory": "1.5", "ephemeral-storage": "1Gi", "hugepages-2Mi": "2Mi"},
        {"example.com/gpu": "2000m"},
    ],
)
def test_resources_of_containers_and_whole_devices_are_accepted(limits):
    assert requests(made(pod(**whole({"limits": limits})))).keys() == limits.keys()


def test_a_resource_that_cannot_be_overcommitted_may_be_limited_alone():
    assert requests(made(pod(**whole({"limits": {"example.com/gpu": "1"}}))))["example.com/gpu"] == 1


def test_pods_that_the_api_server_has_admitted_before_are_left_as_they_are():
    stored = pod(meta={"uid": "u"}, runtimeClassName="gone", overhead={"cpu": "1"})
    assert requests(made(stored, LIMITS)) == {"cpu": 1000}


def test_label_keys_of_affinity_become_part_of_its_selector():
    term = {
        "topologyKey": "t",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["team", "none"],
        "mismatchLabelKeys": ["tier"],
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    [asked] = made(pod(meta={"labels": {"team": "x", "tier": "y"}}, affinity=affinity)).shape.anti_affinity
    assert [(each.key, each.operator, each.values) for each in asked.selector or ()] == [
        ("app", "In", ("a",)),
        ("team", "In", ("x",)),
        ("tier", "NotIn", ("y",)),
    ]


class TestQuota:
    @staticmethod
    def quota(hard: Json, *, used: Json | None = None, **spec: Any) -> Json:
        return body("v1", "ResourceQuota", "q", hard=hard, **spec) | {"status": {"used": used or {}}}

    @pytest.mark.parametrize(
        ("hard", "used", "left"),
        [
            ({"requests.cpu": "2"}, {}, 2),
            ({"requests.cpu": "3"}, {"requests.cpu": "2"}, 1),
            ({"pods": "1"}, {}, 1),
            ({"memory": "1Gi"}, {}, 0),
            ({"limits.cpu": "9"}, {}, 0),
            ({"services": "0"}, {}, 3),
        ],
    )
    def test_it_admits_pods_until_it_is_used_up(self, hard, used, left):
        found = world(*(pod(f"p{number}", cpu="1") for number in range(3)), self.quota(hard, used=used))
        assert len(found.pods) == left
        assert len(found.refused) == 3 - left

    def test_pods_that_exist_count_and_those_that_have_ended_do_not(self):
        there = pod("there", cpu="1", meta={"uid": "u"})
        over = {**pod("over", cpu="1", meta={"uid": "v"}), "status": {"phase": "Succeeded"}}
        found = world(there, over, pod("a", cpu="1"), pod("b", cpu="1"), self.quota({"requests.cpu": "2"}))
        assert sorted(each.name for each in found.pods) == ["a", "over", "there"]

    @pytest.mark.parametrize(
        ("scope", "left"),
        [({"scopes": ["BestEffort"]}, 1), ({"scopes": ["NotBestEffort"]}, 0), ({"scopes": ["Terminating"]}, 1)],
    )
    def test_it_counts_only_pods_of_its_scopes(self, scope, left):
        assert len(world(pod(cpu="1"), self.quota({"pods": "0"}, **scope)).pods) == left

    def test_what_is_not_applied_is_told(self):
        [doubt] = world(pod(cpu="1"), self.quota({"count/jobs.batch": "1", "secrets": "1"})).doubts
        assert "limits count/jobs.batch, which is not applied" in doubt


UNKNOWN = "the pods that its controller creates are not known here"


def namespace(**metadata: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", **metadata}}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            body("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
            | {"webhooks": [{"rules": [{"resources": ["pods"], "operations": ["CREATE"]}]}]},
            "may change pods when they are created",
        ),
        (body("apps/v1", "DaemonSet", template={"spec": {"containers": [{"name": "c"}]}}), UNKNOWN),
        (
            {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "spec": {"image": "spark"}},
            UNKNOWN,
        ),
        (body("ray.io/v1alpha1", "RayCluster"), "is not read in version ray.io/v1alpha1"),
        (namespace(labels={"istio-injection": "enabled"}), "a webhook adds sidecars"),
        (namespace(annotations={"scheduler.alpha.kubernetes.io/node-selector": "a=b"}), "PodNodeSelector"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_what_cannot_be_applied_is_told(other, said):
    [doubt] = world(pod(), other).doubts
    assert said in doubt


def test_what_changes_no_pod_is_no_doubt():
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    assert world(pod(), service, role).doubts == []


def test_labels_of_a_namespace_that_the_files_lack_are_a_doubt_only_where_they_are_asked_for():
    def asking(**labels: str) -> Json:
        term = {"topologyKey": "t", "labelSelector": {}, "namespaceSelector": {"matchLabels": labels}}
        return pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})

    assert world(asking(**{"kubernetes.io/metadata.name": "default"})).doubts == []
    [doubt] = world(asking(team="a")).doubts
    assert "the namespace default" in doubt
    assert world(asking(team="a"), namespace()).doubts == []


@pytest.mark.parametrize("value", ["x" * 64, "-a", "a b", "a."])
def test_a_value_that_no_label_can_have_is_refused_wherever_the_pods_come_from(value):
    """Regression: the gang was bound, and in a cluster the API server accepts none of its pods."""
    marked = pod(meta={"labels": {"l": value}})
    template = {"metadata": {"labels": {"l": value}}, "spec": marked["spec"]}
    jobs = body("batch/v1", "CronJob", jobTemplate={"spec": {"template": template}})
    for each in (marked, body("apps/v1", "ReplicaSet", template=template), jobs):
        assert f"because the label l has the value {value!r}: write at most 63 letters" in refused(each)
    stored = {**marked, "metadata": {**marked["metadata"], "uid": "u"}}
    for each in (stored, pod(meta={"labels": {"l": "x" * 63, "m": "", "n": "a_b.c-D"}})):
        assert [found.name for found in world(each).pods] == ["p"]


def test_a_template_of_claims_that_the_files_lack_is_a_doubt():
    """Regression: the claim was said to be one that kube-controller-manager has yet to create."""
    claims = [{"name": "r", "resourceClaimTemplateName": "gpus"}]
    template = body("resource.k8s.io/v1", "ResourceClaimTemplate", "gpus", spec={"devices": {}})
    [doubt] = world(pod("a", resourceClaims=claims), pod("b", resourceClaims=claims)).doubts
    assert doubt == (
        "the files do not contain ResourceClaimTemplate default/gpus, by which claims of pods are created: add its "
        "manifest"
    )
    assert world(template, pod("a", resourceClaims=claims)).doubts == []
    made = {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "a-r"}]}
    assert world({**pod("a", resourceClaims=claims), "status": made}).doubts == []
    [doubt] = world(set_of(spec={"resourceClaims": claims})).doubts
    assert "ResourceClaimTemplate default/gpus" in doubt


def storage_class(mode: str, provisioner: str = "csi.example.com") -> Json:
    metadata = {"name": "s"}
    version = "storage.k8s.io/v1"
    return {
        "apiVersion": version,
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


@pytest.mark.parametrize(
    ("name", "classes", "said"),
    [
        ("s", [storage_class("Immediate")], "StorageClass s binds claims before their pods are scheduled"),
        ("s", [], "the files do not contain StorageClass s"),
        (None, [], "the files do not contain a default StorageClass"),
        ("s", [storage_class("WaitForFirstConsumer")], ""),
        ("s", [storage_class("Immediate", "kubernetes.io/no-provisioner")], ""),
        ("", [], ""),
    ],
)
@pytest.mark.parametrize("ephemeral", [True, False])
def test_a_claim_that_is_bound_to_a_place_that_is_not_known_is_a_doubt(name, classes, said, ephemeral):
    """Regression: it said that the claim waits for a PersistentVolume, which a provisioner creates at once."""
    spec = {"accessModes": ["ReadWriteOnce"], **({} if name is None else {"storageClassName": name})}
    claim = body("v1", "PersistentVolumeClaim", "c", **spec)
    source = (
        {"ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        if ephemeral
        else {"persistentVolumeClaim": {"claimName": "c"}}
    )
    using = pod(volumes=[{"name": "v", **source}])
    found = world(using, *([] if ephemeral else [claim]), *classes)
    assert len(found.doubts) == bool(said)
    assert all(f"default/{'p-v' if ephemeral else 'c'}" in doubt and said in doubt for doubt in found.doubts)
    assert world(claim, *classes).doubts == []
    named = {**claim, "spec": {**spec, "volumeName": "v"}}
    assert ephemeral or world(using, named, *classes).doubts == []
    assert world({**using, "spec": {**using["spec"], "nodeName": "n"}}, claim, *classes).doubts == []
