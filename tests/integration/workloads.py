"""The workload kinds of other controllers on the real API server, without validation of their content."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gangsched.config.dialects import CustomResource
from gangsched.config.workload_registry import WORKLOADS
from testbed.control_plane import ControlPlane
from tests.integration.foreign import defined

BUILT_IN = ("batch", "apps")


@contextlib.contextmanager
def workloads_served(control_plane: ControlPlane) -> Iterator[None]:
    """Has the API server serve all these kinds inside the context."""
    rows = [row for row in WORKLOADS.values() if row.resource.group not in BUILT_IN]
    with defined(control_plane, *(_crd(row.kind, row.resource) for row in rows)):
        yield


@contextlib.contextmanager
def served(control_plane: ControlPlane, *, group: str, version: str, kind: str, plural: str) -> Iterator[None]:
    """Has the API server serve this kind inside the context."""
    with defined(control_plane, _crd(kind, CustomResource(group=group, versions=(version,), plural=plural))):
        yield


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
