"""Applies changes of objects other than pods and PodGroups, such as nodes, classes, volumes and foreign PodGroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.trees import TREE_KINDS
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.mail import ClaimsChanged, Redeclared, TermsChanged, TermsShown
from gangsched.core.membership.by_workload import Resting
from gangsched.core.membership.members import Members
from gangsched.core.objects import events
from gangsched.core.objects.declaration import COMPOSITE, NATIVE, GroupKey
from gangsched.core.objects.devices import DeviceKind
from gangsched.core.objects.node import Node
from gangsched.core.objects.podgroup import ForeignGroup, decisive, without_status
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.shape import Labels
from gangsched.core.objects.volumes import StorageKind
from gangsched.core.objects.workload import GANG


class Surroundings:
    """Updates the cluster, `Members.foreign` and the gangs concerned. `priority_classes` are by name.

    `resting` are gangs that have no live member to show that a change of their workload concerns them.
    """

    def __init__(
        self, cluster: Cluster, members: Members, assessments: Mapping[GroupKey, Assessment], policy: Policy
    ) -> None:
        self.priority_classes: dict[str, PriorityClass] = {}
        self.resting = Resting()
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._policy = policy
        self._changed: dict[tuple[str, GroupKey], None] = {}

    def note(self, event: events.Event) -> None:
        """Apply the change of one such object, or a complete list of PriorityClasses."""
        match event:
            case events.NodeSeen(node):
                self._set_node(node)
            case events.NodeGone(name):
                self._node_gone(name)
            case events.NamespaceSeen(name, labels, terminating):
                self._set_namespace(name, labels, terminating=terminating)
            case events.NamespaceGone(name):
                self._set_namespace(name, None, terminating=False)
            case events.PriorityClassSeen(name, priority_class):
                self._set_priority_classes({**self.priority_classes, name: priority_class})
            case events.PriorityClassGone(name):
                left = {other: kept for other, kept in self.priority_classes.items() if other != name}
                self._set_priority_classes(left)
            case events.PriorityClassesReplaced(classes):
                self._set_priority_classes(dict(classes))
            case events.BudgetFact():
                self._note_budget(event)
            case events.StorageFact() | events.DeviceFact():
                self._note_claims(event)

    def unlisted(self, event: events.Event) -> list[events.Event]:
        """For each known object that is missing from this complete list, that it is gone."""
        cluster = self._cluster
        match event:
            case events.NodesReplaced(nodes):
                gone = sorted(cluster.nodes.keys() - {node.name for node in nodes})
                return [events.NodeGone(name) for name in gone]
            case events.NamespacesReplaced(namespaces):
                left = sorted(cluster.namespaces.keys() - {namespace.name for namespace in namespaces})
                return [events.NamespaceGone(name) for name in left]
            case events.BudgetsReplaced(budgets):
                known = {budget.key for budget in cluster.budgets.all()}
                return [events.BudgetGone(key) for key in sorted(known - {budget.key for budget in budgets})]
            case events.StorageReplaced(kind, storage_objects):
                keys = sorted(cluster.volumes.known(kind).keys() - {listed.key for listed in storage_objects})
                return [events.StorageGone(kind, key) for key in keys]
            case events.DeviceObjectsReplaced(of, device_objects):
                ended = sorted(cluster.devices.known(of).keys() - {listed.key for listed in device_objects})
                return [events.DeviceObjectGone(of, key) for key in ended]
        return []

    def facts(self) -> list[events.Event]:
        """Everything observed, as events for a successor."""
        cluster = self._cluster
        budgets = cluster.budgets
        named, doomed = cluster.namespaces.items(), cluster.terminating
        namespaces = [events.NamespaceSeen(name, (*labels.items(),), name in doomed) for name, labels in named]
        return [
            events.NamespacesReplaced(tuple(namespaces)),
            events.PriorityClassesReplaced(tuple(self.priority_classes.items())),
            events.BudgetsHidden(budgets.why_hidden) if budgets.why_hidden else events.BudgetsReplaced(budgets.all()),
            events.NodesReplaced(tuple(cluster.nodes.values())),
            *(events.StorageReplaced(kind, tuple(cluster.volumes.known(kind).values())) for kind in StorageKind),
            *(events.DeviceObjectsReplaced(kind, tuple(cluster.devices.known(kind).values())) for kind in DeviceKind),
        ]

    def _set_namespace(self, name: str, labels: Labels | None, *, terminating: bool) -> None:
        """Set the labels of the namespace; None: it is gone."""
        if self._cluster.note_terminating(name, terminating=terminating):
            self._members.dirty.note(*(key for key in self._members.gangs if key.namespace == name))
        before = self._cluster.namespaces.get(name)
        if labels is None:
            self._cluster.remove_namespace(name)
        else:
            self._cluster.set_namespace(name, labels)
        after = self._cluster.namespaces.get(name)
        if before is None or after is None or before.get(GANG) != after.get(GANG):
            self._redeclare(self._members.undeclared.in_namespace(name))

    def _set_node(self, node: Node) -> None:
        if self._cluster.set_node(node):
            self._members.failures.node_changed(node.name)

    def _node_gone(self, name: str) -> None:
        """Remove the node, and reconcile the gangs whose reservations on it are of no use any more."""
        for uid in sorted(self._cluster.on_node.get(name, ())):
            self._members.touch(uid)
        self._cluster.remove_node(name)

    def _note_budget(self, event: events.BudgetFact) -> None:
        match event:
            case events.BudgetSeen(budget):
                self._cluster.budgets.set(budget.key, budget)
            case events.BudgetGone(key):
                self._cluster.budgets.set(key, None)
            case events.BudgetsHidden(why):
                self._cluster.budgets.hide(why)

    def _note_claims(self, event: events.StorageFact | events.DeviceFact) -> None:
        match event:
            case events.StorageSeen(kind, storage_object):
                self._try_again(self._cluster.set_storage(kind, storage_object.key, storage_object))
            case events.StorageGone(kind, key):
                self._try_again(self._cluster.set_storage(kind, key, None))
            case events.DeviceObjectSeen(kind, device_object):
                self._try_again(self._cluster.set_devices(kind, device_object.key, device_object))
            case events.DeviceObjectGone(kind, key):
                self._try_again(self._cluster.set_devices(kind, key, None))

    def _try_again(self, uids: Iterable[str]) -> None:
        """Try the gangs of these waiting members (by UID) again, because objects that the members use have changed."""
        for uid in uids:
            gang = self._members.gang_of(uid)
            if gang is not None and not self._cluster.pods[uid].node:
                self._members.tell(gang, ClaimsChanged())

    def _set_priority_classes(self, classes: dict[str, PriorityClass]) -> None:
        known = self.priority_classes
        changed = {name for name in classes.keys() | known.keys() if classes.get(name) != known.get(name)}
        self.priority_classes = classes
        for key, assessment in self._assessments.items():
            if assessment.terms.spec.priority_class in changed:
                self._members.dirty.note(key)
        if changed:
            # What those say that nobody has looked at yet is unknown: find their places in the order anew.
            self._members.dirty.note(*list(self._members.dirty))

    # Other systems' objects

    def note_foreign(self, event: events.ForeignFact) -> None:
        """Another system's object was seen or has gone, or those of a dialect cannot be read."""
        match event:
            case events.ForeignGroupSeen(group):
                self._foreign_seen(group)
            case events.ForeignGroupGone(dialect, key):
                self._foreign_gone(dialect, key)
            case events.ForeignGroupsHidden(dialect):
                self._members.foreign.hide(event)
                self._all_declared_by(dialect)
                self._redeclare_kind(dialect)

    def show(self, dialect: str) -> list[Gang] | None:
        """Note that the dialect's objects were listed.

        Returns the gangs that use them; None if they were not hidden.
        """
        return self._all_declared_by(dialect) if self._members.foreign.show(dialect) else None

    def all_shown(self, dialect: str, shown: list[Gang] | None) -> None:
        """After the whole list was noted: the gangs that use its objects may show what could not be seen before."""
        if shown is None:
            return
        for gang in {gang.key: gang for gang in (*shown, *self._redeclare_kind(dialect))}.values():
            self._members.tell(gang, TermsShown())

    def _foreign_seen(self, group: ForeignGroup) -> None:
        if self._policy.namespace and group.key.namespace != self._policy.namespace:
            return
        foreign = self._members.foreign
        with self._changing(group.dialect, group.key):
            foreign.keep(group)

    def _foreign_gone(self, dialect: str, key: GroupKey) -> None:
        with self._changing(dialect, key):
            self._members.foreign.drop(dialect, key)

    @contextmanager
    def _changing(self, dialect: str, key: GroupKey) -> Iterator[None]:
        """Apply a change of this object in the body, and then what follows for it and the objects that depend on it."""
        foreign = self._members.foreign
        places = [(dialect, key), *foreign.dependents(dialect, key)]
        before = [foreign.known(*place) for place in places]
        in_trees = dialect in TREE_KINDS
        stored, roots = (foreign.stored(dialect, key), self._roots(dialect, key)) if in_trees else (None, set[str]())
        yield
        if in_trees and without_status(foreign.stored(dialect, key)) != without_status(stored):
            self._tree_changed(dialect, key, roots | self._roots(dialect, key))
        for place, old in zip(places, before, strict=True):
            new = foreign.known(*place)
            if without_status(old) != without_status(new):
                self._foreign_changed(*place, old, new)

    def _foreign_changed(self, dialect: str, key: GroupKey, old: ForeignGroup | None, new: ForeignGroup | None) -> None:
        if new is not None:
            self._workload_changed(key, old, new)
        if dialect == NATIVE:
            self._try_again(self._cluster.devices.set_group(key[:2], new))
            # It may show who has made it, and automatic gangs take over what it asks for.
            named = self._members.undeclared.naming(key)
            self._redeclare(named)
            self._members.dirty.note(*(gang.key for uid in named if (gang := self._members.gang_of(uid)) is not None))
        if new is not None and new.workload is not None and _terms(old) == _terms(new):
            return  # `conclude` marks the gangs
        waits = self._members.foreign.awaited(dialect, key) is not None
        for gang in self._declared_by(dialect, key):
            if old is None or new is None or old.uid != new.uid:
                self._members.tell(gang, Redeclared(over=old is not None and not waits))
            elif _terms(old) != _terms(new):
                self._members.tell(gang, TermsChanged())
        if new is None:
            self._members.undeclared.ended(dialect, key)
            self._workload_changed(key, old, new)

    def _roots(self, dialect: str, key: GroupKey) -> set[str]:
        """The name of the root of the tree that this object is in, or is; empty if it is in none."""
        return {self._members.foreign.tree_of(dialect, key) or (key.name if dialect == COMPOSITE else "")} - {""}

    def _tree_changed(self, dialect: str, key: GroupKey, roots: set[str]) -> None:
        """An object of a tree of groups has changed: pods below it may join another gang, and the tree's is reconciled.

        It may be complete by what the object says now.
        """
        if roots:
            leaves = self._members.foreign.leaves(dialect, key)
            self._redeclare([uid for leaf in leaves for uid in self._members.undeclared.naming(leaf)])
        for root in sorted(roots):
            for gang in self._declared_by(COMPOSITE, GroupKey(key.namespace, root)):
                self._members.tell(gang, TermsChanged())

    def _redeclare_kind(self, kind: str) -> list[Gang]:
        """Recompute the declarations of pods of workloads of this kind, or depending on one. Returns their gangs."""
        members = self._members
        uids = dict.fromkeys(members.undeclared.of_kind(kind))
        for place in members.foreign.dependents_of_all(kind):
            uids |= dict.fromkeys(members.undeclared.of(*place))
        self._redeclare(uids)
        for uid in uids:
            members.touch(uid)
        return list({gang.key: gang for uid in uids if (gang := members.gang_of(uid)) is not None}.values())

    def _redeclare(self, uids: Iterable[str]) -> None:
        """Recompute the declarations of these pods of workloads, and whether an Event about them is due."""
        for uid in uids:
            self._members.pod_seen(self._cluster.pods[uid])
            self._members.undeclared.note_or_forget(uid)

    def _workload_changed(self, key: GroupKey, old: ForeignGroup | None, new: ForeignGroup | None) -> None:
        """A workload's object has changed: its pods may join or leave a gang, and gangs of its pods are reconciled."""
        either = new or old
        if either is None or either.workload is None:
            return
        place = either.dialect, key
        if decisive(old) != decisive(new):
            self._redeclare(self._members.undeclared.of(*place))
        self._changed |= dict.fromkeys([place, *self._members.foreign.dependents(*place)])

    def conclude(self) -> None:
        """Mark the gangs dirty whose workloads have changed: once, however many changes of one have just arrived."""
        for place in self._changed:
            self._declared_by(*place)
            for uid in self._members.undeclared.of(*place):
                self._members.touch(uid)
            self._members.dirty.note(*self.resting.of(*place))
        self._changed.clear()

    def _all_declared_by(self, dialect: str) -> list[Gang]:
        """Mark gangs of the dialect's objects dirty, including those at rest. Returns those with pods that use them."""
        members = self._members
        using = [gang for gang in members.gangs.values() if uses(gang, dialect)]
        members.dirty.note(*(gang.key for gang in using), *self.resting.of_kind(dialect))
        for place in members.foreign.dependents_of_all(dialect):
            members.dirty.note(*self.resting.of(*place))
        # The pods of a tree name its root, a composite group, which cannot be read without the groups below it.
        return [*using, *self._all_declared_by(COMPOSITE)] if dialect == NATIVE else using

    def _declared_by(self, dialect: str, key: GroupKey) -> list[Gang]:
        """Mark the gangs dirty whose pods use this object of the dialect, and return them."""
        members = self._members
        gangs = [members.gangs.get(key), *map(members.gang_of, members.undeclared.of(dialect, key))]
        named = {gang.key: gang for gang in gangs if gang is not None}
        using = [gang for gang in named.values() if uses(gang, dialect)]
        members.dirty.note(*(gang.key for gang in using))
        return using


def uses(gang: Gang, dialect: str) -> bool:
    """Whether a pod of the gang names an object of the dialect, or a native one that its controller has added."""
    declared = (pod.declaration for pod in gang.observed.pods.values() if pod.declaration is not None)
    return any(dialect in stated.objects or (dialect == NATIVE and stated.passed_over) for stated in declared)


def _terms(group: ForeignGroup | None) -> object:
    return (group.uid, group.spec, group.error) if group is not None else None
