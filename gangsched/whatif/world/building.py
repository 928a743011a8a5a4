"""A cluster in memory, built from manifests with the operator's own conversion.

Age follows the order in the files: an object without a creationTimestamp is younger than all objects with one and than
all objects before it.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from gangsched.api.conversion import group_from_object
from gangsched.api.crd import GROUP, KIND, VERSION
from gangsched.api.times import format_time, parse_time
from gangsched.config.settings import Settings
from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.shape import Labels
from gangsched.core.objects.volumes import StorageKey, StorageKind, StorageObject
from gangsched.kube import convert, wire
from gangsched.kube.dialects.table import DEFAULT
from gangsched.kube.resources import decode_pod
from gangsched.kube.workloads.table import Workloads, chosen
from gangsched.whatif.world import offered, operators, stored, workloads
from gangsched.whatif.world.admission import Priorities, admitted_node, admitted_pod_spec
from gangsched.whatif.world.made import RECORDED, Existing, MadePod
from gangsched.whatif.world.manifests import Manifest, ManifestError, mapping
from gangsched.whatif.world.objects import Objects

POD, NODE, NAMESPACE = ("v1", "Pod"), ("v1", "Node"), ("v1", "Namespace")
PRIORITY_CLASS = ("scheduling.k8s.io/v1", "PriorityClass")
POD_GROUP = (f"{GROUP}/{VERSION}", KIND)
FOREIGN = {(version, KIND): dialect for dialect, kind in DEFAULT.kinds.items() for version in kind.resource.served_in}
"""The dialects of other systems' PodGroups, by apiVersion and kind."""
MAKERS = {**workloads.MAKERS, **operators.MAKERS}
"""The functions that expand workloads into pods, by apiVersion and kind."""
ALL = chosen(Settings())
"""The kinds of workloads by default: all."""
DEVICES = (*offered.KINDS, offered.TEMPLATE)
READ = (POD, NODE, NAMESPACE, PRIORITY_CLASS, POD_GROUP, *stored.KINDS, *DEVICES, *FOREIGN, *MAKERS)
"""The supported objects, by apiVersion and kind. All others are counted in `World.ignored`."""

_CLUSTER_WIDE = (
    *(NODE, NAMESPACE, PRIORITY_CLASS),
    *offered.CLUSTER_WIDE,
    *stored.CLUSTER_WIDE,
)
_EPOCH = parse_time("2000-01-01T00:00:00Z")
_STEP_S = 1e-6
_NAME_LABEL = "kubernetes.io/metadata.name"

_NODE = msgspec.json.Decoder(wire.Node)
Value = TypeVar("Value")
Identity = tuple[tuple[str, str], str, str]


@dataclass(slots=True, kw_only=True)
class World:
    """The content of the files. All of it exists at `start`, in epoch seconds.

    `successors` are pods that are created once the pod with that UID runs. `ignored` counts unsupported objects.
    """

    start: float = _EPOCH
    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    foreign: list[ForeignGroup] = field(default_factory=list)
    namespaces: dict[str, Labels] = field(default_factory=dict)
    priority_classes: dict[str, int] = field(default_factory=dict)
    storage: dict[StorageKind, dict[StorageKey, StorageObject]] = field(default_factory=dict)
    devices: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = field(default_factory=dict)
    successors: dict[str, list[Pod]] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)


def build(
    manifests: Sequence[Manifest],
    kinds: Workloads = ALL,
    *,
    start: float = _EPOCH,
    priority_classes: Mapping[str, int] = MappingProxyType({}),
) -> World:
    """The world of these manifests. Pods of workloads of these `kinds` may form gangs without a declaration.

    It does not start before `start`, in epoch seconds. These `priority_classes` exist beside those of the manifests.

    Raises:
        ManifestError: manifests are unreadable, or the API server would refuse them; the error lists all problems.
    """
    return _Builder(manifests, kinds, start, priority_classes).build()


