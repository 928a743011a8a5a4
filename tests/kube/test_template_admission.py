"""What LimitRanges and RuntimeClasses add to pods that are known by their templates alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.shape import Shape
from gangsched.kube import wire
from gangsched.kube.client.errors import AccessDenied
from gangsched.kube.client.resource import Resource
from gangsched.kube.workloads.template_admission import LIMIT_RANGES, RUNTIME_CLASSES, Admission, Reader
from gangsched.kube.workloads.workload_table import chosen
from gangsched.kube.workloads.workload_watches import read_again, watch_adding

Json = dict[str, Any]
KIND = chosen(Settings()).kinds["statefulset"]
META = {"name": "limits", "namespace": "ns"}
LIMITS = {
    "metadata": META,
    "spec": {
        "limits": [
            {"type": "Container", "defaultRequest": {"cpu": "2"}, "max": {"memory": "8"}},
            {"type": "Container", "min": {"cpu": "1", "x.io/y": "1"}},
            {"type": "Pod", "max": {"example.com/gpu": "1"}},
        ]
    },
}
DEFAULTS = {"spec": {"limits": [{"type": "Container", "defaultRequest": {"x.io/z": "1"}}]}}
BOXED = {
    "metadata": {"name": "boxed"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"boxes": "yes"}, "tolerations": [{"key": "boxes", "operator": "Exists"}]},
}


def value(resource: Resource[Any], body: Json) -> Any:
    return resource.read(msgspec.Raw(json.dumps(body).encode()))[1]


def seen(admission: Admission, resource: Resource[Any], body: Json) -> None:
    admission.take([resource.seen(value(resource, body))])


def of(reader: Reader, *containers: Json, namespace: str = "ns", **spec: object) -> ForeignGroup:
    """The gang of a StatefulSet whose pods have these containers."""
    template = {"spec": {"containers": list(containers), **spec}}
    body = {"metadata": {"name": "w", "namespace": namespace}, "spec": {"replicas": 2, "template": template}}
    return KIND.read(json.dumps(body).encode(), admission=reader)[1]


def held(admission: Admission, *containers: Json, namespace: str = "ns", **spec: object) -> Shape:
    """The shape of a place for a pod with these containers."""
    found = of(admission.reader(), *containers, namespace=namespace, **spec).spec
    assert found is not None
    [role] = found.roles
    assert role.template is not None
    return role.template


def asking(field: str = "requests", **amounts: str) -> Json:
    return {"name": "c", "resources": {field: amounts}}


@pytest.fixture
def admission() -> Admission:
    made = Admission()
    seen(made, LIMIT_RANGES, LIMITS)
    seen(made, RUNTIME_CLASSES, BOXED)
    return made


@pytest.mark.parametrize(
    ("containers", "cpu", "memory"),
    [
        ([asking()], 1000, 8),
        ([asking(cpu="3")], 3000, 8),
        ([asking("limits", cpu="3")], 3000, 8),
        ([asking(memory="4"), asking()], 2000, 12),
    ],
)
def test_containers_request_what_the_limit_range_adds(admission, containers, cpu, memory):
    """A place for a pod that requests nothing was held in a namespace that requests something for it."""
    requests = dict(held(admission, *containers).requests)
    assert requests == {"cpu": cpu, "memory": memory, "x.io/y": len(containers)}


def test_a_limit_range_is_of_its_namespace(admission):
    assert held(admission, asking(), namespace="other").requests == ()


def test_of_two_limit_ranges_the_larger_default_counts_whatever_their_order(admission):
    """The API server takes any of them."""
    item = {"type": "Container", "default": {"cpu": "7", "x.io/disk": "2"}}
    seen(admission, LIMIT_RANGES, {"metadata": {"name": "more", "namespace": "ns"}, "spec": {"limits": [item]}})
    assert dict(held(admission, asking()).requests) == {"cpu": 7000, "memory": 8, "x.io/y": 1, "x.io/disk": 2}


def test_a_runtime_class_adds_overhead_nodes_and_tolerations(admission):
    own = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    shape = held(admission, asking(cpu="1"), namespace="other", runtimeClassName="boxed", **own)
    assert dict(shape.requests)["cpu"] == 1250
    assert shape.node_selector == (("boxes", "yes"), ("disk", "ssd"))
    assert [each.key for each in shape.tolerations] == ["gpu", "boxes"]
    plain = held(admission, asking(cpu="1"), namespace="other", runtimeClassName="unknown", **own)
    assert (dict(plain.requests)["cpu"], plain.node_selector) == (1000, (("disk", "ssd"),))


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"runtimeClassName": "unknown"}, "names the RuntimeClass unknown, which does not exist"),
        ({"nodeSelector": {"boxes": "no"}}, "selects another value of boxes than its RuntimeClass"),
        ({"overhead": {"cpu": "1"}}, "has another overhead than its RuntimeClass"),
    ],
)
def test_no_place_is_held_for_a_pod_that_would_be_refused(admission, spec, why):
    """The leader was bound, and its workers could never be created."""
    admission.take([RUNTIME_CLASSES.replaced((value(RUNTIME_CLASSES, BOXED),))])
    group = of(admission.reader(), asking(), **{"runtimeClassName": "boxed", **spec})
    assert group.spec is None
    assert why in group.error


def test_a_place_is_as_large_as_any_version_makes_the_pod(admission):
    """Until 1.36 the pod's own request is its limit before LimitRanges are applied, from 1.37 on it is not."""
    own: Json = {"resources": {"limits": {"cpu": "8"}}}
    assert dict(held(admission, asking(), **own).requests)["cpu"] == 8000


