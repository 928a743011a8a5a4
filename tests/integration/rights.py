"""The chart's account and roles, and nothing else of it, for an operator that is to have no more rights than that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from testbed.control_plane import ControlPlane

CHART = Path(__file__).resolve().parent.parent.parent / "charts" / "gangsched"


@contextmanager
def charts_rights(control_plane: ControlPlane, namespace: str) -> Iterator[list[dict[str, Any]]]:
    """A namespace with the ServiceAccount `gangsched` and the chart's roles given to it; yields these objects."""
    shown = [f"--show-only=templates/{name}.yaml" for name in ("rbac", "serviceaccount")]
    given = ("--namespace", namespace, "--set", "image.repository=none", *shown)
    text = control_plane.helm("template", "gangsched", CHART, *given)
    control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    control_plane.kubectl("apply", "-f", "-", stdin=text)
    try:
        yield [each for each in yaml.safe_load_all(text) if each]
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)
        control_plane.api.delete(f"/api/v1/namespaces/{namespace}")
