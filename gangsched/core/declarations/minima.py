"""How many members a group asks for, in all, by role and by part, and how many of them are missing.

A group's minimum is a tree (`Minima`): so many members in all, so many of each role, and of each choice so many parts,
which are trees themselves. A part is bound as a whole or not at all. A group without parts, such as a PodGroup of ours,
is a tree without choices. What has been chosen (`chosen`) is a tree without choices too, and that is what a gang's
record holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field

from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Choice, Minima

MOST_CACHED = 1024
"""Number of specs whose minimum is kept, because a gang asks for it several times whenever it is brought up to date."""


class Need(Struct, frozen=True):
    """Number of members that must still be bound, in all, by role, and by choice."""

    total: int
    roles: Mapping[str, int] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()

    def __bool__(self) -> bool:
        return self.total > 0 or any(self.roles.values()) or any(map(_fewest, self.choices))

    @property
    def number(self) -> int:
        """The smallest number of members that satisfies all."""
        number = sum(self.roles.values())
        return max(self.total, number + sum(map(_fewest, self.choices)) if self.choices else number)

    def met_by(self, members: Sequence[Pod]) -> bool:
        """Whether these members are enough."""
        if not (self.roles or self.choices):
            return len(members) >= self.total
        counts = Counter(map(role_of, members))
        if self.choices:
            return not self.beside(counts)
        return len(members) >= self.number and all(counts[role] >= number for role, number in self.roles.items())

    def beside(self, placed: Counter[str]) -> Need:
        """The remaining need if these members, counted by role, already have a node or a reservation."""
        return missing_of(Minima(self.total, tuple(self.roles.items()), self.choices), placed)


def role_minima(spec: GroupSpec) -> dict[str, int]:
    """Each role's minimum."""
    return {role.name: role.min_member for role in spec.roles}


@lru_cache(maxsize=MOST_CACHED)
def minima(spec: GroupSpec) -> Minima:
    """The group's minimum."""
    return spec.tree or Minima(spec.minimum, tuple(sorted(role_minima(spec).items())))


@lru_cache(maxsize=MOST_CACHED)
def lowered(had: Minima, spec: GroupSpec) -> Minima:
    """The spec's minima, none of them larger than in `had`, which is without choices."""
    asked, roles = minima(spec), dict(had.roles)
    if spec.tree is not None:
        least = {role.name: min(role.min_member, roles[role.name]) for role in spec.roles if role.name in roles}
        return Minima(sum(least.values()), tuple(sorted(least.items())))
    return Minima(
        min(asked.total, had.total),
        tuple((role, min(number, roles.get(role, 0))) for role, number in asked.roles),
    )


def missing_of(least: Minima, placed: Counter[str]) -> Need:
    """What is missing of these minima if these members, counted by role, are placed.

    Members of other parts than these must not be among those counted.
    """
    roles = {role: max(0, number - placed[role]) for role, number in least.roles}
    choices = tuple(_remaining(least.choices, placed)) if least.choices else ()
    return Need(max(0, least.total - placed.total()), roles, choices)


# Choices


def tree(parts: Sequence[Minima], *, least: int, name: str) -> Minima:
    """The minima of which at least so many of these parts are needed. Where all are, they are no choice."""
    if least != len(parts):
        choice = Choice(least, tuple(parts), name)
        return Minima(_fewest(choice), (), (choice,), name)
    return Minima(
        total=sum(part.total for part in parts),
        roles=tuple(sorted(pair for part in parts for pair in part.roles)),
        choices=tuple(choice for part in parts for choice in part.choices),
        name=name,
    )


def capped(least: Minima, most: Mapping[str, int]) -> Minima:
    """The tree with no more members of each role than these."""
    roles = tuple((role, min(number, most[role])) for role, number in least.roles)
    choices = tuple(
        Choice(choice.least, tuple(capped(part, most) for part in choice.parts), choice.name)
        for choice in least.choices
    )
    return Minima(sum(number for _, number in roles) + sum(map(_fewest, choices)), roles, choices, least.name)