GONE = wire.Meta(name="limits", namespace="ns"), wire.Meta(name="boxed")


@pytest.mark.parametrize(
    ("asked", "change", "outdated"),
    [
        ("ns", LIMIT_RANGES.gone(GONE[0]), True),
        ("ns", LIMIT_RANGES.replaced(()), True),
        ("ns", LIMIT_RANGES.replaced((value(LIMIT_RANGES, LIMITS),)), False),
        ("ns", LIMIT_RANGES.seen(value(LIMIT_RANGES, {**LIMITS, "metadata": {**META, "resourceVersion": "9"}})), False),
        ("ns", RUNTIME_CLASSES.seen(value(RUNTIME_CLASSES, {**BOXED, "metadata": {"name": "other"}})), False),
        ("ns", RUNTIME_CLASSES.gone(GONE[1]), True),
        ("ns", RUNTIME_CLASSES.replaced((value(RUNTIME_CLASSES, BOXED),)), False),
        ("other", LIMIT_RANGES.gone(GONE[0]), False),
        ("other", LIMIT_RANGES.replaced(()), False),
        ("other", RUNTIME_CLASSES.replaced(()), True),
    ],
)
def test_what_was_read_is_outdated_once_what_it_was_read_with_has_changed(admission, asked, change, outdated):
    reader, other = admission.reader(), admission.reader()
    of(reader, asking(), namespace=asked, runtimeClassName="boxed")
    admission.take([change])
    assert (reader.is_outdated, admission.outdated.is_set(), other.is_outdated) == (outdated, outdated, False)


def test_what_was_never_asked_for_outdates_nothing(admission):
    admission.take([LIMIT_RANGES.replaced(()), RUNTIME_CLASSES.replaced(())])
    assert not admission.outdated.is_set()
    assert held(admission, asking()).requests == ()


class _Watch:
    def __init__(self) -> None:
        self.causes: list[str] = []
        self.is_listed = True

    def renew(self, cause: str) -> bool:
        self.causes.append(cause)
        return self.is_listed


async def test_workloads_are_read_again_one_list_after_the_other(admission, monkeypatch):
    """Changes without an end kept every list from its end, and with it every watch from its beginning."""
    monkeypatch.setattr("gangsched.kube.workloads.workload_watches._PAUSE_S", 0.05)
    watch, other = _Watch(), _Watch()
    pairs: list[tuple[Reader, Any]] = [(admission.reader(), watch), (admission.reader(), other)]
    of(pairs[0][0], asking())
    running = asyncio.create_task(read_again(admission, pairs))
    try:
        watch.is_listed = False
        for number in range(5):
            seen(admission, LIMIT_RANGES, {"metadata": {"name": f"{number}", "namespace": "ns"}, **DEFAULTS})
            await asyncio.sleep(0)
        await asyncio.sleep(0.5)
        assert len(watch.causes) > 1, "not asked again though it could not be listed"
        watch.is_listed = True
        await asyncio.sleep(0.5)
        asked = len(watch.causes)
        seen(admission, LIMIT_RANGES, {"metadata": {"name": "5", "namespace": "ns"}, **DEFAULTS})
        await asyncio.sleep(0.5)
        assert len(watch.causes) == asked, "asked again though nothing was read meanwhile"
        assert other.causes == []
    finally:
        running.cancel()


class _Reflector:
    """One that may not read for the first times."""

    def __init__(self, *failures: Exception) -> None:
        self.resource, self.synced, self.failures = LIMIT_RANGES, asyncio.Event(), [*failures]

    async def run(self) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.synced.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize(("denied", "told"), [(0, 0), (1, 0), (2, 1), (3, 1)])
async def test_a_right_that_is_missing_stops_nothing_and_is_told_once(denied, told, monkeypatch, caplog):
    """An operator with an older ClusterRole waited for it for ever."""
    for name in ("_DENIED_S", "_DENIED_AGAIN_S"):
        monkeypatch.setattr(f"gangsched.kube.workloads.workload_watches.{name}", 0.01 + 0.01 * ("AGAIN" in name))
    reflector: Any = _Reflector(*[AccessDenied("no") for _ in range(denied)])
    running = asyncio.create_task(watch_adding(reflector))
    try:
        await asyncio.wait_for(reflector.synced.wait(), 5)
        await asyncio.sleep(0.3)
        assert len(caplog.records) == told
    finally:
        running.cancel()
