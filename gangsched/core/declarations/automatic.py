"""Decides whether pods that name no group are members of a gang because of the workload that they belong to.

The label of their namespace can request it, and so can an annotation of the workload's object, which may also decline.
Until both the namespace and the object have been seen nothing is decided, and the pod waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.workload import (
    AUTO,
    COMPLETED,
    DELETED,
    ENDED,
    GANG,
    SERIES_OF,
    SUSPENDED,
    Workload,
    WorkloadFacts,
)

_KEPT = 1024


class Decision(Enum):
    """How a workload's pods are scheduled.

    They are members of gangs, whose size their object declares or, with SELF_SAID, they themselves; or each is on its
    own.
    """

    GANG = auto()
    SELF_SAID = auto()
    SINGLE = auto()
    UNKNOWN = auto()


def decide(
    workload: Workload, namespace: str, namespaces: Mapping[str, Mapping[str, str]], foreign: Foreign
) -> Decision:
    """How the pods of this workload in this namespace are scheduled. A kind that may not be read decides nothing."""
    labels = namespaces.get(namespace)
    if labels is None:
        return Decision.UNKNOWN
    wanted = labels.get(GANG) == AUTO
    declaration = workload.declaration
    self_said = declaration is not None and declaration.min_member is not None
    if not foreign.is_denied(workload.kind):
        group = foreign.find(workload.kind, GroupKey(namespace, workload.name))
        if group is None or group.workload is None or (workload.uid and group.uid != workload.uid):
            return Decision.UNKNOWN
        if group.workload.gang is not None:
            wanted = group.workload.gang
        if wanted and declaration is not None and declaration.role.partition(".")[0] in group.workload.not_yet:
            # The pod was seen before the state of the object that made its controller create it.
            return Decision.UNKNOWN
        self_said = self_said and not (group.workload.least is not None or group.workload.remedy or group.error)
        if declaration is not None and declaration.made_with is None and group.spec is not None:
            # It was created before the others, and perhaps before a resize: as many come as the object says now.
            self_said = self_said and declaration.min_member == group.spec.min_member
    if not wanted:
        return Decision.SINGLE
    return Decision.SELF_SAID if self_said else Decision.GANG


class Idle(Struct, frozen=True):
    """A workload that wants no pods, by its display name, and `why`: it has ended, is suspended or is scaled to 0."""

    called: str
    why: str

    @property
    def ended(self) -> bool:
        """Whether it creates no pods any more; otherwise it does once it is resumed or scaled up."""
        return self.why in (COMPLETED, ENDED)

    @property
    def completed(self) -> bool:
        """Whether it has succeeded, which may happen before all of its pods have."""
        return self.why == COMPLETED

    @property
    def suspended(self) -> bool:
        """Whether it is suspended, not scaled to 0."""
        return self.why == SUSPENDED


def recreates_all(workload: Workload | None, namespace: str, foreign: Foreign) -> bool:
    """Whether the workload recreates all pods of a gang when one is lost."""
    facts = _facts(workload, namespace, foreign)
    return facts is not None and facts.recreates_all


def job_of(pod: Pod, foreign: Foreign) -> WorkloadFacts | None:
    """What the Job says that owns the pod; None if no Job does, or it is not known."""
    owner = pod.owner
    if owner is None or (owner.kind, owner.api_group) != ("Job", "batch"):
        return None
    job = foreign.stored(SERIES_OF, GroupKey(pod.namespace, owner.name))
    return job.workload if job is not None and job.uid == owner.uid else None


def is_patient(pod: Pod, foreign: Foreign) -> bool:
    """Whether the pod is of a Job that counts no failure when it is evicted; not if that is unknown."""
    job = job_of(pod, foreign)
    return job is not None and job.patient


def idle_of(workload: Workload | None, namespace: str, foreign: Foreign) -> Idle | None:
    """Why the workload wants no pods; None if it wants some, is not known, or is being deleted."""
    facts = _facts(workload, namespace, foreign)
    if workload is None or facts is None or facts.idle in ("", DELETED):
        return None
    return Idle(f"{facts.title} {workload.name}", facts.idle)


def _facts(workload: Workload | None, namespace: str, foreign: Foreign) -> WorkloadFacts | None:
    """What the workload's object says; None if there is none, or another object has taken its name."""
    group = foreign.find(workload.kind, GroupKey(namespace, workload.name)) if workload is not None else None
    if workload is None or group is None or (workload.uid and workload.uid != group.uid):
        return None
    return group.workload


def declared(workload: Workload, decided: Decision) -> Declaration | None:
    """What a pod of the workload declares; None if it is scheduled on its own.

    Until that is decided it is a member of a group that nothing declares. A native group that its controller has added
    counts only where the workload asks for no gang.
    """
    declaration, added = workload.declaration, workload.added
    if decided is Decision.SINGLE or declaration is None:
        return added.declaration if added is not None else None
    return _declared(declaration, decided, "" if added is None else added.declaration.group)


@lru_cache(_KEPT)
def _declared(stated: Declaration, decided: Decision, passed_over: str) -> Declaration:
    """Equal declarations share one value, so that comparing them is cheap."""
    if passed_over:
        stated = replace(stated, passed_over=passed_over)
    if decided is Decision.GANG:
        return stated if stated.min_member is None else replace(stated, min_member=None)
    return replace(stated, objects=(), min_member=stated.min_member if decided is Decision.SELF_SAID else None)
