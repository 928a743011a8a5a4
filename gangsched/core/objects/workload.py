"""The controller's object that a pod without a declaration belongs to, and what that object says."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.declaration import Declaration

GANG = "gangsched.io/gang"
"""The label of a namespace, with the value AUTO, and the annotation of a workload that make gangs of pods."""
AUTO = "auto"
SUSPENDED = "is suspended"
COMPLETED = "has completed"
ENDED = "has ended"
DELETED = "is being deleted"
"""Why a workload wants no pods, as `WorkloadFacts.idle` says it. Any other reason is that it is scaled to 0.

COMPLETED says that it has succeeded, by its own rules; ENDED that it has ended otherwise.
"""


class Workload(Struct, frozen=True, gc=False, cache_hash=True):
    """An object of a `kind` (a name in the registry of workloads), which is in the pod's namespace.

    `uid` is empty where the pod does not know it. `declaration` is what the pod says if it is to be a gang's member;
    None for a pod that names its group itself.
    """

    kind: str
    name: str
    declaration: Declaration | None
    uid: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """Which object it is, beside its namespace."""
        return (self.kind, self.name, self.uid)


class Reference(Struct, frozen=True, gc=False):
    """Names an object as an owner reference does."""

    api_version: str
    kind: str
    name: str
    uid: str


class Top(Struct, frozen=True, gc=False):
    """The object whose controller has made a workload's object in its namespace, such as the TrainJob of a JobSet.

    `kind` is its name in the registry of workloads, `title` that for people.
    """

    kind: str
    title: str
    name: str
    uid: str


SERIES_OF = "job"
"""The kind of the objects that a series names."""


class Series(Struct, frozen=True, gc=False):
    """Jobs of these names, whose pods have a role: each has so many pods at a time, and so many must succeed in all."""

    role: str
    jobs: tuple[str, ...]
    pods: int
    completions: int


class WorkloadFacts(Struct, frozen=True, gc=False):
    """What such an object says beside its size. `title` is its kind for people, such as `StatefulSet`.

    `gang`: whether its annotation asks for gangs; None where it has none. `size` is how many pods it wants now, of all
    its gangs. `idle` says in a few words why it wants none for now, empty if it does: one of the words above, or how
    it is scaled to 0. `least` is the minimum of its gangs that an annotation says, if one does. `top` is the object
    above it, if that is of a kind which is watched: the annotations there come first. `api_version` is the one that it
    is read in. `remedy`: its controller creates pods only once others are ready, and this is what to do to have them
    created at once; empty if it does create them so. `completions` is how many of its pods must succeed in all, None
    where it does not say, and `succeeded` how many it has counted. Its pods come in waves if these are more than its
    size. `series` are its Jobs, which count themselves, if these make its pods and come in waves. `all_anew`: when a
    pod of a gang is lost, its controller deletes the others too.
    """

    title: str
    api_version: str = ""
    remedy: str = ""
    gang: bool | None = None
    size: int = 1
    idle: str = ""
    least: int | None = None
    top: Top | None = None
    completions: int | None = None
    succeeded: int = 0
    series: tuple[Series, ...] = ()
    all_anew: bool = False

    @property
    def in_waves(self) -> bool:
        """Whether it replaces pods that have succeeded."""
        return self.completions is not None and self.completions > self.size
