"""Who belongs to which workload: the pods of each, and its gangs that have no live member.

The declarations of pods that name no group are derived here. They change with the label of the pods' namespace, with
their workload's annotation and with the object of a native group that they name, which shows whether their controller
added it. The index finds the pods that such a change concerns, and the gangs, to which no pod leads from the workload.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.automatic import Decision, decide, declared
from gangsched.core.declarations.derivation import is_users
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.trees import declared_below
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.indexes import Grouped
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.workload import AUTO, GANG, Workload

WorkloadName = tuple[str, str, str]
"""A workload's namespace, kind and name."""


class Undeclared:
    """The pods, by UID, of each workload in each namespace, and the workloads for which an Event is still due."""

    def __init__(self, cluster: Cluster, foreign: Foreign, policy: Policy) -> None:
        self._ours = frozenset(policy.scheduler_names)
        self._cluster = cluster
        self._foreign = foreign
        self._pods = Grouped[str, WorkloadName]()
        self._in_namespace = Grouped[str, str]()
        self._naming = Grouped[str, GroupKey]()
        self._reported: set[WorkloadName] = set()
        self._unreported: dict[WorkloadName, str] = {}

    def declared(self, pod: Pod) -> Pod:
        """The pod with its current declaration. Pods of other schedulers follow no workload."""
        if pod.workload is not None:
            pod = self._of_workload(pod, pod.workload)
        declaration = pod.declaration
        if declaration is None or (declaration.own is None and NATIVE not in declaration.objects):
            return pod
        own = declaration.own or declaration
        root = self._foreign.tree_of(NATIVE, GroupKey(pod.namespace, own.group))
        now = declared_below(own, root) if root else own
        return pod if declaration == now else replace(pod, declaration=now)

    def _of_workload(self, pod: Pod, workload: Workload) -> Pod:
        if workload.declaration is None or pod.scheduler not in self._ours:
            return pod
        added = workload.added
        if added is not None and is_users(added, pod.owner, pod.namespace, self._foreign):
            return pod if pod.declaration == added.declaration else replace(pod, declaration=added.declaration)
        declaration = declared(workload, decide(workload, pod.namespace, self._cluster.namespaces, self._foreign))
        return pod if pod.declaration == declaration else replace(pod, declaration=declaration)

    def note(self, pod: Pod) -> None:
        """Note that a pod exists in this form, with its current declaration."""
        workload, declaration = pod.workload, pod.declaration
        if workload is None or pod.scheduler not in self._ours:
            self.forget(pod.uid)
            if declaration is not None and (declaration.own is not None or NATIVE in declaration.objects):
                self._naming.put(pod.uid, GroupKey(pod.namespace, (declaration.own or declaration).group))
            return
        place = (pod.namespace, workload.kind, workload.name)
        if self._pods.group_of(pod.uid) != place:
            self.forget(pod.uid)
            self._pods.put(pod.uid, place)
            self._in_namespace.put(pod.uid, pod.namespace)
        if workload.added is not None:
            self._naming.put(pod.uid, GroupKey(pod.namespace, workload.added.declaration.group))
        alone = pod.declaration is None or _native_group(pod)
        if alone and not pod.node and place not in self._reported:
            self._unreported.setdefault(place, pod.uid)

    def note_or_forget(self, uid: str) -> None:
        """Note the pod as the cluster knows it, or forget it if it is gone."""
        pod = self._cluster.pods.get(uid)
        if pod is None:
            self.forget(uid)
        else:
            self.note(pod)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone or no longer belongs to a workload."""
        for known in (self._pods, self._in_namespace, self._naming):
            known.drop(uid)

    def of(self, kind: str, key: GroupKey) -> list[str]:
        """The UIDs of the pods of the workload of this kind, namespace and name, sorted."""
        return sorted(self._pods.of((key.namespace, kind, key.name)))

    def naming(self, key: GroupKey) -> list[str]:
        """The UIDs of the pods that name this native group, sorted."""
        return sorted(self._naming.of(key))

    def of_kind(self, kind: str) -> list[str]:
        """The UIDs of the pods of all workloads of the kind, sorted."""
        return sorted(uid for uid, (_, of, _) in self._pods.items() if of == kind)

    def in_namespace(self, name: str) -> list[str]:
        """The UIDs of the pods of all workloads in the namespace, sorted."""
        return sorted(self._in_namespace.of(name))

    def ended(self, kind: str, key: GroupKey) -> None:
        """Forget the workload's Event, because its object is gone: a new object of that name gets its own."""
        self._reported.discard((key.namespace, kind, key.name))

    def take_events(self) -> Iterator[Effect]:
        """One Event for each workload whose pods are scheduled one by one and began to wait since the last call."""
        unreported, self._unreported = self._unreported, {}
        for place, uid in unreported.items():
            pod = self._cluster.pods.get(uid)
            if pod is None or pod.node or pod.workload is None:
                continue
            namespace, kind, name = place
            owner = self._foreign.find(kind, GroupKey(namespace, name))
            if owner is None or owner.workload is None or owner.workload.size <= 1 or owner.workload.gang is False:
                # Who has declined a gang need not be told how to get one.
                continue
            whose, top = f"{owner.workload.title} {name}", owner.workload.top
            above = f"{top.title} {top.name}" if top is not None else whose
            if pod.declaration is None:
                note = _note(whose, above, namespace, self._cluster.namespaces.get(namespace, {}))
            elif self._is_split(pod, pod.workload):
                note = _split_note(whose, _native_group(pod), namespace)
            else:
                continue
            self._reported.add(place)
            yield EmitEvent("Pod", namespace, pod.name, uid, "Normal", Reason.NO_GANG, "Scheduling", note)

    def _is_split(self, pod: Pod, workload: Workload) -> bool:
        """Whether a gang is asked for, and the native group that the user chose for the pod is none."""
        group = self._foreign.find(NATIVE, GroupKey(pod.namespace, _native_group(pod)))
        basic = group is not None and group.spec is not None and group.spec.max_schedule_time_s is not None
        decided = decide(workload, pod.namespace, self._cluster.namespaces, self._foreign)
        return basic and decided in (Decision.GANG, Decision.SELF_SAID)

    def validate(self) -> Iterator[str]:
        """Contradictions between the index and the known pods, each as a sentence."""
        for uid, place in self._pods.items():
            pod = self._cluster.pods.get(uid)
            workload = pod.workload if pod is not None else None
            if pod is None or workload is None or (pod.namespace, workload.kind, workload.name) != place:
                yield f"{uid}: remembered as a pod of {place[1:]}, which it is not"
            elif pod != self.declared(pod):
                yield f"{uid}: its declaration is older than the last change of {place[1:]}"
        for uid, named in self._naming.items():
            pod = self._cluster.pods.get(uid)
            if pod is None:
                yield f"{uid}: remembered as a pod that names {named}, but it is gone"
            elif pod != self.declared(pod):
                yield f"{uid}: its declaration is older than the last change of the tree of {named}"