class _Builder:
    def __init__(
        self, manifests: Sequence[Manifest], kinds: Workloads, start: float, priority_classes: Mapping[str, int]
    ) -> None:
        self._kinds = kinds
        self._objects = Objects(kinds)
        self._offered = offered.Offered()
        self._stored = stored.Stored(manifests)
        self._world = World(start=start, devices=self._offered.objects, storage=self._stored.objects)
        self._problems: list[str] = []
        self._known: list[Manifest] = []
        for manifest in manifests:
            if _kind(manifest) in READ or manifest in self._objects:
                self._known.append(manifest)
            if _kind(manifest) in READ:
                continue
            if manifest.api_version.startswith(f"{GROUP}/"):
                self._problems.append(
                    f"{manifest}: the API server would refuse it, because {manifest.api_version} has no kind "
                    f"{manifest.kind}: write {KIND} in {POD_GROUP[0]}"
                )
            else:
                self._world.ignored[_ignored_kind(manifest)] += 1
        self._known = _identified(_named(self._known))
        self._check_names()
        self._stamps = self._date()
        self._existing = Existing(
            list(self._of(POD)), [each for each in self._known if _kind(each) in workloads.MAKERS]
        )
        self._priorities = Priorities(priority_classes)
        self._adders: Mapping[tuple[str, str], Callable[[Manifest], None]] = {
            **dict.fromkeys(MAKERS, self._add_pods_of),
            PRIORITY_CLASS: self._priorities.add,
            NAMESPACE: self._add_namespace,
            NODE: self._add_node,
            POD_GROUP: self._add_group,
            **dict.fromkeys(stored.KINDS, self._add_stored),
            **dict.fromkeys(DEVICES, self._add_devices),
            **dict.fromkeys(FOREIGN, self._add_foreign),
            POD: self._add_pod,
        }

    def build(self) -> World:
        # The admission of pods needs all PriorityClasses, and a workload creates only the claims that do not exist yet.
        first = (PRIORITY_CLASS, *stored.KINDS, *DEVICES)
        for manifest in sorted(self._known, key=lambda manifest: _kind(manifest) not in first):
            try:
                if manifest in self._objects:
                    self._add_object(manifest, manifest)
                if _kind(manifest) in self._adders:
                    self._adders[_kind(manifest)](manifest)
            except ManifestError as error:
                self._problems += error.problems
        if self._problems:
            raise ManifestError(self._problems)
        self._stored.bind()
        self._world.priority_classes = self._priorities.values
        for pod in self._world.pods:
            self._world.namespaces.setdefault(pod.namespace, _namespace_labels(pod.namespace, {}))
        self._world.foreign += self._objects.all()
        for pods in (self._world.pods, *self._world.successors.values()):
            pods[:] = self._objects.known(pods, self._world.namespaces)
        return self._world

    def _of(self, which: tuple[str, str]) -> Iterator[Manifest]:
        return (manifest for manifest in self._known if _kind(manifest) == which)

    def _check_names(self) -> None:
        seen: dict[Identity, Manifest] = {}
        for manifest in self._known:
            if not manifest.name:
                self._problems.append(f"{manifest.where}: {manifest.kind} has no metadata.name: give it one")
                continue
            first = seen.setdefault(_identity(manifest, manifest.name), manifest)
            if first is not manifest:
                self._problems.append(f"{manifest}: already exists in {first.where}: remove or rename one of them")

    # Age

    def _date(self) -> dict[int, str]:
        """The creation time of each known manifest, by its `id()`. Also sets the world's start."""
        given: dict[int, float] = {}
        for place, manifest in enumerate(self._known):
            text = manifest.metadata.get("creationTimestamp")
            if text is None:
                continue
            try:
                given[place] = parse_time(str(text))
            except ValueError as error:
                self._problems.append(f"{manifest}: metadata.creationTimestamp: {error}")
        if given:
            self._world.start = max(given.values()) + 1
        self._world.start = max([self._world.start, *self._recorded_times()])
        missing = len(self._known)
        return {
            id(manifest): format_time(given.get(place, self._world.start - (missing - place) * _STEP_S))
            for place, manifest in enumerate(self._known)
        }

    def _recorded_times(self) -> Iterator[float]:
        """Times in the status of PodGroups; the world must not start before them."""
        for manifest in self._of(POD_GROUP):
            status = group_from_object(manifest.body).status
            yield from (status.schedule_start_time, status.scheduled_time)

    # One object

    def _add_namespace(self, manifest: Manifest) -> None:
        self._world.namespaces[manifest.name] = _namespace_labels(manifest.name, manifest.metadata.get("labels"))

    def _add_node(self, manifest: Manifest) -> None:
        self._world.nodes.append(convert.node(_decoded(_NODE.decode, admitted_node(manifest), manifest)))

    def _add_group(self, manifest: Manifest) -> None:
        metadata = {"generation": 1, "resourceVersion": "1", **self._metadata(manifest)}
        group = group_from_object({**manifest.body, "metadata": metadata})
        if group.error:
            raise ManifestError([f"{manifest}: the API server would refuse it: {group.error}"])
        self._world.groups.append(group)

    def _add_foreign(self, manifest: Manifest) -> None:
        dialect = FOREIGN[_kind(manifest)]
        body = {**manifest.body, "metadata": self._metadata(manifest)}
        read = functools.partial(DEFAULT.kinds[dialect].read, dialect)
        self._world.foreign.append(_decoded(read, body, manifest)[1])

    def _add_stored(self, manifest: Manifest) -> None:
        _accepted(manifest, self._stored.add, manifest)

    def _add_devices(self, manifest: Manifest) -> None:
        _accepted(manifest, self._offered.add, manifest)

    def _add_pod(self, manifest: Manifest) -> None:
        spec = admitted_pod_spec(manifest.spec, self._priorities, str(manifest))
        self._world.pods.append(
            self._read_pod({**manifest.body, "metadata": self._metadata(manifest), "spec": spec}, manifest)
        )

    def _add_pods_of(self, manifest: Manifest) -> None:
        if RECORDED in mapping(manifest.metadata.get("annotations")):
            return
        admitted: dict[int, Mapping[str, Any]] = {}
        made: dict[str, str] = {}
        for each in list(MAKERS[_kind(manifest)](manifest, self._existing)):
            if each.maker is not manifest and each.maker in self._objects:
                self._add_object(each.maker, manifest)
            template = id(each.template)
            if template not in admitted:
                admitted[template] = admitted_pod_spec(each.template, self._priorities, str(manifest))
            spec = {**admitted[template], "volumes": each.volumes}
            pod = self._read_pod({"metadata": self._made_metadata(manifest, each), "spec": spec}, manifest)
            for name, claim in each.claims.items():
                named = {**claim, "metadata": {"name": name}}
                _accepted(manifest, self._stored.add_claim, manifest.namespace, named)
            if each.after in made:
                self._world.successors.setdefault(made[each.after], []).append(pod)
            else:
                self._world.pods.append(pod)
            made[each.name] = pod.uid

    def _add_object(self, manifest: Manifest, made_with: Manifest) -> None:
        metadata = {**manifest.metadata, **self._identity_of(manifest, made_with)}
        try:
            self._objects.add(manifest, metadata)
        except (msgspec.MsgspecError, TypeError) as error:
            raise ManifestError([f"{manifest}: the API server would refuse it: {error}"]) from None

    def _read_pod(self, body: Mapping[str, Any], manifest: Manifest) -> Pod:
        _accepted(manifest, self._stored.add_claims_of, body)
        found = _decoded(decode_pod, _accepted(manifest, self._offered.with_claims, body), manifest)
        if isinstance(found, wire.UnreadablePod):
            raise ManifestError([f"{manifest}: the API server would refuse it: {found.why}"])
        return convert.pod(found, DEFAULT, self._kinds)

    def _metadata(self, manifest: Manifest) -> Mapping[str, Any]:
        return {**manifest.metadata, **self._identity_of(manifest, manifest)}

    def _identity_of(self, manifest: Manifest, made_with: Manifest) -> Mapping[str, Any]:
        """The metadata that identifies the object, with the creation time of `made_with`, the manifest in the files."""
        return {
            "namespace": manifest.namespace,
            "uid": manifest.uid,
            "creationTimestamp": self._stamps[id(made_with)],
        }

    def _made_metadata(self, workload: Manifest, pod: MadePod) -> Mapping[str, Any]:
        return {
            "name": pod.name,
            "namespace": workload.namespace,
            "uid": f"Pod/{workload.namespace}/{pod.name}",
            "creationTimestamp": self._stamps[id(workload)],
            "labels": pod.labels,
            "annotations": pod.annotations,
            "ownerReferences": [pod.owner],
        }


