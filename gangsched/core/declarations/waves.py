"""A Job whose pods come in waves, because it asks for more completions than it runs pods at a time.

Each pod that succeeds is replaced while the Job owes more completions than it has pods. So of the Job's gang as many
members must be alive as its minimum says, or as completions are owed if these are fewer; those that have succeeded do
not count toward it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.terms import Terms
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.workload import Workload, WorkloadFacts


class Wave(Struct, frozen=True):
    """How many completions the Job still owes, and whether it will make more pods for them."""

    owed: int
    goes_on: bool


def wave_of(
    key: GroupKey, workload: Workload | None, pods: Iterable[Pod], terms: Terms, *, foreign: Foreign
) -> Wave | None:
    """The wave of a gang whose live members belong to this workload, of all its `pods`; None if they come at once.

    A gang with members of other roles, who may belong to something else, has none.
    """
    if workload is None:
        return None
    found = foreign.find(workload.kind, GroupKey(key.namespace, workload.name))
    facts = found.workload if found is not None else None
    if found is None or facts is None or facts.completions is None or found.uid != workload.uid:
        return None
    theirs = [pod for pod in pods if pod.workload is not None and pod.workload.identity == workload.identity]
    if not {role.name for role in terms.spec.roles if role.min_member} <= set(map(role_of, theirs)):
        return None
    owed = owed_of(facts, workload, theirs)
    return Wave(owed, goes_on=not facts.idle) if owed is not None else None


def owed_of(facts: WorkloadFacts, workload: Workload, pods: Iterable[Pod]) -> int | None:
    """How many completions the workload of these facts still owes; None if its pods do not come in waves.

    It counts a success later than the pod among `pods` shows it, and when the pod is gone its count alone shows it.
    """
    if facts.completions is None:
        return None
    ended = (pod.workload for pod in pods if pod.phase is PodPhase.SUCCEEDED)
    seen = sum(each is not None and each.identity == workload.identity for each in ended)
    return max(0, facts.completions - max(facts.succeeded, seen))


def lowered_to(terms: Terms, wave: Wave | None) -> Terms:
    """The terms with minima of no more than the completions that are owed."""
    if wave is None or terms.spec.minimum <= wave.owed:
        return terms
    most, spec = max(1, wave.owed), terms.spec
    roles = tuple(replace(role, min_member=min(role.min_member, most)) for role in spec.roles)
    return replace(terms, spec=replace(spec, min_member=min(spec.min_member, most), roles=roles))
