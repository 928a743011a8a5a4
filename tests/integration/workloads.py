"""The workload kinds of other controllers on the real API server, without validation of their content."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from gangsched.config.workloads import WORKLOADS, Row
from testbed.api import ApiError
from testbed.control_plane import ControlPlane
from tests.integration.waiting import until

BUILT_IN = ("batch", "apps")


@contextlib.contextmanager
def workloads_served(control_plane: ControlPlane, *names: str) -> Iterator[None]:
    """Has the API server serve these kinds, all by default, inside the context."""
    chosen = [WORKLOADS[name] for name in names or WORKLOADS]
    rows = [row for row in chosen if row.resource.group not in BUILT_IN]
    manifests = "".join(json.dumps(_crd(row)) for row in rows)
    try:
        control_plane.kubectl("apply", "--filename", "-", stdin=manifests)
        for row in rows:
            until(partial(_listed, control_plane, row), what=f"{row.name} served")
        yield
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "--filename", "-", stdin=manifests)
        for row in rows:
            until(partial(_unlisted, control_plane, row), what=f"{row.name} not served")


def path(name: str, namespace: str) -> str:
    """The collection of the kind's objects in the namespace."""
    kind = WORKLOADS[name].resource
    return f"/apis/{kind.group}/{kind.versions[0]}/namespaces/{namespace}/{kind.plural}"


def _crd(row: Row) -> dict[str, Any]:
    kind = row.resource
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.name, "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": row.kind, "plural": kind.plural},
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


def _unlisted(control_plane: ControlPlane, row: Row) -> bool:
    return not _listed(control_plane, row)


def _listed(control_plane: ControlPlane, row: Row) -> bool:
    try:
        control_plane.api.get(row.resource.path(row.resource.versions[0]))
    except ApiError:
        return False
    return True
