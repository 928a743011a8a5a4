"""A Job whose pods come in waves, because it asks for more completions than it runs pods at a time.

Each pod that succeeds is replaced while the Job owes more completions than it has pods. So of the Job's gang as many
members must be alive as its minimum says, or as completions are owed if these are fewer; those that have succeeded do
not count toward it. A JobSet with such Jobs wants of each of its Jobs as many pods as that runs at a time, or still
owes if these are fewer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.terms import Terms
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import Workload, WorkloadFacts

_JOB = "job"
"""The kind of the Jobs that a series names."""


class Wave(Struct, frozen=True):
    """How many completions are still owed, and whether more pods will be made for them.

    No more than `alive` members need be alive, and of a role no more than `roles` says, if it says anything.
    """

    owed: int
    alive: int
    goes_on: bool
    roles: tuple[tuple[str, int], ...] = ()


def wave_of(
    key: GroupKey, workload: Workload | None, pods: Iterable[Pod], terms: Terms, *, foreign: Foreign
) -> Wave | None:
    """The wave of a gang whose live members belong to this workload, of all its `pods`; None if they come at once.

    A gang with members of other roles, who may belong to something else, has none.
    """
    if workload is None:
        return None
    found = foreign.find(workload.kind, GroupKey(key.namespace, workload.name))
    if found is None or found.uid != workload.uid:
        return None
    theirs = [pod for pod in pods if pod.workload is not None and pod.workload.identity == workload.identity]
    wave = of_workload(found, workload, theirs, foreign=foreign)
    if wave is None:
        return None
    known = {*map(role_of, theirs), *(name for name, _ in wave.roles)}
    return wave if {role.name for role in terms.spec.roles if role.min_member} <= known else None


def of_workload(found: ForeignGroup, workload: Workload, pods: Iterable[Pod], *, foreign: Foreign) -> Wave | None:
    """The wave of a workload with this object, of which `pods` are some; None if its pods come at once.

    It counts a success later than the pod shows it, and when the pod is gone its count alone shows it.
    """
    facts = found.workload
    if facts is None or facts.completions is None:
        return None
    ended = [
        pod
        for pod in pods
        if pod.phase is PodPhase.SUCCEEDED and pod.workload is not None and pod.workload.identity == workload.identity
    ]
    if facts.series and facts.succeeded < facts.completions:
        return _of_jobs(facts, found.key.namespace, ended, foreign)
    owed = max(0, facts.completions - max(facts.succeeded, len(ended)))
    return Wave(owed, alive=owed, goes_on=not facts.idle)


def _of_jobs(facts: WorkloadFacts, namespace: str, ended: Sequence[Pod], foreign: Foreign) -> Wave:
    """The wave of a workload whose Jobs make the pods; `ended` are pods that have succeeded."""
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in ended:
        if pod.owner is not None:
            seen[pod.owner.name][pod.owner.uid] += 1
    owed, roles = 0, []
    for each in facts.series:
        left = []
        for name in each.jobs:
            job = foreign.find(_JOB, GroupKey(namespace, name))
            counted = job.workload.succeeded if job is not None and job.workload is not None else 0
            # A Job that was made again owes all of them again.
            shown = seen[name].total() if job is None else seen[name][job.uid]
            left.append(max(0, each.completions - max(counted, shown)))
        owed += sum(left)
        roles.append((each.role, sum(min(each.pods, number) for number in left)))
    return Wave(owed, alive=sum(number for _, number in roles), goes_on=not facts.idle, roles=tuple(roles))


def lowered_to(terms: Terms, wave: Wave | None) -> Terms:
    """The terms with minima of no more members than need be alive."""
    if wave is None:
        return terms
    most, spec, limits = max(1, wave.alive), terms.spec, dict(wave.roles)
    roles = tuple(
        replace(role, min_member=min(role.min_member, most, limits.get(role.name, most))) for role in spec.roles
    )
    if spec.min_member <= most and roles == spec.roles:
        return terms
    return replace(terms, spec=replace(spec, min_member=min(spec.min_member, most), roles=roles))
