"""The object of a controller that a pod without a declaration belongs to, and the facts in that object."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.declaration import Declaration

GANG = "gangsched.io/gang"
"""The namespace label, with the value AUTO, and the workload annotation that make pods into gangs."""
AUTO = "auto"
SUSPENDED = "is suspended"
COMPLETED = "has completed"
ENDED = "has ended"
DELETED = "is being deleted"
"""Values of `WorkloadFacts.idle`: why a workload wants no pods. Any other value means that it is scaled to 0.

COMPLETED means that it has succeeded by its own rules, ENDED that it has ended otherwise.
"""


class Added(Struct, frozen=True, gc=False, cache_hash=True):
    """A group of Kubernetes' own that a pod's spec names, perhaps because its controller added it.

    `declaration` is what it says. `certain`: the pod itself shows that its controller made the group. Otherwise the
    group's object does, whose controller is then that of the pod, or the pod's workload.
    """

    declaration: Declaration
    certain: bool = False


class Workload(Struct, frozen=True, gc=False, cache_hash=True):
    """An object in the pod's namespace, of a `kind` that is named in the registry of workloads.

    `uid` is empty if the pod does not state it. `declaration` is the pod's declaration in case the workload asks for a
    gang; None for a pod that names its group itself. `added` is the group that the pod names, if only its spec does.
    """

    kind: str
    name: str
    declaration: Declaration | None
    uid: str = ""
    added: Added | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """The object's identity within its namespace."""
        return (self.kind, self.name, self.uid)


class Reference(Struct, frozen=True, gc=False):
    """Names an object as an owner reference does."""

    api_version: str
    kind: str
    name: str
    uid: str


class TopOwner(Struct, frozen=True, gc=False):
    """The object whose controller created a workload's object, in its own namespace, such as the TrainJob of a JobSet.

    `kind` is its kind's name in the registry of workloads, `title` the one for users.
    """

    kind: str
    title: str
    name: str
    uid: str


SERIES_OF = "job"
"""The kind of the objects in a `Series`."""


class Series(Struct, frozen=True, gc=False):
    """Jobs of these names, whose pods have one role. Each Job runs `pods` at a time, and `completions` must succeed."""

    role: str
    jobs: tuple[str, ...]
    pods: int
    completions: int


class WorkloadFacts(Struct, frozen=True, gc=False):
    """The facts in the object of a workload. `title` is its kind for users, such as `StatefulSet`.

    `gang`: whether its annotation, or without one its fields, ask for gangs; None if neither does. `size` is the number
    of pods that it wants now, in all its gangs. `idle` says in a few words why it wants none at present, empty if it
    does: one of the constants above, or how it is scaled to 0. `least` is the minimum of its gangs by its annotation,
    if it has one. `top` is the object above it, if that is of a watched kind: the annotations there take precedence.
    `api_version` is the version in which it is read. `remedy`: its controller creates pods only once others are ready,
    and this tells users how to have them created at once; empty if the controller does so. `completions` is how many of
    its pods must succeed in total, None if it does not say, and `succeeded` how many it has counted. If `completions`
    exceeds `size`, its pods come in waves. `given_up` is how many of the completions have failed for good, so that
    nobody owes them any more (a Job's failed indexes). `series` are its Jobs, which count on their own, if these create
    its pods. `recreates_all`: when a pod of a gang is lost, its controller deletes the others too. `patient`: an
    evicted pod does not count as a failure of it. `ends_by` is when its own limit ends it, in epoch seconds, 0.0
    without one. `began` and `succeeded_at` are when its run began and when it had succeeded, in epoch seconds, 0.0
    before that or if it does not say; `owner` is the UID of the object that owns it, its controller first; empty if
    none does. `not_yet` are roles of which it has no pods before others of its pods are complete, which this state of
    the object does not show. `ignored` are fields in use that change what its own system would do, but not what
    gangsched does.
    """

    title: str
    api_version: str = ""
    remedy: str = ""
    gang: bool | None = None
    size: int = 1
    idle: str = ""
    least: int | None = None
    top: TopOwner | None = None
    completions: int | None = None
    succeeded: int = 0
    given_up: int = 0
    series: tuple[Series, ...] = ()
    recreates_all: bool = False
    patient: bool = False
    ends_by: float = 0.0
    began: float = 0.0
    succeeded_at: float = 0.0
    owner: str = ""
    not_yet: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def in_waves(self) -> bool:
        """Whether it replaces pods that have succeeded."""
        return self.completions is not None and self.completions > self.size
