"""Reservations for members that do not exist yet, with the shape of their role's template (contract rules 11 and 12).

Such a reservation is the binding of a placeholder, a pod without a name. It counts on its node like any other, is
written to the PodGroup's status before anything is bound beside it, and waits. A member of the role takes the
reservation as soon as the member exists, before anything is planned. A member that fits none of them is placed
elsewhere, and one of them is given up in exchange. Reservations that no member has taken are given up when
maxScheduleTime has passed or no member is alive any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count, islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.minima import Need, chosen, lowered, minima, missing_of
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, clock, rollback
from gangsched.core.gang.gang import Gang, take_census
from gangsched.core.gang.wants import quorum_need, raised, roles_of
from gangsched.core.gang.writes import Binding
from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.effects import EmitEvent
from gangsched.core.objects.pod import Pod, member_order, role_of
from gangsched.core.objects.podgroup import GroupSpec, OnDegraded, TimeoutPolicy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.status import Place
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify

if TYPE_CHECKING:
    from gangsched.core.gang.turn import Turn

_PREFIX = "place/"


def is_one(uid: str) -> bool:
    """Whether this is the UID of such a placeholder, and not of one for a lost member (`core.membership.restarts`)."""
    return uid.startswith(_PREFIX)


def to_come(gang: Gang, need: Need, present: Sequence[Pod], terms: Terms) -> list[Pod]:
    """A placeholder for each member that is missing beside the `present` ones.

    There are none for roles without a template, for a gang that has stopped waiting, and for a gang that would not
    repair.
    """
    record = gang.record
    if record.placeholders_expired or record.outcome is Outcome.OUT_OF_TIME:
        return []
    grows = terms.sequential and raised(gang, terms.spec)
    if record.scheduled_at and (
        terms.spec.on_degraded is not OnDegraded.REPAIR or not (gang.operations.short_since or grows)
    ):
        return []
    lacks = missing(need, present, terms.spec)
    return [
        pod
        for role in terms.spec.roles
        if role.template is not None
        for pod in _placeholders(gang, role, role.template, lacks[role.name])
    ]


def again(gang: Gang, spec: GroupSpec | None, place: Place, number: int) -> list[Pod]:
    """Up to `number` placeholders, by the current spec, for a reservation that a former leader wrote to the status."""
    role = next((role for role in spec.roles if role.name == place.role), None) if spec is not None else None
    if role is None or role.template is None:
        return []
    return _placeholders(gang, role, replace(role.template, requests=place.requests), number)


def missing(need: Need, present: Sequence[Pod], spec: GroupSpec) -> Counter[str]:
    """Number of members, by role with a template, that are missing beside the `present` ones.

    If only one role has a template, it also gets what minMember asks for beyond the roles' minima.
    """
    templates = {role.name: role for role in spec.roles if role.template is not None}
    if not templates:
        return Counter()
    have = Counter(map(role_of, present))
    lacks = Counter({name: max(0, need.roles.get(name, 0) - have[name]) for name in templates})
    more = need.total - len(present) - lacks.total()
    role, *others = templates.values()
    if more > 0 and not (others or role.derived):
        most = more if role.max_member is None else role.max_member - have[role.name] - lacks[role.name]
        lacks[role.name] += max(0, min(more, most))
    return lacks


def settle(gang: Gang, cluster: Cluster, terms: Terms) -> list[EmitEvent]:
    """Let members take the reservations of their role, and give up reservations that no member will take any more."""
    held = gang.operations.placeholders()
    if not held:
        gang.operations.mismatched.clear()
        return []
    gang.operations.mismatched &= gang.observed.pods.keys()
    # It is unknown what contradicting declarations ask for: keep the reservations, which expire as always.
    asked_for = gang.operations.contradicted or any(role.template for role in terms.spec.roles)
    if gang.deserted() or not asked_for:
        release(gang, cluster)
        return []
    evicts = rollback.under_way(gang) is not None
    effects = _take(gang, cluster, held) if terms.hindrance is None and not evicts else []
    if not gang.operations.contradicted:
        _give_up_surplus(gang, cluster, terms)
    return effects


def release(gang: Gang, cluster: Cluster) -> None:
    """Give up all reservations for members that do not exist."""
    for binding in gang.operations.placeholders():
        bindings.release(gang, cluster, binding.pod.uid)


def concern(turn: Turn) -> bool:
    """Whether the gang has had reservations for members to come, or a clock runs for them."""
    record, made = turn.gang.record, turn.gang.operations.placeholders_made
    return bool(made or record.held_since or (record.scheduled_at and record.clock_start))


def are_none_held(turn: Turn) -> bool:
    """Whether no place is held any more, and that is not recorded."""
    record = turn.gang.record
    noted = record.held_since or (record.scheduled_at and record.clock_start)
    return bool(noted) and not turn.census.held


def note_none_held(turn: Turn) -> None:
    """The clock of a scheduled gang ran for them."""
    record = turn.gang.record
    turn.gang.change(held_since=0.0, clock_start=0.0 if record.scheduled_at else record.clock_start)


def are_held(turn: Turn) -> bool:
    """Whether the first place is held, and that is not recorded."""
    return not turn.gang.record.held_since and bool(turn.census.held)


def note_held(turn: Turn) -> None:
    """Record since when places are held."""
    turn.gang.change(held_since=turn.now)


def have_expired(turn: Turn) -> bool:
    """Whether the reservations beside bound members have expired."""
    begun = turn.census.held and (turn.gang.record.scheduled_at or turn.census.bound)
    return bool(begun) and turn.now >= expires(turn.gang, turn.terms)


def give_up_expired(turn: Turn) -> None:
    """From now on only existing members count. Under Retry the gang is degraded until the rest is bound.

    Under Fail it has failed.
    """
    wait_no_longer(turn.gang, turn.terms.spec, turn.now)
    release(turn.gang, turn.cluster)


def wait_no_longer(gang: Gang, spec: GroupSpec, now: float) -> None:
    """Stop waiting, beside bound members, for members that do not exist."""
    record = gang.record
    timeouts = record.timeouts + (record.late or not record.scheduled_at)
    gang.change(placeholders_expired=True, timeouts=timeouts, clock_start=0.0)
    if record.scheduled_at:
        return
    gang.drop_quorum()
    gang.roster.inherit_only()
    if spec.timeout_policy is TimeoutPolicy.FAIL:
        clock.fail(gang, timeouts, settled_at=now)
        return
    decided = record.quorum if gang.operations.contradicted else None
    satisfied = decided or chosen(minima(spec), Counter(map(role_of, gang.bound())))
    gang.change(late=True, scheduled_at=now, satisfied=satisfied)


def expires(gang: Gang, terms: Terms) -> float:
    """When reservations that no member has taken are given up, in epoch seconds; infinity if there are none.

    If a controller creates members only once others are ready, only a cap gives up their reservations.
    """
    if not (gang.record.clock_start and gang.operations.placeholders()) or terms.sequential:
        return clock.NEVER
    return gang.record.clock_start + terms.max_schedule_time_s


def held_until(gang: Gang, terms: Terms) -> float:
    """When a cap gives up such reservations (`core.gang.caps`), in epoch seconds; infinity if there are none.

    If they expire first, only the expiry ends them; it may be delayed until a binding has its result.
    """
    return (
        gang.record.held_since + terms.max_hold_s
        if gang.record.held_since and gang.operations.placeholders()
        else clock.NEVER
    )


def settled(gang: Gang, pod: Pod) -> None:
    """Note that the member has been placed elsewhere."""
    gang.operations.mismatched.discard(pod.uid)


def moving(gang: Gang, waiting: Sequence[Pod]) -> list[Pod]:
    """Waiting members that fit no reservation of their role; at most as many as there are reservations."""
    left = roles_of(gang.operations.placeholders())
    misfits = []
    for pod in waiting:
        if pod.uid in gang.operations.mismatched and left[role_of(pod)] > 0:
            left[role_of(pod)] -= 1
            misfits.append(pod)
    return misfits


def _placeholders(gang: Gang, role: Role, shape: Shape, number: int) -> list[Pod]:
    """The first `number` placeholders whose UIDs have no reservation: the same ones until they are reserved."""
    uids = (f"{_PREFIX}{gang.key}/{role.name}/{at}" for at in count())
    declaration = Declaration(group=gang.key.name, role=role.name)
    return [
        Pod(
            uid,
            gang.key.namespace,
            "",
            shape,
            created=0.0,
            scheduler="",
            declaration=declaration,
            labels=role.labels,
            soft=role.soft,
        )
        for uid in islice((uid for uid in uids if uid not in gang.operations.bindings), number)
    ]


def _take(gang: Gang, cluster: Cluster, held: Sequence[Binding]) -> list[EmitEvent]:
    by_role: dict[str, list[Binding]] = {}
    for binding in held:
        by_role.setdefault(role_of(binding.pod), []).append(binding)
    waiting = [
        pod
        for pod in gang.live()
        if not pod.node and pod.uid not in gang.operations.bindings and gang.operations.may_try(pod)
    ]
    if not waiting:
        return []
    effects: list[EmitEvent] = []
    snapshot = Snapshot(cluster)
    for pod in sorted(waiting, key=member_order):
        places = by_role.get(role_of(pod), [])
        if not places:
            continue
        taken = _fitting(snapshot, pod, places)
        if taken is not None:
            places.remove(taken)
            _hand_over(gang, cluster, taken, pod)
            snapshot.settle()
        elif pod.uid not in gang.operations.mismatched:
            gang.operations.mismatched.add(pod.uid)
            gang.wait.try_again()
            note = (
                f"The pod fits none of the reservations for the role {role_of(pod)} of group {gang.key.name}, so it is "
                "placed elsewhere: make the role's template request what its pods request."
            )
            about = ("Pod", pod.namespace, pod.name, pod.uid)
            effects.append(EmitEvent(*about, "Warning", Reason.TEMPLATE_MISMATCH, "Scheduling", note))
    return effects


def _fitting(snapshot: Snapshot, pod: Pod, places: Sequence[Binding]) -> Binding | None:
    """The first reservation that can be replaced by the pod on its node; the swap is made on the snapshot."""
    member = classify(snapshot, [pod])[pod.uid]
    tried = set()
    for place in places:
        row = snapshot.cluster.capacity.rows.get(place.node)
        if row is None or place.node in tried:
            continue
        tried.add(place.node)
        mark = snapshot.mark()
        snapshot.leave([snapshot.cluster.ledger.claims[place.pod.uid]])
        if snapshot.fits(member, row):
            snapshot.take(row, member, 1)
            return place
        snapshot.undo(mark)
    return None


def _hand_over(gang: Gang, cluster: Cluster, place: Binding, pod: Pod) -> None:
    """Give the reservation to the member; it stays durable if it was."""
    gang.durability.hand_over(place.pod.uid, pod.uid)
    bindings.release(gang, cluster, place.pod.uid)
    bindings.begin(gang, cluster, [(pod, place.node)], held=True)
    gang.operations.mismatched.discard(pod.uid)
    gang.wait.member_has_place(pod.uid)
    gang.roster.choose([pod.uid])


def _give_up_surplus(gang: Gang, cluster: Cluster, terms: Terms) -> None:
    """Give up reservations beyond what is missing beside members with a node: the minimum may have been lowered."""
    census = take_census(gang, gang.live())
    if gang.record.scheduled_at:
        grows = terms.sequential and not gang.operations.short_since
        least = minima(terms.spec) if grows else lowered(gang.record.satisfied, terms.spec)
        owed = missing_of(least, census.kept)
    else:
        owed = quorum_need(gang, census, terms)
    left = missing(owed, [binding.pod for binding in census.begun if not binding.placeholder], terms.spec)
    for binding in census.held:
        role = role_of(binding.pod)
        left[role] -= 1
        if left[role] < 0:
            bindings.release(gang, cluster, binding.pod.uid)
