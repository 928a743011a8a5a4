"""Drops the gang of a group that now belongs to another installation, and makes one where a group becomes ours.

Which installation owns a group is decided in `core.declarations.installation`. When a group passes to another one, what
we decided about it is forgotten: reservations are released, and nothing more is sent or written. Bound members stay.
Bindings in flight keep their places until their results arrive. A group that becomes ours starts as after a restart,
from the record that the other installation wrote to the status.
"""

from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.mail import Entered
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey


def settle(members: Members, cluster: Cluster, key: GroupKey) -> None:
    """Find out which installation owns this doubted group, and drop or make its gang if that has changed."""
    known = members.installations
    gang = members.gangs.get(key)
    declared = known.group(key) is not None or (gang is not None and gang.observed.group is not None)
    if not (declared or known.beside(key) or (gang is not None and gang.observed.pods)):
        known.forget(key)
        return
    owner = known.owner(key, gang)
    if not known.serves(owner):
        if gang is not None:
            members.give_up(gang, owner)
        else:
            known.belongs(key, owner)
    elif known.whose(key):
        _make(members, cluster, key)


def _make(members: Members, cluster: Cluster, key: GroupKey) -> None:
    known = members.installations
    pods = [*known.beside(key).values()]
    group = known.take(key)
    if group is not None:
        members.group_seen(group)
    for pod in pods:
        members.pod_seen(cluster.pods.get(pod.uid, pod))
    if key in members.gangs:
        members.tell(members.gangs[key], Entered())
