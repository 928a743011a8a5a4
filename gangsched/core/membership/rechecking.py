"""Rechecks reservations and bindings on nodes whose capacity or requirements have become worse."""

from __future__ import annotations

from collections.abc import Callable

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify

Contain = Callable[[GroupKey, Exception], object]
"""Parks a gang whose logic has failed."""
TakeIn = Callable[[GroupKey], object]
"""Applies to a gang what was stored about it."""
Reserved = tuple[Gang, Binding]
"""A binding that is not confirmed yet, with its gang."""


_NODE = 150
"""Cost of looking for bindings on a node, in units of the budget, on top of the pods that count there."""
_BINDING = 4000
"""Cost of rechecking one binding."""
_PART = 8
"""The part of a call's budget after which the remaining nodes wait for the next call."""


def recheck_worsened(
    cluster: Cluster, members: Members, take_in: TakeIn, contain: Contain, budget: Budget
) -> list[Effect]:
    """Give up reservations that no longer fit, withdraw bindings that are not sent yet, and mark their gangs dirty.

    All nodes of a call are rechecked on one snapshot; those that the budget does not reach stay in `cluster.worsened`.
    """
    stale: list[Reserved] = []
    doubted: list[Reserved] = []
    end = budget.spent + units.CALL // _PART
    while budget.spent < end and (node := cluster.take_worsened()) is not None:
        uids = sorted(cluster.on_node.get(node, ()))
        for gang in map(members.gang_of, uids):
            if gang is not None and gang.inbox:
                take_in(gang.key)
        budget.charge(_NODE + units.MATCH * len(uids))
        bound = [
            (gang, gang.operations.bindings[uid])
            for uid, gang in ((uid, members.gang_of(uid)) for uid in uids)
            # A pod that shows its node is there, whatever was decided about it before.
            if gang is not None and uid in gang.operations.bindings and not cluster.pods[uid].node
        ]
        unconfirmed = [(gang, binding) for gang, binding in bound if binding.state is not BindState.BOUND]
        budget.charge(_BINDING * len(unconfirmed))
        (doubted if node in cluster.nodes else stale).extend(unconfirmed)
    if doubted:
        budget.charge(units.CLASS + len(cluster.nodes))
        stale += _without_room(doubted, cluster, contain)
    effects: list[Effect] = []
    for gang, binding in stale:
        members.dirty.note(gang.key)
        try:
            effects += bindings.let_go(gang, cluster, binding)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            contain(gang.key, error)
    return effects


def _without_room(unconfirmed: list[Reserved], cluster: Cluster, contain: Contain) -> list[Reserved]:
    """Which of the unconfirmed bindings to nodes that have become worse no longer fit there.

    Another scheduler's pod came first, or the node has changed: the plan is stale, not wrong. Sent bindings are tried
    before held ones, because they may still take effect, and their pods count even if they no longer fit.
    """
    snapshot, rows = Snapshot(cluster), cluster.capacity.rows
    snapshot.leave((cluster.ledger.claims[binding.pod.uid] for _, binding in unconfirmed), keep_devices=True)
    stale: list[Reserved] = []
    failed: dict[GroupKey, Exception] = {}
    for gang, binding in unconfirmed:
        # What they ask about other pods is asked before any of them is placed again.
        try:
            classify(snapshot, [binding.pod])
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            failed[gang.key] = error
    for sent in (True, False):
        left = [pair for pair in unconfirmed if (pair[1].state is BindState.SENT) is sent and pair[0].key not in failed]
        tried = 0
        while len(left) != tried:
            # A pod whose affinity requires another of these pods fits once that one is placed.
            trying, left, tried = left, [], len(left)
            for gang, binding in trying:
                row = rows[binding.node]
                try:
                    member = classify(snapshot, [binding.pod])[binding.pod.uid]
                    if snapshot.fits(member, row):
                        snapshot.take(row, member, 1)
                    else:
                        left.append((gang, binding))
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    failed[gang.key] = error
        for _, binding in left if sent else ():
            snapshot.take(rows[binding.node], classify(snapshot, [binding.pod])[binding.pod.uid], 1)
        stale += left
    for key, raised in failed.items():
        contain(key, raised)
    return [(gang, binding) for gang, binding in stale if gang.key not in failed]
