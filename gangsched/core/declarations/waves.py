"""What a Job still owes: its gang needs no more members than that.

A Job's pods come in waves if it asks for more completions than it runs pods at a time: each pod that succeeds is
replaced while the Job owes more completions than it has pods. So the Job's gang needs as many live members as its
minimum, or as the completions still owed if those are fewer; members that have succeeded do not count towards it. A
JobSet wants, for each of its Jobs, as many pods as the Job runs at a time, or still owes if that is less. Where all
pods come at once, pods that succeeded in an earlier run, for example before a suspension, are not created again. An
index that has failed for good (`backoffLimitPerIndex`) is owed by nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.minima import capped
from gangsched.core.declarations.terms import Terms
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import SERIES_OF, Workload, WorkloadFacts


class Wave(Struct, frozen=True):
    """How many completions are still owed, and whether more pods will be created for them: up to `size` at a time.

    At most `alive` members need be alive, and of a role at most the number in `roles`, if the role is listed.
    `at_once`: the pods do not come in waves. `given_up`: completions have failed for good, so that the workload cannot
    succeed unless a policy of its own says so.
    """

    owed: int
    size: int
    alive: int
    goes_on: bool
    at_once: bool = False
    given_up: bool = False
    roles: tuple[tuple[str, int], ...] = ()


def wave_of(
    key: GroupKey, workload: Workload | None, pods: Iterable[Pod], terms: Terms, *, foreign: Foreign
) -> Wave | None:
    """What a gang with live members of this workload owes, given all its `pods`; None if that is not known.

    A gang with members of other roles, which may belong to something else, has no wave.
    """
    if workload is None:
        return None
    group = foreign.find(workload.kind, GroupKey(key.namespace, workload.name))
    if group is None or group.uid != workload.uid:
        return None
    theirs = pods_of(workload, pods)
    wave = owed_by(group, theirs, foreign=foreign)
    if wave is None:
        return None
    known = {*map(role_of, theirs), *(name for name, _ in wave.roles)}
    return wave if {role.name for role in terms.spec.roles if role.min_member} <= known else None


def pods_of(workload: Workload, pods: Iterable[Pod]) -> list[Pod]:
    """Those of the pods that the workload created."""
    return [pod for pod in pods if pod.workload is not None and pod.workload.identity == workload.identity]


def owed_by(group: ForeignGroup, theirs: Sequence[Pod], *, foreign: Foreign) -> Wave | None:
    """What a workload with this object and these pods owes; None if it does not say how many completions it asks for.

    The object counts a success later than the pod shows it, and once the pod is gone only the object's count shows it.
    """
    facts = group.workload
    if facts is None or facts.completions is None:
        return None
    if facts.series and facts.succeeded < facts.completions:
        return _of_jobs(facts, group.key.namespace, theirs, foreign)
    ended = sum(pod.phase is PodPhase.SUCCEEDED for pod in theirs)
    owed = max(0, facts.completions - facts.given_up - max(facts.succeeded, ended))
    given_up = bool(facts.given_up)
    return Wave(owed, facts.size, alive=owed, goes_on=not facts.idle, at_once=not facts.in_waves, given_up=given_up)


def _of_jobs(facts: WorkloadFacts, namespace: str, pods: Sequence[Pod], foreign: Foreign) -> Wave | None:
    """What a workload owes whose Jobs create these pods; None if that is all that it asks for, and pods come at once.

    A Job that was created again owes all of its completions again.
    """
    ended = Counter(pod.owner.uid for pod in pods if pod.owner is not None and pod.phase is PodPhase.SUCCEEDED)
    jobs = {name: foreign.find(SERIES_OF, GroupKey(namespace, name)) for series in facts.series for name in series.jobs}
    if not facts.in_waves and not ended and not any(map(_has_settled, jobs.values())):
        return None
    makers = _makers(
        pods, {name: job.uid for name, job in jobs.items() if job is not None}, seen=foreign.sees(SERIES_OF)
    )
    owed, given_up, roles = 0, 0, []
    for series in facts.series:
        left = []
        for name in series.jobs:
            job, uid = jobs[name], makers.get(name, "")
            says = job.workload if job is not None and job.uid == uid else None
            counted, failed = (says.succeeded, says.given_up) if says is not None else (0, 0)
            given_up += failed
            left.append(max(0, series.completions - failed - max(counted, ended[uid])))
        owed += sum(left)
        roles.append((series.role, sum(min(series.pods, number) for number in left)))
    alive = sum(number for _, number in roles)
    return Wave(
        owed,
        facts.size,
        alive=alive,
        goes_on=not facts.idle,
        at_once=not facts.in_waves,
        given_up=bool(given_up),
        roles=tuple(roles),
    )


def _has_settled(job: ForeignGroup | None) -> bool:
    """Whether completions of the Job have succeeded or failed for good."""
    return job is not None and job.workload is not None and bool(job.workload.succeeded or job.workload.given_up)


def _makers(pods: Sequence[Pod], jobs: Mapping[str, str], *, seen: bool) -> dict[str, str]:
    """UIDs of the Jobs that create pods now, by name, without Jobs of which only earlier generations are known.

    `jobs` are the Jobs as their watch shows them (`seen`), which may lag behind that of the pods. If a live pod belongs
    to another generation of its Job, so do all pods that the workload creates from now on.
    """
    in_order = [pod for pod in sorted(pods, key=lambda pod: pod.created) if pod.owner is not None]
    live = {pod.owner.name: pod.owner.uid for pod in in_order if pod.owner and not (pod.terminal or pod.terminating)}
    if any(jobs.get(name, uid) != uid for name, uid in live.items()):
        return live
    known = jobs if seen else {pod.owner.name: pod.owner.uid for pod in in_order if pod.owner}
    return {**known, **live}


def lowered_to(terms: Terms, wave: Wave, done: Counter[str]) -> Terms:
    """The terms with minima no larger than the number of members that need be alive.

    For pods that come at once, that number includes the members that are `done` and count towards the minimum, by role,
    because they are among the completions that this run began for. A minimum that the workload alone could never reach
    stays as it is: it waits for members of other workloads.
    """
    if terms.spec.minimum > wave.size:
        return terms
    counted = done if wave.at_once else Counter[str]()
    most = max(1, wave.alive + counted.total())
    spec, limits = terms.spec, {role: number + counted[role] for role, number in wave.roles}
    roles = tuple(
        replace(role, min_member=min(role.min_member, most, limits.get(role.name, most))) for role in spec.roles
    )
    if spec.min_member <= most and roles == spec.roles:
        return terms
    tree = spec.tree and capped(spec.tree, {role.name: role.min_member for role in roles})
    return replace(terms, spec=replace(spec, min_member=min(spec.min_member, most), roles=roles, tree=tree))