def chosen(least: Minima, placed: Counter[str], live: Counter[str] | None = None) -> Minima:
    """The minima without choices: of each choice the parts that are nearest to the members that are `placed`, by role,
    with those that `live` beside them.
    """
    if not least.choices:
        return least
    nearest = (part for choice in least.choices for part in _nearest(choice, placed, placed if live is None else live))
    parts = [least, *(chosen(part, placed, live) for part in nearest)]
    roles = tuple(sorted(pair for part in parts for pair in part.roles))
    return Minima(sum(number for _, number in roles), roles)


def rest_of(part: Minima, placed: Counter[str]) -> Minima:
    """What is missing of the part, as a part."""
    need = missing_of(part, Counter({role: placed[role] for role in roles_in(part)}))
    return Minima(need.number, tuple(need.roles.items()), need.choices, part.name)


def leaves(least: Minima) -> Iterator[tuple[str, int]]:
    """All roles of the tree, each with its minimum."""
    yield from least.roles
    for choice in least.choices:
        for part in choice.parts:
            yield from leaves(part)


def roles_in(least: Minima) -> Iterator[str]:
    """All roles of the tree."""
    yield from (role for role, _ in leaves(least))


class Above(Struct, frozen=True):
    """What may be bound above a minimum: single members of these `roles`, and each of the `parts` as a whole.

    The parts are what is missing of them.
    """

    roles: frozenset[str] = frozenset()
    parts: tuple[Minima, ...] = ()


def above(least: Minima, placed: Counter[str]) -> Above:
    """What may be bound beside members that are placed, counted by role, of a group that was once whole.

    A part of which members are placed was once whole too: what it has lost is bound together, and others of its roles
    that lack nothing are bound one by one.
    """
    roles = {role for role, number in least.roles if placed[role] >= number}
    parts: list[Minima] = []
    for part in (part for choice in least.choices for part in choice.parts):
        rest, within = rest_of(part, placed), above(part, placed)
        parts += (rest,) if rest.total else within.parts
        roles |= within.roles
    return Above(frozenset(roles), tuple(parts))


def begun(least: Minima, placed: Counter[str], bound: Counter[str]) -> Iterator[Minima]:
    """The parts of a tree of which some members are placed and not all are bound, both counted by role."""
    for role, number in least.roles:
        if placed[role] and bound[role] < number:
            yield Minima(number, ((role, number),))
    for part in (part for choice in least.choices for part in choice.parts):
        if part.roles and rest_of(part, bound).total and any(placed[role] for role in roles_in(part)):
            yield part
        else:
            yield from begun(part, placed, bound)


def _fewest(choice: Choice) -> int:
    """The smallest number of members that satisfies the choice, or would if enough parts existed."""
    numbers = sorted(part.total for part in choice.parts)[: choice.least]
    return sum(numbers) + choice.least - len(numbers)


def _remaining(choices: Sequence[Choice], placed: Counter[str]) -> Iterator[Choice]:
    """What is missing of these choices: parts that have members come first, because they are not left as they are."""
    for choice in choices:
        left = [(part, rest) for part in choice.parts if (rest := rest_of(part, placed)).total]
        least = choice.least - len(choice.parts) + len(left)
        if least > 0:
            left.sort(key=lambda pair: not any(placed[role] for role in roles_in(pair[0])))
            yield Choice(least, tuple(rest for _, rest in left), choice.name)


def _nearest(choice: Choice, placed: Counter[str], live: Counter[str]) -> Sequence[Minima]:
    """The parts to choose: those that have members, of these those that miss fewest, and of those the first ones.

    Those that miss fewest of the members that live come before those that miss fewest of those `placed`.
    """

    def order(part: Minima) -> tuple[bool, int, int]:
        has_none = not any(placed[role] for role in roles_in(part))
        return has_none, rest_of(part, live).total, rest_of(part, placed).total

    return sorted(choice.parts, key=order)[: choice.least]
