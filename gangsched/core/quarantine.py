"""Objects that are set aside, because an exception that concerns no gang occurred over them: a bug in gangsched.

Law: such an object counts as not there. So nothing is placed on a node that is set aside; pods there stay. Only a pod
on a node still takes what it requests, so that nothing else is placed where it is. The object is tried again when it
changes, and forgotten when it is gone. What is known of it survives a rebuild of the state, but not the process, and
`restored` hands all objects as they are to a successor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects import events as seen
from gangsched.core.objects.events import Event
from gangsched.core.objects.faults import SetAside
from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.subjects import Subject, is_gone, kind_of, name_of, singles, subject_of, without
from gangsched.core.planning.capacity_snapshot import Snapshot


class Held(Struct):
    """An object that is set aside, as it was last seen, and the `error`; `substitute` counts in its place."""

    event: Event
    error: Exception
    substitute: Event | None = None


class Quarantine:
    """The objects that are set aside. `faults` are those set aside since the last call of `take_faults`."""

    def __init__(self) -> None:
        self._held: dict[Subject, Held] = {}
        self._faults: list[SetAside] = []

    def __bool__(self) -> bool:
        return bool(self._held)

    def put(self, event: Event, error: Exception) -> None:
        """Set the event's object aside. If it was set aside already, its substitute has failed too."""
        subject = subject_of(event)
        if subject is None:
            raise error
        again = subject in self._held and self._held[subject].substitute is not None
        self._held[subject] = Held(event, error, None if again else _substitute(event))
        self._faults.append(SetAside(name_of(event), error))

    def instead(self, event: Event) -> Sequence[Event]:
        """What to apply instead of this event: itself, unless its object is set aside and is no better now."""
        subject = subject_of(event)
        held = self._held.get(subject) if subject is not None else None
        if subject is None or held is None:
            return (event,)
        if not is_gone(event):
            if event != held.event and (error := fault_of([event])) is not None:
                held.event, held.error, held.substitute = event, error, _substitute(event)
            if event == held.event:
                return (held.substitute,) if held.substitute is not None else ()
        del self._held[subject]
        return (event,)

    def note_lists(self, events: Iterable[Event]) -> None:
        """Forget objects that are missing from complete lists among these events."""
        for event in events if self._held else ():
            kind = kind_of(event)
            listed = {subject_of(single) for single in singles(event)} if kind else set()
            self._held = {key: held for key, held in self._held.items() if key.kind != kind or key in listed}

    def forget_gone(self) -> None:
        """Forget objects that are gone; called after the state was rebuilt without them."""
        self._held = {subject: held for subject, held in self._held.items() if not is_gone(held.event)}

    def restored(self, facts: Sequence[Event]) -> list[Event]:
        """These facts with the objects that are set aside as they were last seen."""
        if not self._held:
            return [*facts]
        last = [held.event for held in self._held.values() if not is_gone(held.event)]
        return [*(without(event, self._held) for event in facts), *last]

    def take_faults(self) -> list[SetAside]:
        """The objects that were set aside since the last call."""
        faults, self._faults = self._faults, []
        return faults

    def described(self) -> list[str]:
        """The objects that are set aside, each with its kind, its name and the exception."""
        return sorted(f"{name_of(held.event)} ({type(held.error).__name__})" for held in self._held.values())

    def number(self) -> Mapping[str, int]:
        """How many objects are set aside, by kind."""
        return Counter(subject.kind for subject in self._held)


def fault_of(events: Sequence[Event]) -> Exception | None:
    """The exception over these objects alone, in a cluster that has nothing else; None if there is none."""
    cluster = Cluster()
    try:
        for event in events:
            _enter(cluster, event)
        Snapshot(cluster)
    except Exception as error:  # noqa: BLE001 - a defect may raise anything
        return error
    return None


def culprit(recent: Sequence[Event], known: Sequence[Event]) -> tuple[Event, Exception] | None:
    """The object without which a cluster of the `known` ones has no fault, and that fault; None if none is found.

    `recent` ones are tried first, each alone. Then the shortest beginning of `known` with a fault is found, by halving:
    its last object is the one. That may take seconds in a large cluster, but otherwise the process would end.
    """
    for event in recent:
        if subject_of(event) is not None and not is_gone(event) and (error := fault_of([event])) is not None:
            return event, error
    error = fault_of(known)
    if error is None:
        return None
    sound, faulty = 0, len(known)
    while faulty - sound > 1:
        middle = (sound + faulty) // 2
        fault = fault_of(known[:middle])
        if fault is None:
            sound = middle
        else:
            faulty, error = middle, fault
    return known[faulty - 1], error


def _enter(cluster: Cluster, event: Event) -> None:
    match event:
        case seen.NodeSeen(node):
            cluster.set_node(node)
        case seen.NamespaceSeen(name, labels, _):
            cluster.set_namespace(name, labels)
        case seen.BudgetSeen(budget):
            cluster.budgets.set(budget.key, budget)
        case seen.StorageSeen(kind, stored):
            cluster.set_storage(kind, stored.key, stored)
        case seen.DeviceObjectSeen(kind, device):
            cluster.set_devices(kind, device.key, device)
        case seen.PodSeen(pod):
            cluster.set_node(Node(pod.node or pod.nominated_node or "n"))
            cluster.set_pod(pod)
            cluster.nominate(pod)


def _substitute(event: Event) -> Event | None:
    """What counts in place of the object: of a pod on a node, what it requests."""
    if not isinstance(event, seen.PodSeen) or not event.pod.node or event.pod.terminal:
        return None
    pod = event.pod
    bare = replace(
        pod,
        shape=Shape(requests=pod.shape.requests),
        labels=(),
        soft=None,
        volume_claims=(),
        own_volume_claims=(),
        device_claims=(),
        extended=(),
    )
    return seen.PodSeen(bare)
