"""Reads the workloads in the files as the operator does, so that a simulation sees the same gangs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from gangsched.core.declarations.top_owners import with_minimum
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.shape import Labels
from gangsched.core.objects.workload import AUTO, GANG
from gangsched.kube.workloads.kind import Kind
from gangsched.kube.workloads.table import Workloads
from gangsched.whatif.world.manifests import Manifest


class Objects:
    """The objects of these kinds, in order. If two have the same kind and name, the first one counts."""

    def __init__(self, kinds: Workloads) -> None:
        self._kinds: dict[tuple[str, str], tuple[Kind[Any], str]] = {
            (f"{kind.row.resource.group}/{version}", kind.row.kind): (kind, version)
            for kind in kinds.kinds.values()
            for version in kind.row.resource.versions
        }
        self._found: dict[tuple[str, GroupKey], ForeignGroup] = {}

    def __contains__(self, manifest: Manifest) -> bool:
        return (manifest.api_version, manifest.kind) in self._kinds

    def add(self, manifest: Manifest, metadata: Mapping[str, Any]) -> None:
        """Read an object of one of these kinds, with this metadata.

        Raises:
            msgspec.MsgspecError, TypeError: it is not a Kubernetes object.
        """
        kind, version = self._kinds[manifest.api_version, manifest.kind]
        _, found = kind.read(msgspec.json.encode({**manifest.body, "metadata": metadata}), version)
        self._found.setdefault((found.dialect, found.key), found)

    def all(self) -> Iterator[ForeignGroup]:
        """All objects. An owner that is not in the files, such as the TrainJob of a JobSet, is ignored."""
        for found in self._found.values():
            facts = found.workload
            top = facts.top if facts is not None else None
            if facts is None or top is None or (top.kind, GroupKey(found.key.namespace, top.name)) in self._found:
                yield found
            else:
                yield with_minimum(replace(found, workload=replace(facts, top=None)))

    def known(self, pods: Iterable[Pod], namespaces: Mapping[str, Labels]) -> Iterator[Pod]:
        """The pods. A pod loses its workload if that is not in the files and its namespace lacks the label."""
        for pod in pods:
            workload = pod.workload
            there = workload is not None and (workload.kind, GroupKey(pod.namespace, workload.name)) in self._found
            labelled = dict(namespaces.get(pod.namespace, ())).get(GANG) == AUTO
            yield pod if there or labelled or workload is None else replace(pod, workload=None)
