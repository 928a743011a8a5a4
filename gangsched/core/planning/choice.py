"""Chooses the members of a quorum in their order (contract rule 8) where the first of them do not fit together.

The choice is the first one, in the order of the members, that fits: a member is passed over only if no quorum fits that
has it beside the members chosen before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from gangsched.core.objects.pod import Pod
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.search import Kind, Selection, Slots

TRIES = 8
"""Limit for the number of kinds of members that are passed over; what then fits is taken."""


def choose(members: Sequence[Pod], slots: Slots, passed: set[str]) -> list[Pod] | None:
    """The first members, in order and except those in `passed`, that fill all slots; None if there are too few."""
    chosen = slots.first_of([pod for pod in members if pod.uid not in passed] if passed else members)
    return chosen if len(chosen) == slots.number else None


def in_order(
    members: Sequence[Pod],
    slots: Slots,
    *,
    kind: Callable[[Pod], Kind],
    fits: Callable[[Sequence[Pod]], bool],
) -> None:
    """Ask `fits` about more and more of the first choice; the last members that it accepted are the result.

    `fits` tells whether some quorum that has all of these members fits; it is known to accept none of them at all.
    Members of one `kind` are interchangeable, so that one of them that does not fit stands for those after it.
    """
    passed: set[str] = set()
    kept = 0
    for _ in range(TRIES):
        ideal = choose(members, slots, passed)
        if ideal is None or fits(ideal):
            return
        most = len(ideal)
        while most - kept > 1:
            middle = (kept + most) // 2
            if fits(ideal[:middle]):
                kept = middle
            else:
                most = middle
        accepted = {pod.uid for pod in ideal[:kept]}
        passed |= {pod.uid for pod in members if kind(pod) == kind(ideal[kept]) and pod.uid not in accepted}


def first_of_kinds(members: Iterable[Pod], kind: Callable[[Pod], Kind], most: Mapping[Kind, int]) -> list[Pod]:
    """The first members of each kind, at `most` so many of each."""
    seen: Counter[Kind] = Counter()
    first = []
    for pod in members:
        of_kind = kind(pod)
        seen[of_kind] += 1
        if seen[of_kind] <= most.get(of_kind, 0):
            first.append(pod)
    return first


def left_out(kinds: Selection, placed: Selection, slots: Slots) -> MemberClass | None:
    """The class of the first member without a place that could fill one of the open slots; None if there is none."""
    return next(
        (kind[0] for kind, count in kinds.items() if placed.get(kind, 0) < count and slots.open_to(kind[1])), None
    )


def filling_up(kinds: Iterable[tuple[Kind, int]], slots: Slots) -> Counter[MemberClass]:
    """The classes, with counts, of the first of these members that fill the open slots."""
    chosen: Counter[MemberClass] = Counter()
    for (member, role), count in kinds:
        number = min(count, slots.open_to(role))
        if number:
            chosen[member] += number
            slots = slots.without(role, number)
    return chosen
