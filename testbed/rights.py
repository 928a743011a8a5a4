"""The operator's service account from the chart, with only its rights, on a control plane of the testbed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.control_plane import ControlPlane

CHART = Path(__file__).resolve().parent.parent / "charts" / "gangsched"


@contextmanager
def chart_account(control_plane: ControlPlane, namespace: str, *values: str) -> Iterator[str]:
    """Create the namespace, and in it the RBAC objects of the chart's templates; yields them as YAML.

    `values` are further arguments of helm. The account is `gangsched` in that namespace: see
    `ControlPlane.kubeconfig_of_service_account`. Everything is deleted at the end of the block.
    """
    shown = [f"--show-only=templates/{name}.yaml" for name in ("rbac", "serviceaccount")]
    command = ["template", "gangsched", str(CHART), "--namespace", namespace, "--set", "image.repository=none"]
    text = control_plane.helm(*command, *shown, *values)
    control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    control_plane.kubectl("apply", "-f", "-", stdin=text)
    try:
        yield text
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=text)
        control_plane.api.delete(f"/api/v1/namespaces/{namespace}")
