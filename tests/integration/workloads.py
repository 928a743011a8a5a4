"""The workload kinds of other controllers on the real API server, without validation of their content."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from gangsched.config.dialects import CustomResource
from gangsched.config.workload_registry import WORKLOADS
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from tests.integration.waiting import until

BUILT_IN = ("batch", "apps")


@contextlib.contextmanager
def workloads_served(control_plane: ControlPlane, *names: str) -> Iterator[None]:
    """Has the API server serve these kinds, all by default, inside the context."""
    rows = [WORKLOADS[name] for name in names or WORKLOADS]
    with _served(control_plane, [(row.kind, row.resource) for row in rows if row.resource.group not in BUILT_IN]):
        yield


@contextlib.contextmanager
def served(control_plane: ControlPlane, *, group: str, version: str, kind: str, plural: str) -> Iterator[None]:
    """Has the API server serve this kind inside the context."""
    with _served(control_plane, [(kind, CustomResource(group=group, versions=(version,), plural=plural))]):
        yield


@contextlib.contextmanager
def _served(control_plane: ControlPlane, kinds: Sequence[tuple[str, CustomResource]]) -> Iterator[None]:
    manifests = "".join(json.dumps(_crd(*each)) for each in kinds)
    try:
        control_plane.kubectl("apply", "--filename", "-", stdin=manifests)
        for _, resource in kinds:
            until(partial(_listed, control_plane, resource), what=f"{resource.name} served")
        yield
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "--filename", "-", stdin=manifests)
        for _, resource in kinds:
            until(partial(_unlisted, control_plane, resource), what=f"{resource.name} not served")


def _crd(title: str, kind: CustomResource) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name, "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": title, "plural": kind.plural},
            "versions": [
                {
                    "name": kind.versions[0],
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _unlisted(control_plane: ControlPlane, kind: CustomResource) -> bool:
    return not _listed(control_plane, kind)


def _listed(control_plane: ControlPlane, kind: CustomResource) -> bool:
    try:
        control_plane.api.get(kind.path(kind.versions[0]))
    except ApiError:
        return False
    return True
