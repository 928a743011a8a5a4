"""Reads the workloads in the files as the operator does, so that a simulation sees the same gangs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gangsched.core.declarations.top_owners import with_minimum
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import NamespaceSeen
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import AUTO, GANG
from gangsched.kube.workloads.template_admission import Reader
from gangsched.kube.workloads.workload_kind import Kind
from gangsched.kube.workloads.workload_table import Workloads
from gangsched.whatif.world.manifests import Manifest


class Objects:
    """The objects of these kinds, in order. If two have the same kind and name, the first one counts.

    An object may be of several kinds, because a custom kind may be one that gangsched knows itself. `admission` is what
    the API server adds to the pods that they create later.
    """

    def __init__(self, kinds: Workloads, admission: Reader) -> None:
        self._admission = admission
        self._kinds: defaultdict[tuple[str, str], list[tuple[Kind[Any], str]]] = defaultdict(list)
        for kind in kinds.kinds.values():
            for version in kind.row.resource.versions:
                gvk = f"{kind.row.resource.group}/{version}", kind.row.kind
                self._kinds[gvk].append((kind, version))
        self._objects: dict[tuple[str, GroupKey], ForeignGroup] = {}

    def __contains__(self, manifest: Manifest) -> bool:
        return manifest.gvk in self._kinds

    def add(self, manifest: Manifest, metadata: Mapping[str, Any]) -> None:
        """Read an object of one of these kinds, with this metadata.

        Raises:
            msgspec.MsgspecError, TypeError: it is not a Kubernetes object.
        """
        raw = msgspec.json.encode({**manifest.body, "metadata": metadata})
        for kind, version in self._of(manifest):
            _, foreign = kind.read(raw, version, admission=self._admission)
            self._objects.setdefault((foreign.dialect, foreign.key), foreign)

    def all(self) -> Iterator[ForeignGroup]:
        """All objects. An owner that is not in the files, such as the TrainJob of a JobSet, is ignored."""
        for foreign in self._objects.values():
            facts = foreign.workload
            top = facts.top if facts is not None else None
            if facts is None or top is None or (top.kind, GroupKey(foreign.key.namespace, top.name)) in self._objects:
                yield foreign
            else:
                yield with_minimum(replace(foreign, workload=replace(facts, top=None)))

    def lacking(self, manifests: Iterable[Manifest], pods: Iterable[Pod]) -> Iterator[Manifest]:
        """Those of the manifests, which are of these kinds, that want more pods than they have among these."""
        counts = Counter(
            (pod.workload.kind, GroupKey(pod.namespace, pod.workload.name)) for pod in pods if pod.workload is not None
        )
        for manifest in manifests:
            keys = [(kind.row.name, GroupKey(manifest.namespace, manifest.name)) for kind, _ in self._of(manifest)]
            facts = {key: self._objects[key].workload for key in keys if key in self._objects}
            if all(workload is None or workload.size > counts[key] for key, workload in facts.items()):
                yield manifest

    def _of(self, manifest: Manifest) -> Sequence[tuple[Kind[Any], str]]:
        """The kinds of the object, with the version of the API in which it is written."""
        return self._kinds.get(manifest.gvk, ())

    def known(self, pods: Iterable[Pod], namespaces: Mapping[str, NamespaceSeen]) -> Iterator[Pod]:
        """The pods. A pod loses its workload if that is not in the files and its namespace lacks the label."""
        for pod in pods:
            workload = pod.workload
            present = workload is not None and (workload.kind, GroupKey(pod.namespace, workload.name)) in self._objects
            labelled = pod.namespace in namespaces and (GANG, AUTO) in namespaces[pod.namespace].labels
            yield pod if present or labelled or workload is None else replace(pod, workload=None)