def _native_group(pod: Pod) -> str:
    """The native group that the pod of a workload declares; empty if it declares another one or none."""
    added = pod.workload.added if pod.workload is not None else None
    return added.declaration.group if added is not None and pod.declaration == added.declaration else ""


def _split_note(workload: str, group: str, namespace: str) -> str:
    return (
        f"The pods of {workload} are scheduled one by one, though a gang is asked for (the label of the namespace "
        f"{namespace} or an annotation): they name the PodGroup {group} of scheduling.k8s.io, whose policy is basic. "
        "Give it the policy gang, or let the pods name no group."
    )


def _note(workload: str, annotated: str, namespace: str, labels: Mapping[str, str]) -> str:
    value = labels.get(GANG)
    label = f"label the namespace {namespace} {GANG}={AUTO}" + (f" (it is {value!r})" if value is not None else "")
    return (
        f"The pods of {workload} are scheduled one by one. To have them bound all together or not at all, {label}, or "
        f'annotate {annotated} {GANG}: "true".'
    )


WorkloadKey = tuple[str, GroupKey]
"""A workload's kind, and its namespace and name."""


class Resting:
    """The gangs, by the workload of their last members."""

    def __init__(self) -> None:
        self._gangs = Grouped[GroupKey, WorkloadKey]()

    def note(self, gang: Gang) -> None:
        """Update the index after the gang was reconciled."""
        workload = gang.record.workload
        if workload is None or gang.observed.group is None or not gang.deserted():
            self._gangs.drop(gang.key)
        else:
            self._gangs.put(gang.key, (workload.kind, GroupKey(gang.key.namespace, workload.name)))

    def forget(self, key: GroupKey) -> None:
        """Drop a gang that has live members or is gone."""
        self._gangs.drop(key)

    def of(self, kind: str, key: GroupKey) -> list[GroupKey]:
        """The gangs that a change of this workload concerns."""
        return list(self._gangs.of((kind, key)))

    def of_kind(self, kind: str) -> list[GroupKey]:
        """The gangs of workloads of the kind, which are concerned if the right to read these objects changes."""
        return [key for key, owner in self._gangs.items() if owner[0] == kind]

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from (f"{key}: known by its workload though it is gone" for key in self._gangs if key not in alive)
