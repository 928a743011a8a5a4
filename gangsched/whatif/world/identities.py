"""Names and UIDs of the objects in the files, as a cluster would give them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count

from gangsched.whatif.world.manifests import Manifest, group_of, mappings

Gvk = tuple[str, str]
Identity = tuple[Gvk, str, str]
"""API group and kind, namespace and name."""


def identity(manifest: Manifest, name: str, cluster_wide: Collection[Gvk]) -> Identity:
    """The identity that the object has with this name, in every version of its API. It must be unique."""
    group_kind = manifest.group, manifest.kind
    return group_kind, "" if manifest.gvk in cluster_wide else manifest.namespace, name


def named(manifests: Sequence[Manifest], cluster_wide: Collection[Gvk]) -> list[Manifest]:
    """The manifests, of which the `cluster_wide` kinds belong to no namespace.

    Those with only a generateName get a name from it and five digits, the same in every run. The digits start with
    zeros, so that they differ from the ordinals of a StatefulSet's pods.
    """
    taken = {identity(manifest, manifest.name, cluster_wide) for manifest in manifests}
    numbers: defaultdict[Identity, Iterator[int]] = defaultdict(lambda: count(1))
    result: list[Manifest] = []
    for manifest in manifests:
        prefix = manifest.metadata.get("generateName")
        if manifest.name or not prefix:
            result.append(manifest)
            continue
        names = (f"{prefix}{number:05}" for number in numbers[identity(manifest, str(prefix), cluster_wide)])
        name = next(name for name in names if identity(manifest, name, cluster_wide) not in taken)
        result.append(replace(manifest, body={**manifest.body, "metadata": {**manifest.metadata, "name": name}}))
    return result


def identified(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The manifests. A controller's object without a UID, as in a user's file, gets the one that its pods refer to."""
    uids: dict[tuple[str, str, str, str], str] = {}
    for manifest in manifests:
        for owner in mappings(manifest.metadata.get("ownerReferences")):
            if owner.get("controller") is True and owner.get("uid"):
                group, kind, name = group_of(owner.get("apiVersion")), str(owner.get("kind")), str(owner.get("name"))
                place = manifest.namespace, group, kind, name
                uids.setdefault(place, str(owner["uid"]))
    result: list[Manifest] = []
    for manifest in manifests:
        uid = uids.get((manifest.namespace, manifest.group, manifest.kind, manifest.name))
        if uid is not None and not manifest.metadata.get("uid"):
            result.append(replace(manifest, body={**manifest.body, "metadata": {**manifest.metadata, "uid": uid}}))
        else:
            result.append(manifest)
    return result
