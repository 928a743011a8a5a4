"""A cluster in memory, built from manifests with the operator's own conversion.

Age follows the order in the files: an object without a creationTimestamp is younger than all objects with one and than
all objects before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import msgspec

from gangsched.api.conversion import group_from_object
from gangsched.api.podgroup_names import GROUP, KIND, VERSION
from gangsched.api.times import format_time, parse_time
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import COMPOSITE, NATIVE
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.kube import wire
from gangsched.kube.dialects import dialect_table
from gangsched.kube.reading.disruption_values import disruption_budget
from gangsched.kube.reading.node_values import node_value
from gangsched.kube.wire import disruption_objects as disruption_wire
from gangsched.kube.workloads.workload_table import Workloads, chosen
from gangsched.whatif.world import group_templates, offered, pod_admission, stored, trainer
from gangsched.whatif.world.contents import EPOCH, World, namespace
from gangsched.whatif.world.defaults import admitted_node
from gangsched.whatif.world.doubts import doubts, unused
from gangsched.whatif.world.expanding import MAKERS, POD, Expansion, creates
from gangsched.whatif.world.identities import Identity, identified, identity, named
from gangsched.whatif.world.made import Existing, is_recorded, manager
from gangsched.whatif.world.manifests import Manifest, ManifestError, admitted_as
from gangsched.whatif.world.objects import Objects
from gangsched.whatif.world.pod_admission import Admission
from gangsched.whatif.world.simulated_pods import Pods, accepted, decoded

NODE, NAMESPACE = ("v1", "Node"), ("v1", "Namespace")
BUDGET = ("policy/v1", "PodDisruptionBudget")
POD_GROUP = (f"{GROUP}/{VERSION}", KIND)
_KINDS = dialect_table.chosen(Settings.model_validate({"native": {"writeCondition": False}})).kinds
"""As they are by default, but nothing is written to them."""
FOREIGN = {(version, kind.title): dialect for dialect, kind in _KINDS.items() for version in kind.resource.served_in}
"""The dialects of other systems' PodGroups, by apiVersion and kind."""
ALL = chosen(Settings())
"""The kinds of workloads by default: all."""
DEVICES = (*offered.KINDS, offered.TEMPLATE)
ADMITTING = (
    pod_admission.PRIORITY_CLASS,
    pod_admission.RUNTIME_CLASS,
    pod_admission.LIMIT_RANGE,
    pod_admission.RESOURCE_QUOTA,
)
PARTS = (*trainer.RUNTIMES, *group_templates.WORKLOADS)
"""Objects from which controllers make others."""
READ = (POD, NODE, NAMESPACE, BUDGET, *ADMITTING, POD_GROUP, *stored.KINDS, *DEVICES, *FOREIGN, *PARTS, *MAKERS)
"""The supported objects, by apiVersion and kind. All others are counted in `World.ignored`."""

_CLUSTER_WIDE = (
    *(NODE, NAMESPACE, trainer.CLUSTER_RUNTIME),
    *pod_admission.CLUSTER_WIDE,
    *offered.CLUSTER_WIDE,
    *stored.CLUSTER_WIDE,
)
_STEP_S = 1e-6

_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, msgspec.MsgspecError)
"""What reading raises where a part of an object is of another type than the API allows."""

_NODE = msgspec.json.Decoder(wire.Node)
_BUDGET = msgspec.json.Decoder(disruption_wire.DisruptionBudget)


def build(
    manifests: Sequence[Manifest],
    kinds: Workloads = ALL,
    *,
    start: float = EPOCH,
    priority_classes: PriorityClasses = MappingProxyType({}),
) -> World:
    """The world of these manifests. Pods of workloads of these `kinds` may form gangs without a declaration.

    It does not start before `start`, in epoch seconds. These `priority_classes` exist beside those of the manifests.

    Raises:
        ManifestError: manifests are unreadable, or the API server would refuse them; the error lists all problems.
    """
    return _Builder(manifests, kinds, start, priority_classes).build()


