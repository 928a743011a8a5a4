"""What the chart configures, for operators that tests run as processes of their own."""

from __future__ import annotations

from pathlib import Path

import yaml

from documentation.manifests import CHART
from testbed.control_plane import ControlPlane


def configuration(control_plane: ControlPlane, folder: Path, *values: str) -> Path:
    """The operator's configuration as the chart writes it with these values, as a file in the folder."""
    flags = [part for value in ("image.repository=none", *values) for part in ("--set", value)]
    text = control_plane.helm("template", "gangsched", CHART, *flags, "--show-only=templates/configmap.yaml")
    path = folder / "config.yaml"
    path.write_text(yaml.safe_load(text)["data"]["config.yaml"], encoding="utf-8")
    return path
