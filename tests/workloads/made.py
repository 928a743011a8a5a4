"""Checks that `gangsched simulate` expands a manifest into the same pods as the real controller."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangsched.whatif.world.expanding import MAKERS
from gangsched.whatif.world.made import Existing, MadePod
from gangsched.whatif.world.manifests import read

Json = dict[str, Any]

_OWN_TEXTS = ("-uid", "-revision-hash", "-template-hash")
"""The ends of labels and annotations of which only the presence is compared.

Objects in a file have no UIDs, and controllers derive their hashes from their own serialisation of a template.
"""


def expanded(file: Path, namespace: str) -> list[MadePod]:
    """The pods that simulate creates for the workloads in the file if they are in that namespace."""
    nothing = Existing([], [])
    return [
        pod
        for manifest in read([str(file)], namespace=namespace)
        if (manifest.api_version, manifest.kind) in MAKERS
        for pod in MAKERS[manifest.api_version, manifest.kind](manifest, nothing)
    ]


def unlike(real: list[Json], simulated: list[MadePod], *, varies: str = "") -> list[str]:
    """The pods of each side that have no counterpart on the other.

    A simulated pod corresponds to a real one with its owner, scheduler and requests that has all of its labels and
    annotations and, where the controller names its pods itself, its name. Texts that match the regular expression
    ``varies`` are all the same.
    """
    left, missing = [_without(varies, each) for each in simulated], []
    for pod in [{**each, "metadata": _replaced(varies, each["metadata"])} for each in real]:
        found = next((each for each in left if _corresponds(pod, each)), None)
        if found is None:
            told = {key: pod["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
            missing.append(f"the controller made {pod['metadata']['name']} with {told}")
        else:
            left.remove(found)
    return missing + [
        f"simulate made {each.name} with {each.labels}, {each.annotations}, {each.owner}" for each in left
    ]


def _without(varies: str, pod: MadePod) -> MadePod:
    fields = ("name", "labels", "annotations", "owner")
    return dataclasses.replace(pod, **_replaced(varies, {field: getattr(pod, field) for field in fields}))


def _replaced(varies: str, part: Json) -> Json:
    """The part of an object in which the texts that vary are replaced by one and the same."""
    return dict(json.loads(re.sub(varies, "same", json.dumps(part)))) if varies else part


def _corresponds(real: Json, simulated: MadePod) -> bool:
    metadata, spec = real["metadata"], real["spec"]
    [owner] = [each for each in metadata["ownerReferences"] if each.get("controller")]
    return (
        (owner["kind"], owner["name"]) == (simulated.owner["kind"], simulated.owner["name"])
        and _has(metadata.get("labels", {}), simulated.labels)
        and _has(metadata.get("annotations", {}), simulated.annotations)
        and spec["schedulerName"] == simulated.template["schedulerName"]
        and _requests(spec) == _requests(simulated.template)
        and ("generateName" in metadata or metadata["name"] == simulated.name)
    )


def _has(real: Mapping[str, str], simulated: Mapping[str, str]) -> bool:
    return all(key in real and (key.endswith(_OWN_TEXTS) or real[key] == value) for key, value in simulated.items())


def _requests(spec: Any) -> list[Json]:
    return [dict(container["resources"]["requests"]) for container in spec["containers"]]
