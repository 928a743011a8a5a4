"""Checks that `gangsched simulate` expands a manifest into the same pods as the real controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gangsched.whatif.world.expanding import MAKERS
from gangsched.whatif.world.made import Existing, MadePod
from gangsched.whatif.world.manifests import read

Json = dict[str, Any]


def expanded(file: Path, namespace: str) -> list[MadePod]:
    """The pods that simulate creates for the workloads in the file if they are in that namespace."""
    nothing = Existing([], [])
    return [
        pod
        for manifest in read([str(file)], namespace=namespace)
        if (manifest.api_version, manifest.kind) in MAKERS
        for pod in MAKERS[manifest.api_version, manifest.kind](manifest, nothing)
    ]


def unlike(real: list[Json], simulated: list[MadePod]) -> list[str]:
    """The pods of each side that have no counterpart on the other.

    A simulated pod corresponds to a real one with its owner, scheduler and requests that has all of its labels and
    annotations and, where the controller names its pods itself, its name.
    """
    left, missing = list(simulated), []
    for pod in real:
        found = next((each for each in left if _corresponds(pod, each)), None)
        if found is None:
            told = {key: pod["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
            missing.append(f"the controller made {pod['metadata']['name']} with {told}")
        else:
            left.remove(found)
    return missing + [
        f"simulate made {each.name} with {each.labels}, {each.annotations}, {each.owner}" for each in left
    ]


def _corresponds(real: Json, simulated: MadePod) -> bool:
    metadata, spec = real["metadata"], real["spec"]
    [owner] = [each for each in metadata["ownerReferences"] if each.get("controller")]
    # The API server's objects have UIDs, those in a file have none.
    labels = {key: value for key, value in simulated.labels.items() if not key.endswith("-uid")}
    annotations = {key: value for key, value in simulated.annotations.items() if not key.endswith("-uid")}
    return (
        (owner["kind"], owner["name"]) == (simulated.owner["kind"], simulated.owner["name"])
        and labels.items() <= metadata.get("labels", {}).items()
        and annotations.items() <= metadata.get("annotations", {}).items()
        and spec["schedulerName"] == simulated.template["schedulerName"]
        and _requests(spec) == _requests(simulated.template)
        and ("generateName" in metadata or metadata["name"] == simulated.name)
    )


def _requests(spec: Any) -> list[Json]:
    return [dict(container["resources"]["requests"]) for container in spec["containers"]]
