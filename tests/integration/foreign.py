"""The custom resources of other systems on the real API server: their CRDs, and a group in some systems' own words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from tests.integration.waiting import until

CRDS = Path(__file__).resolve().parent / "crds"

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Words:
    """How a group of 2 named `g` is declared: its object, its collection, and its pods' metadata."""

    path: str
    body: Json
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pod_spec: Mapping[str, object] = field(default_factory=dict)

    def at(self, namespace: str) -> str:
        """The collection's path in the namespace."""
        head, _, version = self.path.rpartition("/")
        return f"/apis/{head}/{version}/namespaces/{namespace}/podgroups"


def _words(api_version: str, spec: Json, **said: Any) -> Words:
    body = {"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    return Words(path=api_version, body=body, **said)


WORDS: dict[str, Words] = {
    "volcano": _words(
        "scheduling.volcano.sh/v1beta1",
        {"minMember": 2, "queue": "default", "minTaskMember": {"worker": 2}},
        annotations={"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "worker"},
    ),
    "kai": _words(
        "scheduling.run.ai/v2alpha2",
        {"queue": "test", "minSubGroup": 1, "subGroups": [{"name": "workers", "minMember": 2}]},
        labels={"kai.scheduler/subgroup-name": "workers"},
        annotations={"pod-group-name": "g"},
    ),
    "native": _words(
        "scheduling.k8s.io/v1beta1",
        {"schedulingPolicy": {"gang": {"minCount": 2}}},
        pod_spec={"schedulingGroup": {"podGroupName": "g"}},
    ),
}

DEMANDS = "palantir-demand"
"""Not a PodGroup's CRD: Demand objects are requests to an autoscaler."""
DIALECTS = tuple(sorted(path.stem for path in CRDS.glob("*.yaml") if path.stem != DEMANDS))
"""The dialects whose kind a CRD defines; the native one is built into the API server."""


def crd(dialect: str) -> Json:
    """The CRD's manifest."""
    found: Json = yaml.safe_load((CRDS / f"{dialect}.yaml").read_text(encoding="utf-8"))
    return found


@contextlib.contextmanager
def served(control_plane: ControlPlane, *dialects: str) -> Iterator[None]:
    """Has the API server serve these dialects' PodGroups inside the context."""
    with defined(control_plane, *map(crd, dialects)):
        yield


@contextlib.contextmanager
def defined(control_plane: ControlPlane, *crds: Json) -> Iterator[None]:
    """Has the API server serve the kinds that these define inside the context."""
    try:
        _apply(control_plane, *crds)
        yield
    finally:
        _delete(control_plane, *crds)


def install(control_plane: ControlPlane, dialect: str) -> None:
    """Apply the CRD and wait until its objects can be listed."""
    _apply(control_plane, crd(dialect))


def remove(control_plane: ControlPlane, dialect: str) -> None:
    """Delete the CRD with all its objects and wait until it is not served."""
    _delete(control_plane, crd(dialect))


def _apply(control_plane: ControlPlane, *crds: Json) -> None:
    control_plane.kubectl("apply", "--filename", "-", stdin=yaml.safe_dump_all(crds))
    for each in crds:
        until(lambda: _listed(control_plane, each), what=f"{each['metadata']['name']} served")  # noqa: B023 - at once


def _delete(control_plane: ControlPlane, *crds: Json) -> None:
    control_plane.kubectl("delete", "--ignore-not-found", "--filename", "-", stdin=yaml.safe_dump_all(crds))
    for each in crds:
        until(lambda: not _listed(control_plane, each), what=f"{each['metadata']['name']} gone")  # noqa: B023 - at once


@contextlib.contextmanager
def as_before_1_11(control_plane: ControlPlane) -> Iterator[None]:
    """Volcano's PodGroups as in the CRD of version 1.10 and before: the status is not a subresource."""
    old = crd("volcano")
    old["spec"]["versions"][0]["subresources"] = {}
    control_plane.kubectl("replace", "--filename", "-", stdin=yaml.safe_dump(old))
    until(lambda: not _has_status(control_plane), what="no subresource status")
    try:
        yield
    finally:
        install(control_plane, "volcano")
        until(lambda: _has_status(control_plane), what="a subresource status")


def _has_status(control_plane: ControlPlane) -> bool:
    listed = control_plane.api.get(f"/apis/{WORDS['volcano'].path}")["resources"]
    return "podgroups/status" in {each["name"] for each in listed}


def _listed(control_plane: ControlPlane, crd: Json) -> bool:
    spec = crd["spec"]
    with contextlib.suppress(ApiError):
        control_plane.api.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}")
        return True
    return False
