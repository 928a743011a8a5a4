"""PodGroups as kopf's handlers see them."""

from __future__ import annotations

from typing import Any


def podgroup(
    name: str = "g",
    *,
    phase: str | None = "Succeeded",
    ttl: Any = None,
    finished: Any = "2026-01-01T00:00:00Z",
    **metadata: Any,
) -> dict[str, Any]:
    """A PodGroup of the namespace `team`; None leaves a field out."""
    status = {"phase": phase, "finishedTime": finished}
    return {
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}", "resourceVersion": "7", **metadata},
        "spec": {"minMember": 1, **({"ttlAfterFinished": ttl} if ttl is not None else {})},
        "status": {key: value for key, value in status.items() if value is not None},
    }
