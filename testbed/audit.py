"""Reads an API server's audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from testbed.api import Json


def audit_entries(log: Path, *naming: str) -> Iterator[Json]:
    """The entries of an audit log that contain these texts, decoded; a half-written last line is skipped."""
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n") and all(text in line for text in naming):
                yield json.loads(line)
