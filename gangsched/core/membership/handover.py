"""Hands a group over to another installation of gangsched, or takes one over (`core.membership.installations`).

When a group passes to another installation, what we decided about it is forgotten: reservations are released, and
nothing more is sent or written. Bound members stay. Bindings in flight are awaited, because they may still take
capacity. A group that becomes ours is restored as after a restart, from the record that the other installation wrote to
the status.
"""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import placeholders
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey


def settle(members: Members, cluster: Cluster, key: GroupKey, *, now: float, synced: bool) -> None:
    """Find out which installation owns this doubted group, and hand it over if that has changed."""
    known = members.installations
    gang = members.gangs.get(key)
    declared = known.group(key) is not None or (gang is not None and gang.observed.group is not None)
    if not (declared or known.beside(key) or (gang is not None and gang.observed.pods)):
        known.forget(key)
        return
    owner = known.owner(key, gang)
    elsewhere = bool(known.whose(key))
    if not known.serves(owner):
        if gang is not None:
            _yield(members, cluster, gang, owner, now)
        else:
            known.belongs(key, owner)
    elif elsewhere:
        _take(members, cluster, key, now=now, synced=synced)


def _yield(members: Members, cluster: Cluster, gang: Gang, owner: str, now: float) -> None:
    known = members.installations
    sent = {uid for uid, binding in gang.operations.bindings.items() if binding.state is BindState.SENT}
    # From here on the group belongs to the other installation, whatever fails.
    known.give_up(
        gang.key, owner, gang.observed.group, [pod for uid, pod in gang.observed.pods.items() if uid not in sent]
    )
    gang.observed.declare(None)
    gang.durability.drop()
    placeholders.release(gang, cluster)
    for uid, pod in [*gang.observed.pods.items()]:
        binding = gang.operations.bindings.get(uid)
        if uid in sent:
            # The result of the binding puts the group in doubt again.
            known.doubt(gang.key)
        elif binding is not None and binding.state is BindState.BOUND and not pod.node:
            # The server has bound it, and the watch lags behind.
            members.pod_seen(replace(pod, node=binding.node, bound_at=now))
        else:
            members.leave(uid, gang.key)
    for uid in [*gang.observed.foreign_pods]:
        members.leave(uid, gang.key)
    gang.allow_reconcile()
    members.dirty.note(gang.key)


def _take(members: Members, cluster: Cluster, key: GroupKey, *, now: float, synced: bool) -> None:
    known = members.installations
    pods = [*known.beside(key).values()]
    group = known.take(key)
    if group is not None:
        members.group_seen(group, now=now, synced=False)
    for pod in pods:
        members.pod_seen(cluster.pods.get(pod.uid, pod))
    if synced and key in members.gangs:
        members.resume(members.gangs[key], now)
