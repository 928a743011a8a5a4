"""What tells of a gang beside the object that declares it: its members, and native groups that a controller has added.

In roles whose members are created only once others are ready, a member is a better pattern for those to come than the
template of its controller's object: the API server has given it defaults that the template leaves out. And where a
controller does not scale what it has made, its object says how large a gang will be that is made now. So it counts
until members exist that tell of how many theirs was made.

Kubernetes' Job controller adds a native group to its pods unasked, with the feature gate WorkloadWithJob
(pkg/controller/job/job_scheduling_manager.go). In 1.37 it copies the Job's `spec.scheduling` to the group; in 1.36 the
group says no more than the Job does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import NATIVE, Declaration, GroupKey, Role
from gangsched.core.objects.pod import Owner, Pod, by_age, role_of
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.shape import PodTerm, Requirement, Shape
from gangsched.core.objects.workload import Added


def derived(spec: GroupSpec, members: Sequence[Pod]) -> GroupSpec:
    """The spec with its derived templates; the oldest member of a role, if any, provides the role's template.

    A pod that the API server has admitted has defaults that its controller's template leaves out.
    """
    if not any(role.derived for role in spec.roles):
        return spec
    first: dict[str, Pod] = {}
    for pod in sorted(members, key=by_age):
        first.setdefault(role_of(pod), pod)
    return replace(spec, roles=tuple(_like(role, first) for role in spec.roles))


def _like(role: Role, first: Mapping[str, Pod]) -> Role:
    """The role with the template that its first member gives, or else, if it has to be beside one, that member."""
    pod = first.get(role.name)
    if pod is None or not role.derived:
        if role.led or role.beside is not None:
            return replace(role, template=_beside(role, first))
        return role
    return replace(role, template=replace(pod.shape, unsupported=()), labels=pod.labels, soft=pod.soft)


def _beside(role: Role, first: Mapping[str, Pod]) -> Shape | None:
    """The template of a role whose members have to be in the domain of a member of another role; None without it."""
    beside = role.beside
    leader = first.get(beside.role) if beside is not None else None
    if beside is None or leader is None or role.template is None or beside.label not in dict(leader.labels):
        return None
    mine = Requirement(beside.label, "In", (dict(leader.labels)[beside.label],))
    term = PodTerm(beside.topology, (mine,), (leader.namespace,))
    return replace(role.template, affinity=(*role.template.affinity, term))


def as_made(group: ForeignGroup, says: Sequence[Declaration]) -> ForeignGroup:
    """The object with a spec for as many members as its controller has made, according to their declarations.

    A minimum that was chosen counts if it is not larger. Members to come are those that are left of this number.
    """
    made = max((say.made_with for say in says if say.made_with is not None), default=None)
    spec, facts = group.spec, group.workload
    if made is None or spec is None or facts is None:
        return group
    least = made if facts.least is None else min(facts.least, made)
    more = least - spec.min_member
    if not more:
        return group

    def resized(role: Role) -> Role:
        return role if role.template is None else replace(role, min_member=max(0, role.min_member + more))

    return replace(group, spec=replace(spec, min_member=least, roles=tuple(map(resized, spec.roles))))


def is_users(added: Added, owner: Owner | None, namespace: str, foreign: Foreign) -> bool:
    """Whether the user has chosen this native group, or may have: nothing shows that the Job controller added it.

    Other controllers (KubeRay, LeaderWorkerSet, JobSet) write native groups only where their users ask for it. The
    object is asked even while such objects cannot be read, because its controller never changes. Until it has been
    seen, the pods decide, which are owned by the group that the Job controller makes.
    """
    native = foreign.known(NATIVE, GroupKey(namespace, added.declaration.group))
    if native is None:
        return not added.certain
    return bool(native.parent) or owner is None or owner.kind != "Job" or native.made_for != owner.uid


def completed(spec: GroupSpec, key: GroupKey, says: Sequence[Declaration], foreign: Foreign) -> GroupSpec:
    """The spec of a Job's automatic gang with what the Job states in the group that its controller has added.

    A policy `basic` states no minimum, and a minimum by annotation takes precedence. The group of one Job says nothing
    about a gang of several, such as a JobSet's.
    """
    say = next((say for say in says if say.passed_over and say.object_name), None)
    if say is None:
        return spec
    native = foreign.find(NATIVE, GroupKey(key.namespace, say.passed_over))
    if native is None or native.spec is None or not native.made_for:
        return spec
    named = [foreign.find(kind, GroupKey(key.namespace, say.object_name)) for kind in say.objects]
    job = next((job for job in named if job is not None and job.uid == native.made_for), None)
    if job is None:
        return spec
    stated = native.spec
    annotated = job.workload is not None and job.workload.least is not None
    counts = stated.max_schedule_time_s is None and not annotated
    return replace(
        spec,
        min_member=min(spec.min_member, stated.min_member) if counts else spec.min_member,
        topology=spec.topology or stated.topology,
        priority=stated.priority if spec.priority is None else spec.priority,
        priority_class=spec.priority_class or stated.priority_class,
        preempted_whole=stated.preempted_whole,
        preempts=stated.preempts,
        not_built=(*spec.not_built, *stated.not_built),
    )
