"""Installs gangsched's CRD on the control plane."""

from __future__ import annotations

import time
from pathlib import Path

from testbed.api import ApiError
from testbed.control_plane import ControlPlane

FILE = Path(__file__).resolve().parent.parent / "crds" / "gangsched.io_podgroups.yaml"
_PODGROUPS = "/apis/gangsched.io/v1alpha1/podgroups"
_SERVED_WITHIN_S = 30


def install(control_plane: ControlPlane, manifest: str | None = None) -> None:
    """Applies the manifest, by default the repository's, and waits until PodGroups are served.

    It lists PodGroups instead of reading the CRD's conditions: `kubectl wait` fails while a new CRD has no status.

    Raises:
        TimeoutError: they are not served within 30 s.
    """
    text = FILE.read_text(encoding="utf-8") if manifest is None else manifest
    control_plane.kubectl("apply", "--server-side", "--filename", "-", stdin=text)
    deadline = time.monotonic() + _SERVED_WITHIN_S
    while not _served(control_plane):
        if time.monotonic() > deadline:
            raise TimeoutError(f"PodGroups are not served {_SERVED_WITHIN_S} s after their CRD was applied")
        time.sleep(0.05)


def _served(control_plane: ControlPlane) -> bool:
    try:
        control_plane.api.get(_PODGROUPS)
    except ApiError:
        return False
    return True
