"""Whether places that were decided are still good on nodes that have become worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.membership import Members
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.planning.placement import classify
from gangsched.core.planning.snapshot import Snapshot

Contain = Callable[[GroupKey, Exception], object]
"""Told of a gang whose logic has failed."""


def recheck_worsened(cluster: Cluster, members: Members, contain: Contain) -> list[Effect]:
    """Give up the places that are good no more, or withdraw what waits to be sent there; their gangs are looked at."""
    effects: list[Effect] = []
    for node in sorted(cluster.take_worsened()):
        mine = []
        for uid in sorted(cluster.on_node.get(node, ())):
            gang = members.gang_of(uid)
            binding = gang.bindings.get(uid) if gang is not None else None
            if gang is not None and binding is not None and binding.state is not BindState.BOUND:
                mine.append((gang, binding))
        for gang, binding in recheck(mine, cluster, node, contain):
            members.dirty.note(gang.key)
            effects += bindings.let_go(gang, cluster, binding)
    return effects


def recheck(
    mine: Sequence[tuple[Gang, Binding]], cluster: Cluster, node: str, contain: Contain
) -> list[tuple[Gang, Binding]]:
    """Which places on a node that has become worse are no longer good: it has no room for them, or is gone.

    Somebody else's pod came first, or the node has changed: the plan is stale, not wrong. What has been sent may still
    arrive, so it goes before what is held, and its share counts though it is no longer good. `mine` are all bindings to
    the node that have not been confirmed.
    """
    row = cluster.capacity.rows.get(node)
    if row is None or not mine:
        return list(mine)
    for _, binding in mine:
        cluster.forget(binding.pod.uid)
    snapshot = Snapshot(cluster)
    stale = []
    failed: dict[GroupKey, Exception] = {}
    for gang, binding in sorted(mine, key=lambda each: each[1].state is not BindState.SENT):
        try:
            member = classify(snapshot, [binding.pod])[binding.pod.uid]
            good = snapshot.fits(member, row)
            if good or binding.state is BindState.SENT:
                snapshot.take(row, member, 1)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            failed[gang.key] = error
        else:
            if not good:
                stale.append((gang, binding))
        cluster.assume(binding.pod.uid, node)
    for key, raised in failed.items():
        contain(key, raised)
    return [(gang, binding) for gang, binding in stale if gang.key not in failed]