def _kind(manifest: Manifest) -> tuple[str, str]:
    return manifest.api_version, manifest.kind


def _ignored_kind(manifest: Manifest) -> str:
    """The kind, with its apiVersion if that kind is supported in another one."""
    known = any(kind == manifest.kind for _, kind in READ)
    return f"{manifest.kind} of {manifest.api_version}" if known else manifest.kind


def _identity(manifest: Manifest, name: str) -> Identity:
    """The identity that the object has with this name. It must be unique."""
    return _kind(manifest), "" if _kind(manifest) in _CLUSTER_WIDE else manifest.namespace, name


def _named(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The manifests. Those with only a generateName get a name from it and five digits, the same in every run.

    The digits start with zeros, so that they differ from the ordinals of a StatefulSet's pods.
    """
    taken = {_identity(manifest, manifest.name) for manifest in manifests}
    numbers: defaultdict[Identity, Iterator[int]] = defaultdict(lambda: count(1))
    named: list[Manifest] = []
    for manifest in manifests:
        prefix = manifest.metadata.get("generateName")
        if manifest.name or not prefix:
            named.append(manifest)
            continue
        names = (f"{prefix}{number:05}" for number in numbers[_identity(manifest, str(prefix))])
        name = next(name for name in names if _identity(manifest, name) not in taken)
        named.append(replace(manifest, body={**manifest.body, "metadata": {**manifest.metadata, "name": name}}))
    return named


def _identified(manifests: Sequence[Manifest]) -> list[Manifest]:
    """The manifests. A controller's object without a UID, as in a user's file, gets the one that its pods refer to."""
    known: dict[tuple[str, str, str], str] = {}
    for manifest in manifests:
        for owner in map(mapping, manifest.metadata.get("ownerReferences") or ()):
            if owner.get("controller") is True and owner.get("uid"):
                place = manifest.namespace, str(owner.get("kind")), str(owner.get("name"))
                known.setdefault(place, str(owner["uid"]))
    found: list[Manifest] = []
    for manifest in manifests:
        uid = known.get((manifest.namespace, manifest.kind, manifest.name))
        if uid is not None and not manifest.metadata.get("uid"):
            found.append(replace(manifest, body={**manifest.body, "metadata": {**manifest.metadata, "uid": uid}}))
        else:
            found.append(manifest)
    return found


def _namespace_labels(name: str, labels: object) -> Labels:
    """The labels, with the one that the API server adds to every namespace."""
    return tuple(
        sorted({**{str(key): str(value) for key, value in mapping(labels).items()}, _NAME_LABEL: name}.items())
    )


def _accepted(manifest: Manifest, read: Callable[..., Value], *what: object) -> Value:
    try:
        return read(*what)
    except msgspec.MsgspecError as error:
        raise ManifestError([f"{manifest}: the API server would refuse it: {error}"]) from None


def _decoded(decode: Callable[[bytes], Value], body: Mapping[str, Any], manifest: Manifest) -> Value:
    try:
        return decode(msgspec.json.encode(body))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise ManifestError([f"{manifest}: the API server would refuse it: {error}"]) from None