class _Builder:
    def __init__(
        self, manifests: Sequence[Manifest], kinds: Workloads, start: float, priority_classes: PriorityClasses
    ) -> None:
        self._admission = Admission(priority_classes)
        self._objects = Objects(kinds, self._admission.of_templates)
        self._offered = offered.Offered()
        self._stored = stored.Stored(manifests)
        self._world = World(start=start, devices=self._offered.objects, storage=self._stored.objects)
        self._problems: list[str] = []
        self._others: list[Manifest] = []
        readable: list[Manifest] = []
        for manifest in manifests:
            (readable if manifest.gvk in READ or manifest in self._objects else self._others).append(manifest)
        for manifest in self._others:
            self._count_ignored(manifest)
        self._known = identified(named(readable, _CLUSTER_WIDE))
        self._check_names()
        self._stamps = self._date()
        others = (*MAKERS, *PARTS, *group_templates.GROUPS)
        existing = Existing(list(self._of(POD)), [manifest for manifest in self._known if manifest.gvk in others])
        self._expansion = Expansion(self._known, existing)
        self._pods = Pods(self._world, kinds, self._admission, self._stored, self._offered)
        self._adders: Mapping[tuple[str, str], Callable[[Manifest], None]] = {
            **dict.fromkeys(MAKERS, self._add_pods_of),
            **self._admission.adders,
            NAMESPACE: self._add_namespace,
            NODE: self._add_node,
            BUDGET: self._add_budget,
            POD_GROUP: self._add_group,
            **dict.fromkeys(stored.KINDS, self._add_stored),
            **dict.fromkeys(DEVICES, self._add_devices),
            **dict.fromkeys(FOREIGN, self._add_foreign),
            POD: self._add_pod,
        }

    def build(self) -> World:
        # The admission of pods needs all of its objects, and a workload creates only the claims that do not exist yet.
        # Pods share the claims that are created for their PodGroups, and name the groups that controllers make.
        first = (ADMITTING, (*stored.KINDS, *DEVICES), tuple(FOREIGN))
        for manifest in (candidate for kinds in first for candidate in self._known if candidate.gvk in kinds):
            self._attempt(self._adders[manifest.gvk], manifest)
        for manifest in (candidate for candidate in self._known if candidate.gvk in MAKERS):
            self._attempt(self._expansion.expand, manifest)
        for group, made_with in self._expansion.groups():
            self._attempt(partial(self._add_foreign, group), made_with)
        for manifest in self._of(POD):
            if manifest.metadata.get("uid"):
                self._attempt(self._admission.quotas.count, manifest)
        for manifest in (candidate for candidate in self._known if not any(candidate.gvk in kinds for kinds in first)):
            if manifest in self._objects:
                self._attempt(self._add_object, manifest)
            if manifest.gvk in self._adders:
                self._attempt(self._adders[manifest.gvk], manifest)
        if self._problems:
            raise ManifestError(self._problems)
        self._stored.bind()
        self._world.priority_classes = self._admission.priorities.classes
        for pod in self._world.pods:
            self._world.namespaces.setdefault(pod.namespace, namespace(pod.namespace))
        self._world.foreign += self._objects.all()
        for pods in (self._world.pods, *self._world.successors.values()):
            pods[:] = self._objects.known(pods, self._world.namespaces)
        creating = {manifest.namespace for manifest in self._known if creates(manifest)}
        all_pods = chain(self._world.pods, *self._world.successors.values())
        custom = [manifest for manifest in self._known if manifest.gvk not in READ and not is_recorded(manifest)]
        unmade = self._objects.lacking(custom, all_pods)
        self._world.unused += chain.from_iterable(map(unused, self._known))
        self._world.doubts += self._stored.doubts(chain(self._world.pods, *self._world.successors.values()))
        self._world.doubts += (
            f"the files do not contain ResourceClaimTemplate {namespace}/{name}, by which claims of pods are created: "
            "add its manifest"
            for namespace, name in self._offered.missing
        )
        self._world.idle += self._expansion.idle
        self._world.doubts += self._expansion.doubts
        self._world.doubts += doubts(
            self._known, [*self._others, *unmade], self._world, supported=READ, creating=creating
        )
        return self._world

    def _attempt(self, add: Callable[[Manifest], None], manifest: Manifest) -> None:
        try:
            add(manifest)
        except ManifestError as error:
            self._problems += error.problems
        except _MALFORMED as error:
            text = f"{type(error).__name__}: {error}"
            self._problems.append(
                f"{manifest}: cannot be read ({text}): correct the form of its fields, or report a defect if the API "
                "server accepts it"
            )

    def _count_ignored(self, manifest: Manifest) -> None:
        if manifest.api_version.startswith(f"{GROUP}/"):
            self._problems.append(
                f"{manifest}: the API server would refuse it, because {manifest.api_version} has no kind "
                f"{manifest.kind}: write {KIND} in {POD_GROUP[0]}"
            )
        else:
            self._world.ignored[_ignored_kind(manifest)] += 1

    def _of(self, gvk: tuple[str, str]) -> Iterator[Manifest]:
        return (manifest for manifest in self._known if manifest.gvk == gvk)

    def _check_names(self) -> None:
        seen: dict[Identity, Manifest] = {}
        for manifest in self._known:
            if not manifest.name:
                self._problems.append(f"{manifest.where}: {manifest.kind} has no metadata.name: give it one")
                continue
            first = seen.setdefault(identity(manifest, manifest.name, _CLUSTER_WIDE), manifest)
            if first is not manifest:
                self._problems.append(f"{manifest}: already exists in {first.where}: remove or rename one of them")

    # Age

    def _date(self) -> dict[int, str]:
        """The creation time of each known manifest, by its `id()`. Also sets the world's start."""
        times: dict[int, float] = {}
        for place, manifest in enumerate(self._known):
            text = manifest.metadata.get("creationTimestamp")
            if text is None:
                continue
            try:
                times[place] = parse_time(str(text))
            except ValueError as error:
                self._problems.append(f"{manifest}: metadata.creationTimestamp: {error}")
        if times:
            self._world.start = max(times.values()) + 1
        self._world.start = max([self._world.start, *self._recorded_times()])
        missing = len(self._known)
        return {
            id(manifest): format_time(times.get(place, self._world.start - (missing - place) * _STEP_S))
            for place, manifest in enumerate(self._known)
        }

    def _recorded_times(self) -> Iterator[float]:
        """Times in the status of PodGroups and pods; the world must not start before them."""
        for manifest in self._of(POD_GROUP):
            status = group_from_object(manifest.body).status
            yield from (status.schedule_start_time, status.scheduled_time)
        for manifest in self._of(POD):
            # What is no time counts as none, as the operator reads it.
            with suppress(ValueError):
                yield parse_time(str(manifest.status.get("startTime")))

    # One object

    def _add_namespace(self, manifest: Manifest) -> None:
        terminating = manifest.metadata.get("deletionTimestamp") is not None
        self._world.namespaces[manifest.name] = namespace(manifest.name, manifest.labels, terminating=terminating)

    def _add_node(self, manifest: Manifest) -> None:
        self._world.nodes.append(node_value(decoded(_NODE.decode, admitted_node(manifest), manifest)))

    def _add_budget(self, manifest: Manifest) -> None:
        body = {**manifest.body, "metadata": {**manifest.metadata, "namespace": manifest.namespace}}
        budget = disruption_budget(decoded(_BUDGET.decode, body, manifest))
        self._world.budgets[budget.key] = budget

    def _add_group(self, manifest: Manifest) -> None:
        metadata = {"generation": 1, "resourceVersion": "1", **self._metadata(manifest)}
        group = group_from_object({**manifest.body, "metadata": metadata})
        if group.error:
            raise ManifestError([f"{manifest}: the API server would refuse it: {group.error}"])
        self._world.groups.append(group)

    def _add_foreign(self, manifest: Manifest, made_with: Manifest | None = None) -> None:
        dialect = FOREIGN[manifest.gvk]
        body = {**manifest.body, "metadata": self._metadata(manifest, made_with)}
        if dialect in (NATIVE, COMPOSITE) and manifest.spec and not manifest.metadata.get("uid"):
            with admitted_as(manifest):
                body["spec"] = {**manifest.spec, **self._admission.priorities.of_group(manifest.spec)}
        version = manifest.api_version.rpartition("/")[2]
        reader = partial(_KINDS[dialect].read, dialect, version=version)
        self._world.foreign.append(decoded(reader, body, manifest)[1])
        if dialect == NATIVE:
            self._offered.share(body)

    def _add_stored(self, manifest: Manifest) -> None:
        if manifest.gvk == stored.CLAIM and not manifest.metadata.get("uid"):
            with admitted_as(manifest):
                self._admission.limits.check_claim(manifest.namespace, manifest.spec)
        accepted(manifest, self._stored.add, manifest)

    def _add_devices(self, manifest: Manifest) -> None:
        accepted(manifest, self._offered.add, manifest)

    def _add_pod(self, manifest: Manifest) -> None:
        self._pods.add(manifest, self._metadata(manifest))

    def _add_pods_of(self, manifest: Manifest) -> None:
        if creates(manifest) and (by := manager(manifest)):
            self._world.ignored[f"{manifest.kind} managed by {by}"] += 1
        for part in self._expansion.parts(manifest):
            if part in self._objects:
                self._add_object(part, manifest)
        if pods := self._expansion.pods(manifest):
            self._pods.add_made(manifest, pods, self._stamps[id(manifest)])

    def _add_object(self, manifest: Manifest, made_with: Manifest | None = None) -> None:
        try:
            self._objects.add(manifest, self._metadata(manifest, made_with))
        except (msgspec.MsgspecError, TypeError) as error:
            raise ManifestError([f"{manifest}: the API server would refuse it: {error}"]) from None

    def _metadata(self, manifest: Manifest, made_with: Manifest | None = None) -> Mapping[str, Any]:
        """The metadata with what identifies the object, and its creation time.

        That is the one of `made_with`, the manifest in the files from which a controller makes it, if it is not there.
        """
        return {
            **manifest.metadata,
            "namespace": manifest.namespace,
            "uid": manifest.uid,
            "creationTimestamp": self._stamps[id(made_with or manifest)],
        }


def _ignored_kind(manifest: Manifest) -> str:
    """The kind, with its apiVersion if that kind is supported in another one."""
    supported = any(kind == manifest.kind for _, kind in READ)
    return f"{manifest.kind} of {manifest.api_version}" if supported else manifest.kind
