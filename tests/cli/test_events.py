"""`gangsched events` of groups that exist, have gone, or never were."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from gangsched.cli import make_parser
from gangsched.cli.cluster_access import Unanswered
from gangsched.cli.events import _show
from gangsched.cli.explain import _look_at
from gangsched.cli.watch_option import Item
from gangsched.config.dialects import GROUP_LABEL
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading.device_values import DEVICES
from gangsched.kube.reading.watched_resources import STORAGE
from tests.kube.fake_api import FakeApi, body, page, serving, status

NAMESPACE = {"metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}}
GROUP = {"metadata": {"name": "g", "namespace": "n", "uid": "u"}, "spec": {"minMember": 2}}
NATIVE = "/apis/scheduling.k8s.io/v1beta1"
OTHERS = (
    *("/api/v1/namespaces", "/apis/scheduling.k8s.io/v1/priorityclasses", "/api/v1/nodes"),
    *(resource.path for resource in STORAGE.values()),
    *(resource.path for resource in DEVICES.values()),
)
MISSING = status(404, "not found", reason="NotFound")
DENIED = status(403, "you may not", reason="Forbidden")


class StopWatching(Exception):  # noqa: N818 - a state of affairs
    """It has been watched for long enough."""


def pod(name: str, *, labels: dict[str, str] | None = None, scheduler: str = "gangsched") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1", "labels": labels or {}},
        "spec": {"schedulerName": scheduler, "containers": []},
        "status": {},
    }


def event(kind: str, name: str) -> dict[str, Any]:
    metadata = {"name": f"{name}.1", "creationTimestamp": "2026-01-02T03:04:05Z"}
    return {"metadata": metadata, "reason": "Scheduled", "regarding": {"kind": kind, "name": name}, "note": "bound"}


def cluster(
    *,
    groups: Sequence[dict[str, Any]] = (),
    native: Sequence[dict[str, Any]] = (),
    pods: Sequence[dict[str, Any]] | None = (),
    events: Sequence[dict[str, Any]] = (),
) -> FakeApi:
    """An API server with these objects in the namespace `n`, and no operator; None for what the caller may not list."""
    own = "/apis/gangsched.io/v1alpha1"
    api = FakeApi.answering("GET", f"{own}/namespaces/n/podgroups/g", body(groups[0]) if groups else MISSING)
    api.answer("GET", "/api/v1/namespaces/n", body(NAMESPACE))
    api.answer("GET", "/apis/events.k8s.io/v1/namespaces/n/events", page([*events], 1))
    # `events` lists a namespace, and `explain` all of them.
    for place in ("/namespaces/n", ""):
        api.answer("GET", f"{own}{place}/podgroups", page([*groups], 1))
        api.answer("GET", f"/api/v1{place}/pods", page([*pods], 1) if pods is not None else DENIED)
        api.answer("GET", f"{NATIVE}{place}/podgroups", page([*native], 1))
    for path in OTHERS:
        api.answer("GET", path, page([], 1))
    for kind in DEFAULT.kinds.values():
        for version in kind.resource.versions:
            path = f"/apis/{kind.resource.group}/{version}"
            served = body({"resources": [{"name": "podgroups"}]}) if native and path == NATIVE else MISSING
            api.answer("GET", path, served)
    api.answer("GET", "/apis/policy/v1", MISSING)
    for _ in range(2):
        api.answer("GET", "/apis/coordination.k8s.io/v1/leases", body({"items": []}))
    return api


async def told(api: FakeApi, *arguments: str) -> int:
    parsed = make_parser().parse_args(["events", "n/g", *arguments])
    async with serving(api) as session:
        return await _show(parsed, session)


@pytest.mark.parametrize("output", [[], ["-o", "json"], ["-o", "name"], ["--watch"]])
@pytest.mark.parametrize(
    "there",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"pods": [pod("g", scheduler="other")]}, id="a pod of another scheduler"),
        pytest.param({"pods": None}, id="pods that may not be seen"),
        pytest.param({"pods": [pod("a", labels={GROUP_LABEL: "h"})]}, id="another group"),
    ],
)
async def test_a_group_that_does_not_exist_is_told_as_explain_tells_it(there, output):
    """Regression: of a mistyped name it said that Events are kept for an hour, as if there had been some."""
    with pytest.raises(Unanswered) as of_events:
        await told(cluster(**there), *output)
    async with serving(cluster(**there)) as session:
        with pytest.raises(Unanswered) as of_explain:
            await _look_at(make_parser().parse_args(["explain", "n/g"]), session)
    assert str(of_events.value) == str(of_explain.value)


@pytest.mark.parametrize(
    "there",
    [
        pytest.param({"groups": [GROUP]}, id="a PodGroup"),
        pytest.param({"groups": [GROUP], "pods": None}, id="a PodGroup, and pods that may not be seen"),
        pytest.param({"native": [{"metadata": GROUP["metadata"], "spec": {}}]}, id="a native group without pods"),
        pytest.param({"pods": [pod("a", labels={GROUP_LABEL: "g"})]}, id="a pod that names it"),
        pytest.param({"pods": [pod("g")]}, id="a pod of this name"),
    ],
)
async def test_a_group_that_exists_may_have_no_events(there, capsys):
    assert await told(cluster(**there)) == 0
    assert "No Events of n/g" in capsys.readouterr().err


async def test_what_watching_begins_with_is_read_once(monkeypatch, capsys):
    """Regression: the Events were read once in vain, and nobody was told that those of members are left out."""
    seen: list[str] = []

    async def look_once(_: object, look: Callable[[], Awaitable[Sequence[Item]]]) -> None:
        seen.extend(text for _, _, text in await look())
        raise StopWatching

    monkeypatch.setattr("gangsched.cli.watch_option.follow", look_once)
    api = cluster(groups=[GROUP], pods=None, events=[event("PodGroup", "g")])
    with pytest.raises(StopWatching):
        await told(api, "--watch", "-o", "name")
    assert seen == ["event.events.k8s.io/g.1"]
    assert [asked.path for asked in api.asked].count("/apis/events.k8s.io/v1/namespaces/n/events") == 1
    assert "you may not list its members" in capsys.readouterr().err


@pytest.mark.parametrize("there", [{}, {"pods": None}])
async def test_the_events_of_a_group_that_is_gone_are_shown(there, capsys):
    shown = [event("PodGroup", "g"), event("PodGroup", "h"), event("Pod", "g")]
    assert await told(cluster(events=shown, **there), "-o", "name") == 0
    assert capsys.readouterr().out.split() == ["event.events.k8s.io/g.1"] * 2
