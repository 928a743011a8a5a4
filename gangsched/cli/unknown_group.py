"""Whether a group of some name exists, as far as the caller may see it, and the sentence if it does not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gangsched.cli.group_reader import Reading
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import ForeignGroupsReplaced, GroupsReplaced, PodsReplaced
from gangsched.core.objects.pod import Pod


def is_there(key: GroupKey, reading: Reading, ours: Collection[str]) -> bool:
    """Whether an object declares the group, or a pod of the schedulers `ours` has or names this name."""
    for event in reading.events:
        match event:
            case GroupsReplaced(groups) | ForeignGroupsReplaced(_, groups):
                if any(group.key[:2] == key[:2] for group in groups):
                    return True
            case PodsReplaced(pods):
                own = (pod for pod in pods if pod.namespace == key.namespace and pod.scheduler in ours)
                if any(key.name in _names_of(pod) for pod in own):
                    return True
    return False


def _names_of(pod: Pod) -> Sequence[str]:
    group = pod.declaration.group if pod.declaration is not None else ""
    return (pod.name, group, pod.workload.name if pod.workload is not None else "")


def why_unknown(key: GroupKey, reading: Reading, ours: Sequence[str]) -> str:
    """The sentence that there is no such group, with what could not be seen; `ours` are the schedulerNames asked."""
    if reading.forbidden:
        return (
            f"there is no PodGroup {key}, and gangsched cannot see whether pods declare such a group, because the API "
            f"server says: {reading.forbidden}"
        )
    pod = reading.pod_of(key)
    if pod is not None and pod.scheduler not in ours:
        return (
            f"the pod {pod.name} of namespace {pod.namespace} has the schedulerName {pod.scheduler}, not "
            f"{' or '.join(ours)}: create it again with spec.schedulerName: {ours[0]}, or name its scheduler with "
            "--scheduler-name"
        )
    return (
        f"there is no PodGroup {key}, and no waiting pod of gangsched names it or has that name: check the name with "
        f"kubectl get podgroups.gangsched.io -n {key.namespace}"
    )
