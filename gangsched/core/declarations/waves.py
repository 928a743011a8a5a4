"""What a Job still owes, as its gang needs no more members than that.

Its pods come in waves if it asks for more completions than it runs pods at a time: each pod that succeeds is replaced
while the Job owes more completions than it has pods. So of the Job's gang as many members must be alive as its minimum
says, or as completions are owed if these are fewer; those that have succeeded do not count toward it. Where they come
at once, those that have succeeded in an earlier run, as before a suspension, are not made again.
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
    """How many completions the Job still owes of those it asks for, and whether it will make more pods for them.

    `at_once`: its pods do not come in waves.
    """

    owed: int
    asked: int
    goes_on: bool
    at_once: bool


def wave_of(
    key: GroupKey, workload: Workload | None, pods: Iterable[Pod], terms: Terms, *, foreign: Foreign
) -> Wave | None:
    """What is owed by a gang whose live members belong to this workload, of all its `pods`; None if that is not known.

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
    if owed is None:
        return None
    return Wave(owed, facts.completions, goes_on=not facts.idle, at_once=not facts.in_waves)


def owed_of(facts: WorkloadFacts, workload: Workload, pods: Iterable[Pod]) -> int | None:
    """How many completions the workload of these facts still owes; None if it does not say how many it asks for.

    It counts a success later than the pod among `pods` shows it, and when the pod is gone its count alone shows it.
    """
    if facts.completions is None:
        return None
    ended = (pod.workload for pod in pods if pod.phase is PodPhase.SUCCEEDED)
    seen = sum(each is not None and each.identity == workload.identity for each in ended)
    return max(0, facts.completions - max(facts.succeeded, seen))


def lowered_to(terms: Terms, wave: Wave, done: int) -> Terms:
    """The terms with minima of no more than the completions that are owed.

    Of pods that come at once it is the completions that this run was begun for: so many of it are `done`. A minimum
    that the Job could never reach is left as it is.
    """
    if wave.at_once and terms.spec.minimum > wave.asked:
        return terms
    owed = wave.owed + (done if wave.at_once else 0)
    if terms.spec.minimum <= owed:
        return terms
    most, spec = max(1, owed), terms.spec
    roles = tuple(replace(role, min_member=min(role.min_member, most)) for role in spec.roles)
    return replace(terms, spec=replace(spec, min_member=min(spec.min_member, most), roles=roles))
