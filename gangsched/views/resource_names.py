"""What a group is as an object: the kind of the object that declares it, as kubectl writes it."""

from __future__ import annotations

from gangsched.api.podgroup_names import GROUP
from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.declaration import NATIVE, OBJECT, OWN_DIALECT, TREE, GroupKey

OWN = f"podgroup.{GROUP}"
"""PodGroups of gangsched itself."""
GANG = f"gang.{GROUP}"
"""A group that no PodGroup declares, such as that of a Job's pods: it is no object that kubectl could get.

Like every kind that is not Kubernetes' own it has its API group in it: `gang/NAME` would be read as NAMESPACE/NAME.
"""
POD = "pod"
"""A pod without a group."""
_POD_GROUPS = {
    OBJECT.format(OWN_DIALECT): OWN,
    **{
        OBJECT.format(row.name): f"podgroup.{resource.group}"
        for row in DIALECTS.values()
        for resource in row.resources
        if resource.plural == "podgroups"
    },
    TREE: f"compositepodgroup.{DIALECTS[NATIVE].resources[0].group}",
}


def resource_of(key: GroupKey, source: str) -> str:
    """The kind of the group with this key: that of its PodGroup, of whatever system, if it has one.

    `source` says how it was declared, as in a PodGroup's status.
    """
    return POD if key.pod_uid else _POD_GROUPS.get(source.partition(", ")[0], GANG)
