"""A native PodGroup that does not exist is told with the template and the controller that would make it."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.cli.workload_templates import origins
from gangsched.kube.dialects.native import template_of
from tests.kube.fake_api import FakeApi, body, serving, status

PATH = "/apis/scheduling.k8s.io/{}/namespaces/n/workloads"


def workload(name: str, *templates: str, controller: dict[str, str] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"podGroupTemplates": [{"name": each} for each in templates]}
    return {"metadata": {"name": name}, "spec": spec | ({"controllerRef": controller} if controller else {})}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("w", "w"),
        ("top-w", "w"),
        ("top-w-x7f", "w"),
        ("top-w-late-x7f", "w-late"),
        ("top-x", ""),
        ("topw", ""),
        ("other-w", ""),
    ],
)
def test_a_group_is_named_after_the_template_alone_or_after_workload_and_template(group, expected):
    assert template_of(group, "top", ["w", "w-late"]) == expected


async def test_the_workloads_say_who_makes_the_group():
    api = FakeApi()
    job = {"apiGroup": "batch", "kind": "Job", "name": "train"}
    api.answer("GET", PATH.format("v1beta1"), body({"items": [workload("a", "x"), workload("b", "w", controller=job)]}))
    async with serving(api) as session:
        [said] = await origins(session, "n", "b-w-7fk")
    assert said == "the PodGroup b-w-7fk, which the controller of Job train makes from the template w of the Workload b"


@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("b-w-7fk", "the PodGroup b-w-7fk, which its controller makes from the template w of the Workload b"),
        ("b-deep", "the PodGroup b-deep, which its controller makes from the template deep of the Workload b"),
        ("b-c", "the CompositePodGroup b-c, which its controller makes from the template c of the Workload b"),
        ("b-d-1", "the CompositePodGroup b-d-1, which its controller makes from the template d of the Workload b"),
    ],
)
async def test_templates_below_composite_ones_say_so_too(group, said):
    inner = {"name": "d", "podGroupTemplates": [{"name": "deep"}]}
    outer = {"name": "c", "podGroupTemplates": [{"name": "w"}], "compositePodGroupTemplates": [inner]}
    api = FakeApi()
    found = {"metadata": {"name": "b"}, "spec": {"compositePodGroupTemplates": [outer]}}
    api.answer("GET", PATH.format("v1beta1"), body({"items": [found]}))
    async with serving(api) as session:
        assert await origins(session, "n", group) == [said]


async def test_the_next_version_is_asked_where_one_is_not_served_and_nothing_is_said_without_any():
    api = FakeApi()
    for version in ("v1beta1", "v1alpha3"):
        api.answer("GET", PATH.format(version), status(404, reason="NotFound"), status(404, reason="NotFound"))
    forbidden = status(403, reason="Forbidden")
    api.answer("GET", PATH.format("v1alpha2"), body({"items": [workload("b", "w")]}), forbidden)
    async with serving(api) as session:
        [said] = await origins(session, "n", "w")
        assert await origins(session, "n", "w") == []
    assert said == "the PodGroup w, which its controller makes from the template w of the Workload b"
