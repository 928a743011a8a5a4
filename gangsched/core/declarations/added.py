"""Native groups that a workload's controller has added to its pods unasked, and what the workload states in them.

Kubernetes' Job controller does so with the feature gate WorkloadWithJob (pkg/controller/job/job_scheduling_manager.go).
In 1.37 it copies the Job's `spec.scheduling` to the group; in 1.36 the group says no more than the Job does.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.objects.declaration import NATIVE, Declaration, GroupKey
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.workload import Added


def is_users(added: Added, owner: Owner | None, namespace: str, foreign: Foreign) -> bool:
    """Whether the user has chosen this native group, or may have: nothing shows that the Job controller added it.

    Other controllers (KubeRay, LeaderWorkerSet, JobSet) write native groups only where their users ask for it. The
    object is asked even while such objects cannot be read, because its controller never changes. Until it has been
    seen, the pods decide, which are owned by the group that the Job controller makes.
    """
    found = foreign.known(NATIVE, GroupKey(namespace, added.declaration.group))
    if found is None:
        return not added.certain
    return bool(found.parent) or owner is None or owner.kind != "Job" or found.made_for != owner.uid


def completed(spec: GroupSpec, key: GroupKey, says: Sequence[Declaration], foreign: Foreign) -> GroupSpec:
    """The spec of a Job's automatic gang with what the Job states in the group that its controller has added.

    A policy `basic` states no minimum, and a minimum by annotation takes precedence. The group of one Job says nothing
    about a gang of several, such as a JobSet's.
    """
    say = next((say for say in says if say.passed_over and say.object_name), None)
    if say is None:
        return spec
    found = foreign.find(NATIVE, GroupKey(key.namespace, say.passed_over))
    if found is None or found.spec is None or not found.made_for:
        return spec
    named = [foreign.find(kind, GroupKey(key.namespace, say.object_name)) for kind in say.objects]
    job = next((each for each in named if each is not None and each.uid == found.made_for), None)
    if job is None:
        return spec
    stated = found.spec
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
