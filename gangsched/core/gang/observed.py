"""What was observed of a gang: its declaration, its members and owners, and the state of its workload."""

from __future__ import annotations

from msgspec import Struct, field

from gangsched.core.declarations.automatic import Idle
from gangsched.core.declarations.ownership import UNDISPUTED, Ownership
from gangsched.core.declarations.waves import Wave
from gangsched.core.objects.declaration import NATIVE
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group

MOST_OBJECTS = 16
"""More other systems' objects than this are not kept apart in `Traits`."""


class Traits(Struct):
    """What all members of a gang have shown together, for `core.gang.order`; nothing is taken back but with the last.

    `priority` is their highest priority, `created` the creation time of the oldest one (epoch seconds), `bound` whether
    one had a node, and `objects` the dialects and names of other systems' objects that they use (an empty name is the
    gang's own); None if there are more than MOST_OBJECTS.
    """

    priority: int = 0
    created: float = float("inf")
    bound: bool = False
    objects: set[tuple[str, str]] | None = field(default_factory=set)

    def add(self, pod: Pod) -> None:
        """Take a member into account."""
        first = self.created == float("inf")
        self.priority = pod.priority if first else max(self.priority, pod.priority)
        self.created = min(self.created, pod.created)
        self.bound = self.bound or bool(pod.node)
        declaration = pod.declaration
        if declaration is not None and declaration.objects and self.objects is not None:
            self.objects.update((dialect, declaration.object_name) for dialect in declaration.objects)
            if declaration.passed_over:
                # The gang takes over what its workload states there (`declarations.derivation`).
                self.objects.add((NATIVE, declaration.passed_over))
            if len(self.objects) > MOST_OBJECTS:
                self.objects = None


class Observed(Struct):
    """Observations only: after a restart the lists show the same again. It is changed by its methods and by the gang.

    `group` is the PodGroup, and `resource_version` its version, which another reader of the PodGroup may have seen
    first. `pods` are the members and `foreign_pods` are other schedulers' pods that name the gang, both by UID;
    `traits` sum up the members. `ownership` says which owners use the group's name. For the workload in the record,
    `wave` is what it still owes if its pods come in waves, and `idle` why it wants no pods, None if it does.
    `given_up`: completions of it have failed for good. `recreates_all`: when a member is lost, the workload recreates
    all of them.
    """

    group: Group | None = None
    resource_version: str = ""
    pods: dict[str, Pod] = field(default_factory=dict)
    foreign_pods: dict[str, Pod] = field(default_factory=dict)
    traits: Traits = field(default_factory=Traits)
    ownership: Ownership = UNDISPUTED
    wave: Wave | None = None
    idle: Idle | None = None
    given_up: bool = False
    recreates_all: bool = False

    def bare(self) -> Observed:
        """The stored objects alone, without anything that was concluded from them."""
        return Observed(self.group, self.resource_version, self.pods, self.foreign_pods, self.traits)

    @property
    def generation(self) -> int:
        """That of the PodGroup's spec, which a condition is about; 0 if there is no PodGroup."""
        return self.group.generation if self.group is not None else 0

    @property
    def empty(self) -> bool:
        """Whether no pod names the gang."""
        return not (self.pods or self.foreign_pods)

    @property
    def size(self) -> int:
        """Number of pods that name the gang, whoever schedules them: what reconciling it has to look at."""
        return len(self.pods) + len(self.foreign_pods)

    def declare(self, group: Group | None) -> None:
        """Set the PodGroup that declares the gang from now on; None if there is none."""
        self.group = group
        self.resource_version = group.resource_version if group is not None else self.resource_version

    def now_at(self, resource_version: str) -> None:
        """Set the PodGroup's current version."""
        self.resource_version = resource_version

    def note_pod(self, pod: Pod, *, foreign: bool = False) -> None:
        """Note the pod as a member or, with `foreign`, as another scheduler's pod that names the gang."""
        ours, others = (self.foreign_pods, self.pods) if foreign else (self.pods, self.foreign_pods)
        ours[pod.uid] = pod
        others.pop(pod.uid, None)
        if not foreign:
            self.traits.add(pod)

    def forget_pod(self, uid: str) -> Pod:
        """Forget the pod, which is neither a member nor a foreign pod any more. Returns its last form."""
        pod = self.pods.pop(uid) if uid in self.pods else self.foreign_pods.pop(uid)
        if not self.pods:
            self.traits = Traits()
        return pod

    def note_workload(self, wave: Wave | None, idle: Idle | None, *, recreates_all: bool, given_up: bool) -> None:
        """Note the state of the workload."""
        self.wave, self.idle, self.recreates_all, self.given_up = wave, idle, recreates_all, given_up
