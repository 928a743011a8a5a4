"""What of a gang may leave without the rest, what leaves already, and when nobody knows what will be left of it."""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.core.cluster.claims import BOUND, Claim
from gangsched.core.declarations.minima import leaves
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import preempted, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.declaration import NATIVE, OBJECT
from gangsched.core.objects.pod import member_order
from gangsched.core.planning.search import Slots

_OF_KUBERNETES = OBJECT.format(NATIVE)
"""`Terms.source` of a group that only a PodGroup of Kubernetes declares."""


def is_leaving(claim: Claim, gang: Gang | None) -> bool:
    """Whether the pod, a member of the gang if there is one, leaves its node whatever becomes of a plan."""
    return claim.pod.terminating or (gang is not None and bool(leaving_of([claim], gang)))


def leaving_of(claims: Sequence[Claim], gang: Gang) -> list[Claim]:
    """Those of these members of the gang that leave their nodes whatever becomes of a plan.

    All do once one of them has begun to, or if a former leader has marked the gang.
    """
    doing, parting = gang.operations.rollback, gang.operations.parting
    inherited = gang.operations.preempted_for is None
    if doing is not None and doing.restart is not None and rollback.is_preemption(doing):
        together = doing.restart if inherited or not preempted.is_untouched(gang) else frozenset[str]()
        every = False
    else:
        together, every = frozenset[str](), inherited and preempted.is_awaited(gang) and preempted.is_marked(gang)

    def is_to_leave(uid: str) -> bool:
        asked = uid in gang.roster.leaving or (parting is not None and parting.evictions.is_asked(uid))
        return asked or every or uid in together

    return [claim for claim in claims if claim.pod.terminating or (claim.kind is BOUND and is_to_leave(claim.pod.uid))]


def is_in_flight(gang: Gang, *, marked: bool = False) -> bool:
    """Whether the gang is being bound, rolled back or preempted, so that nobody knows yet what will be left of it.

    It may be `marked` as one that is to leave. What a scheduled gang holds beside its members is given up if it leaves.
    """
    doing = gang.operations
    if doing.rollback is not None or doing.parting is not None or (gang.record.preempted_at and not marked):
        return True
    return any(binding.state is BindState.SENT or not gang.record.scheduled_at for binding in doing.unconfirmed())


def is_held(claim: Claim, gang: Gang) -> bool:
    """Whether this is a reservation of a scheduled gang, for a member whose binding is not on its way."""
    binding = gang.operations.bindings.get(claim.pod.uid) if gang.record.scheduled_at else None
    return claim.kind is not BOUND and binding is not None and binding.state is BindState.HELD


def leave_one_by_one(terms: Terms) -> bool:
    """Whether all members of the group may leave one by one, also those that it needs."""
    return terms.spec.tree is None and terms.source == _OF_KUBERNETES and not terms.spec.preempted_whole


def divided(gang: Gang, terms: Terms, claims: Sequence[Claim]) -> tuple[Sequence[Claim], Sequence[Claim]]:
    """The claims of those that the gang needs, and of members that may leave one by one.

    Those above the minimum may, the last in the order in which members are tried; of a tree, those above the minimum of
    each part that has members, as parts are bound as a whole. Of a native group whose members are preempted one by one
    all may. While the minimum is unknown, all leave together.
    """
    least, tree = gang.record.satisfied, terms.spec.tree
    # Otherwise whoever contradicts his own declaration, or deletes it, would keep his pods from being preempted.
    if gang.plain or not gang.record.scheduled_at or not terms.minimum_known:
        return claims, []
    if leave_one_by_one(terms):
        return [], [*claims]
    if tree is None and not least.roles and len(claims) <= least.total:
        return claims, []
    by_uid, roles = {claim.pod.uid: claim for claim in claims}, dict(least.roles)
    for role, number in leaves(tree) if tree is not None else ():
        roles[role] = max(number, roles.get(role, 0))
    needed = Slots.of(least.total, roles).first_of(sorted((claim.pod for claim in claims), key=member_order))
    kept = [by_uid.pop(pod.uid) for pod in needed]
    return kept, [*by_uid.values()]
