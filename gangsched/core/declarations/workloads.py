"""Whether pods that name no group are members of a gang because of the workload that they belong to.

Their namespace's label asks for it, or an annotation of the workload's object, which may also decline. Neither says
anything while the namespace or that object has not been seen: then the pod waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache

from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.workload import AUTO, GANG, Workload

_KEPT = 1024


class Verdict(Enum):
    """What becomes of a workload's pods.

    They are members of gangs, whose size their object says or, SELF_SAID, they themselves; or each is on its own.
    """

    GANG = auto()
    SELF_SAID = auto()
    SINGLE = auto()
    UNKNOWN = auto()


def verdict(
    workload: Workload, namespace: str, namespaces: Mapping[str, Mapping[str, str]], foreign: Foreign
) -> Verdict:
    """What becomes of the pods of this workload in this namespace. A kind that may not be read says nothing."""
    labels = namespaces.get(namespace)
    if labels is None:
        return Verdict.UNKNOWN
    wanted = labels.get(GANG) == AUTO
    self_said = workload.declaration is not None and workload.declaration.min_member is not None
    if not foreign.is_denied(workload.kind):
        found = foreign.find(workload.kind, GroupKey(namespace, workload.name))
        if found is None or found.workload is None or (workload.uid and found.uid != workload.uid):
            return Verdict.UNKNOWN
        if found.workload.gang is not None:
            wanted = found.workload.gang
        self_said = self_said and not (found.workload.least is not None or found.workload.remedy or found.error)
    if not wanted:
        return Verdict.SINGLE
    return Verdict.SELF_SAID if self_said else Verdict.GANG


def makes_all_anew(workload: Workload | None, namespace: str, foreign: Foreign) -> bool:
    """Whether the workload makes all pods of a gang anew when one is lost."""
    found = foreign.find(workload.kind, GroupKey(namespace, workload.name)) if workload is not None else None
    return found is not None and found.workload is not None and found.workload.all_anew


def declared(workload: Workload, decided: Verdict) -> Declaration | None:
    """What a pod of the workload declares; None if it is on its own.

    While that is not known it is a member, of a group that nothing declares.
    """
    said = workload.declaration
    return None if decided is Verdict.SINGLE or said is None else _declared(said, decided)


@lru_cache(_KEPT)
def _declared(said: Declaration, decided: Verdict) -> Declaration:
    """Equal declarations are the identical value, so that comparing them is cheap."""
    if decided is Verdict.GANG:
        return said if said.min_member is None else replace(said, min_member=None)
    return replace(said, objects=(), min_member=said.min_member if decided is Verdict.SELF_SAID else None)
