"""Binds members above the minimum that belong together: all of them or none, as the members of a quorum.

A part is what one search has placed of a tree above its minimum, or of what a raised minimum adds. It begins with its
first reservations and ends once it is whole. Nothing of it is bound before all of it may be. If it stays partly bound
for as long as a quorum may, it is rolled back alone and tried again after a back-off, while the rest of the gang goes
on. After a restart `gang.unrecorded` finds it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.minima import minima, missing_of, role_minima
from gangsched.core.gang import bindings, rollback
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Census, Gang, take_census
from gangsched.core.gang.wants import placed_of, roles_of
from gangsched.core.gang.writes import BindState, Part
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.retry import doubled

NOTHING: Mapping[str, int] = {}


def begin(
    gang: Gang,
    found: Sequence[Pod],
    *,
    tree: bool = True,
    needs: Mapping[str, int] = NOTHING,
    since: float = 0.0,
    complaint: str = "",
) -> None:
    """Bind these members together, and with those of their roles that are being bound together already.

    Their part may have more `needs` (by role, these members included), and some of them may have been bound `since`
    then. `complaint` is what the API server said of others, whose reservations are given up. Places held for members
    that do not exist yet are not waited for: those members are made once others are bound. In a `tree`, what was begun
    of a role is still bound whole, whatever the search has chosen beside it this time; otherwise any members will do.
    """
    found = [pod for pod in found if pod.name]
    if not found:
        return
    roles = Counter(map(role_of, found))
    joined = [part for part in gang.operations.parts if part.needs.keys() & roles.keys()]
    uids = {pod.uid for pod in found}
    others = {uid for part in joined for uid in part.members} - uids
    there = [pod for pod in placed_of(gang) if pod.uid in others]
    placed = roles + Counter(map(role_of, there))
    every = placed | Counter(needs)
    if tree:
        every |= Counter({role: part.needs[role] for part in joined for role in placed})
    partial = [since, *(part.partial_since for part in joined if part.rollback is None)]
    since = min(filter(None, partial), default=0.0)
    complaint = complaint or next((part.complaint for part in joined if part.complaint), "")
    times = max((part.times for part in joined), default=0)
    part = Part(every, uids | {pod.uid for pod in there}, partial_since=since, complaint=complaint, times=times)
    gang.operations.parts = [*(each for each in gang.operations.parts if each not in joined), part]


def keep(gang: Gang, cluster: Cluster, census: Census, spec: GroupSpec, *, now: float, policy: Policy) -> Census:
    """End parts that are whole, and give up those that cannot be made whole, in time or at all. Returns the census."""
    if rollback.under_way(gang) is not None or not census.live:
        gang.operations.parts = []
    for part in [*gang.operations.parts]:
        _note_ended(gang, part)
        bound = [pod for pod in census.bound if pod.uid in part.members]
        part.needs = _still_needed(part, census, spec)
        missing = part.needs - Counter(map(role_of, bound))
        gone = not part.retry_at and part.needs.keys().isdisjoint(map(role_of, census.live))
        if gone or not missing:
            gang.operations.parts.remove(part)
            continue
        open_ = bindings.unconfirmed_of(gang, part.members)
        part.partial_since = (part.partial_since or now) if bound else 0.0
        if part.rollback is None and rollback.is_due(part.partial_since, now, policy):
            said = bindings.complaint(gang, part.members) or part.complaint
            note = rollback.note_of(len(bound), missing.total(), said, now - part.partial_since)
            part.rollback = rollback.begun(now, note, now, part=frozenset(part.members))
            give_up(gang, cluster, part, note, now=now, policy=policy)
        elif not (bound or missing == roles_of(open_) or any(each.state is BindState.SENT for each in open_)):
            bindings.release_held(gang, cluster, part.members)
        if not (bound or open_):
            part.rollback = None
        if part.retry_at and part.retry_at <= now:
            part.retry_at = 0.0
            gang.attempt.try_again()
    return take_census(gang) if gang.operations.parts else census


def _note_ended(gang: Gang, part: Part) -> None:
    """Forget members of the part that are gone; those that have succeeded are not needed any more."""
    ended = {uid: gang.observed.pods.get(uid) for uid in part.members}
    gone = {uid: pod for uid, pod in ended.items() if pod is None or not gang.lives(pod)}
    done = (pod for pod in gone.values() if pod is not None and pod.phase is PodPhase.SUCCEEDED)
    part.needs = part.needs - Counter(map(role_of, done))
    part.members = part.members - gone.keys()


def _still_needed(part: Part, census: Census, spec: GroupSpec) -> Counter[str]:
    """What the group needs of the part, by role, beside its other members; all, for a role whose object is gone."""
    if spec.tree is None:
        whole = not missing_of(minima(spec), census.bound_roles + census.done_roles)
        return Counter() if whole else part.needs
    others = Counter(role_of(pod) for pod in census.bound if pod.uid not in part.members) + census.done_roles
    least = role_minima(spec)
    known = {role: min(needed, least[role] - others[role]) for role, needed in part.needs.items() if role in least}
    return +Counter({**part.needs, **known})


def give_up(gang: Gang, cluster: Cluster, part: Part, note: str, *, now: float, policy: Policy) -> None:
    """Release what the part has reserved and try it again after a back-off."""
    part.note, part.times = note, part.times + 1
    part.retry_at = now + doubled(policy.backoff_initial_s, part.times, longest=policy.backoff_max_s)
    bindings.release_held(gang, cluster, part.members)


def closed(gang: Gang, now: float) -> dict[str, Part]:
    """Parts that may not be tried at present, by each of their roles."""
    return {
        role: part
        for part in gang.operations.parts
        if part.retry_at or (part.rollback is not None and not rollback.can_do_no_more(gang, part.rollback, now))
        for role in part.needs
    }


def due(gang: Gang, policy: Policy) -> float:
    """When `keep` has something to do without an event, in epoch seconds; infinity if never."""
    times = [part.retry_at or NEVER for part in gang.operations.parts]
    partial = (part.partial_since for part in gang.operations.parts if part.partial_since and part.rollback is None)
    return min((*times, *(since + rollback.lasts_s(policy) for since in partial)), default=NEVER)
