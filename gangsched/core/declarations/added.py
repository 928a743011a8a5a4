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
from gangsched.core.objects.workload import Added, Workload


def is_users(added: Added, owner: Owner | None, workload: Workload, namespace: str, foreign: Foreign) -> bool:
    """Whether the user has chosen this native group, or may have: nothing shows that the pod's controller added it.

    Its object is asked even while such objects cannot be read, because its controller never changes. Until it has been
    seen, the pods decide, which are owned by the group that the Job controller makes.
    """
    found = foreign.known(NATIVE, GroupKey(namespace, added.declaration.group))
    if found is None:
        return not added.certain
    makers = {owner.uid if owner is not None else "", workload.uid} - {""}
    return found.made_for not in makers


def completed(spec: GroupSpec, key: GroupKey, says: Sequence[Declaration], foreign: Foreign) -> GroupSpec:
    """The spec of an automatic gang with what its workload states in the group that its controller has added.

    A policy `basic` states no minimum.
    """
    name = next((say.passed_over for say in says if say.passed_over and say.object_name), "")
    found = foreign.find(NATIVE, GroupKey(key.namespace, name)) if name else None
    if found is None or found.spec is None:
        return spec
    stated = found.spec
    gang = stated.max_schedule_time_s is None
    return replace(
        spec,
        min_member=min(spec.min_member, stated.min_member) if gang else spec.min_member,
        topology=spec.topology or stated.topology,
        priority=stated.priority if spec.priority is None else spec.priority,
        priority_class=spec.priority_class or stated.priority_class,
        not_built=(*spec.not_built, *stated.not_built),
    )
