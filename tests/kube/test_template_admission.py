"""What LimitRanges and RuntimeClasses add to pods that are known by their templates alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.shape import Shape
from gangsched.kube import wire
from gangsched.kube.client.resource import Resource
from gangsched.kube.workloads.template_admission import LIMIT_RANGES, RUNTIME_CLASSES, Admission
from gangsched.kube.workloads.workload_table import chosen
from gangsched.kube.workloads.workload_watches import read_again

Json = dict[str, Any]
KIND = chosen(Settings()).kinds["statefulset"]
LIMITS = {
    "metadata": {"name": "limits", "namespace": "ns"},
    "spec": {
        "limits": [
            {"type": "Container", "defaultRequest": {"cpu": "2"}, "max": {"memory": "8"}},
            {"type": "Container", "min": {"cpu": "1", "x.io/y": "1"}},
            {"type": "Pod", "max": {"example.com/gpu": "1"}},
        ]
    },
}
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


def held(admission: Admission, *containers: Json, namespace: str = "ns", **spec: object) -> Shape:
    """The shape of a place for a pod with these containers."""
    template = {"spec": {"containers": list(containers), **spec}}
    body = {"metadata": {"name": "w", "namespace": namespace}, "spec": {"replicas": 2, "template": template}}
    found = KIND.read(json.dumps(body).encode(), admission=admission)[1].spec
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


def test_of_two_limit_ranges_either_adds_what_the_other_lacks(admission):
    item = {"type": "Container", "default": {"cpu": "7", "x.io/disk": "2"}}
    seen(admission, LIMIT_RANGES, {"metadata": {"name": "more", "namespace": "ns"}, "spec": {"limits": [item]}})
    assert dict(held(admission, asking()).requests) == {"cpu": 1000, "memory": 8, "x.io/y": 1, "x.io/disk": 2}


def test_a_runtime_class_adds_overhead_nodes_and_tolerations(admission):
    own = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
    shape = held(admission, asking(cpu="1"), namespace="other", runtimeClassName="boxed", **own)
    assert dict(shape.requests)["cpu"] == 1250
    assert shape.node_selector == (("boxes", "yes"), ("disk", "ssd"))
    assert [each.key for each in shape.tolerations] == ["gpu", "boxes"]
    plain = held(admission, asking(cpu="1"), namespace="other", runtimeClassName="unknown", **own)
    assert (dict(plain.requests)["cpu"], plain.node_selector) == (1000, (("disk", "ssd"),))


GONE = wire.Meta(name="limits", namespace="ns"), wire.Meta(name="boxed")


@pytest.mark.parametrize(
    ("asked", "change", "outdated"),
    [
        ("ns", LIMIT_RANGES.gone(GONE[0]), True),
        ("ns", LIMIT_RANGES.replaced(()), True),
        ("ns", LIMIT_RANGES.replaced((value(LIMIT_RANGES, LIMITS),)), False),
        ("ns", LIMIT_RANGES.seen(value(LIMIT_RANGES, LIMITS)), False),
        ("ns", RUNTIME_CLASSES.gone(GONE[1]), True),
        ("ns", RUNTIME_CLASSES.replaced((value(RUNTIME_CLASSES, BOXED),)), False),
        ("other", LIMIT_RANGES.gone(GONE[0]), False),
        ("other", LIMIT_RANGES.replaced(()), False),
        ("other", RUNTIME_CLASSES.replaced(()), True),
    ],
)
def test_what_was_read_is_outdated_once_what_it_was_read_with_has_changed(admission, asked, change, outdated):
    held(admission, asking(), namespace=asked, runtimeClassName="boxed")
    admission.take([change])
    assert admission.outdated.is_set() == outdated


def test_what_was_never_asked_for_outdates_nothing(admission):
    admission.take([LIMIT_RANGES.replaced(()), RUNTIME_CLASSES.replaced(())])
    assert not admission.outdated.is_set()
    assert held(admission, asking(), runtimeClassName="boxed").requests == ()


class _Watch:
    def __init__(self) -> None:
        self.causes: list[str] = []

    def renew(self, cause: str) -> None:
        self.causes.append(cause)


async def test_workloads_are_read_again_at_most_once_in_a_while(admission, monkeypatch):
    monkeypatch.setattr("gangsched.kube.workloads.workload_watches._PAUSE_S", 0.05)
    watch: Any = _Watch()
    running = asyncio.create_task(read_again(admission, [watch]))
    try:
        for _ in range(5):
            admission.outdated.set()
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert watch.causes == ["Admission"]
        await asyncio.sleep(0.5)
        assert watch.causes == ["Admission"] * 2
    finally:
        running.cancel()
