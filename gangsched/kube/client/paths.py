"""The paths of single objects."""

from __future__ import annotations

import re
from urllib.parse import quote

PODS = "/api/v1/pods"
_NEEDS_NO_QUOTING = re.compile(r"[A-Za-z0-9_.~-]*")
"""Texts that need no quoting. `quote` would check each of their characters in Python, twice for every binding."""


def quoted(part: str) -> str:
    """A namespace or name quoted as one segment of a path."""
    return part if _NEEDS_NO_QUOTING.fullmatch(part) else quote(part, safe="")


def within(path: str, namespace: str) -> str:
    """The path of a kind's list, limited to the namespace unless that is empty."""
    folder, _, plural = path.rpartition("/")
    return f"{folder}/namespaces/{quoted(namespace)}/{plural}" if namespace else path


def pod_path(namespace: str, name: str) -> str:
    """The path of the pod."""
    return f"/api/v1/namespaces/{quoted(namespace)}/pods/{quoted(name)}"
