"""Chooses which parts of a group make its quorum, where it needs some of several (`Ask.choices`).

A part is placed with all that it needs or not at all. The choice is the first one, in the order of the parts, that
fits: a part is passed over only if no choice fits that has it beside the parts chosen before it. It is found by going
through the choices part by part, and giving up those of which the parts so far do not fit together, within a limit. Of
parts that are alike one that does not fit stands for those after it. A quorum without choices is found by `quorum`
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping

from msgspec.structs import replace

from gangsched.core.cluster.labels import Within
from gangsched.core.objects.pod import role_of
from gangsched.core.objects.record import Choice, Minima
from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask, confined, roles_quorum_in
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import helped
from gangsched.core.planning.filling import Places
from gangsched.core.planning.levels import Levels
from gangsched.core.planning.quorum import Quorum
from gangsched.core.planning.search import STEPS, Steps

TRIES = 128
"""Limit for the number of choices, complete or not, that are tried."""

_Roles = Mapping[str, int]


def quorum_in(
    snapshot: Snapshot,
    ask: Ask,
    within: Within,
    *,
    of: Collection[MemberClass] | None = None,
    steps: int = STEPS,
) -> Quorum | Levels | Parts:
    """The quorum with its members confined to these domains: all members, or only those `of` these classes.

    The exhaustive search takes at most so many `steps`.
    """
    if ask.choices:
        return Parts(snapshot, ask, within, of=of, steps=steps)
    if ask.levels:
        return Levels(snapshot, ask, within, of=of, steps=steps)
    return roles_quorum_in(snapshot, ask, within, of=of, steps=steps)


class Parts:
    """A quorum with choices on one snapshot; it is used like a `Quorum`.

    What it says about a refusal is true of the `first` choice; `room` has the classes of all members.
    """

    def __init__(
        self, snapshot: Snapshot, ask: Ask, within: Within, *, of: Collection[MemberClass] | None, steps: int
    ) -> None:
        self._snapshot = snapshot
        self._ask = ask
        self._within = within
        self._of = of
        self._members = Counter(map(role_of, ask.members))
        self._failed: list[_Roles] = []
        self._tries = 0
        self.steps = Steps(steps, budget=snapshot.budget)
        self.first = self._quorum(_merged(ask.role_needs, self._nearest(ask.choices)))
        self.slots = self.first.slots
        class_of = confined(snapshot, ask.members, ask.avoided, within, of=of)
        classes = dict.fromkeys(class_of.values())
        self._classes: dict[str, Counter[MemberClass]] = {}
        for pod in ask.members:
            self._classes.setdefault(role_of(pod), Counter())[class_of[pod.uid]] += 1
        self.room = dict.fromkeys(classes, 0) | self.first.room
        self._depends = bool(helped(snapshot, classes))
        self.smallest = self.first.smallest
        self.take_most = self.first.take_most

    def find(self) -> Places | None:
        """Find and take a place for each member of the first choice that fits; None, with nothing taken, if none does.

        None is certain unless the steps have ended.
        """
        places = self.first.find()
        if places is None:
            self.steps.rests_on(self.first.steps)
            places = self._find(dict(self._ask.role_needs), self._ask.choices)
        return places

    def _find(self, roles: _Roles, choices: tuple[Choice, ...]) -> Places | None:
        """Places for these roles and enough parts of these choices."""
        choice, *others = choices
        unfit = set[Hashable]()
        for at, part in enumerate(choice.parts):
            if len(choice.parts) - at < choice.least or self._tries >= TRIES:
                break
            kind = self._kind(part)
            if kind in unfit or not self._has(part):
                continue
            more = _merged(roles, dict(part.roles))
            left = Choice(choice.least - 1, choice.parts[at + 1 :], choice.name)
            open_ = (*((left,) if left.least else ()), *others, *part.choices)
            places = self._try(more, open_)
            if places is not None:
                return places
            unfit.add(kind)
        return None

    def _kind(self, part: Minima) -> Hashable:
        """What decides whether the part fits; equal for parts that may take each other's place."""
        roles = Counter((number, *self._kind_of_role(role)) for role, number in part.roles)
        choices = Counter(
            (choice.least, frozenset(Counter(map(self._kind, choice.parts)).items())) for choice in part.choices
        )
        return frozenset(roles.items()), frozenset(choices.items())

    def _kind_of_role(self, role: str) -> tuple[Hashable, ...]:
        """Its members' classes, where others of it are, and its levels; a level of several roles is like no other."""
        own = self._ask.own_by_role.get(role, {})
        levels = (level.key if len(level.roles) == 1 else level for level in self._ask.levels if role in level.roles)
        return frozenset(self._classes.get(role, Counter()).items()), frozenset(own.items()), tuple(levels)

    def _try(self, roles: _Roles, choices: tuple[Choice, ...]) -> Places | None:
        """Places for these roles and the rest of the choice, unless some of these roles are known not to fit."""
        if any(all(roles.get(role, 0) >= number for role, number in failed.items()) for failed in self._failed):
            return None
        mark = self._snapshot.mark()
        places: Places | None = []
        if not (choices and self._depends):
            places = self._placed(roles)
        if not choices or places is None:
            return places
        self._snapshot.undo(mark)
        return self._find(roles, choices)

    def _placed(self, roles: _Roles) -> Places | None:
        """Places for members of these roles, taken; None if they do not fit together."""
        self._tries += 1
        if self._tries >= TRIES:
            self.steps.break_off()
        self._snapshot.budget.charge(units.TRIED * len(self._ask.members))
        quorum = self._quorum(roles)
        places = quorum.find()
        if places is None:
            self.steps.rests_on(quorum.steps)
            if not self._depends:
                self._failed.append(roles)
        return places

    def _quorum(self, roles: _Roles) -> Quorum | Levels:
        ask = replace(
            self._ask,
            members=[pod for pod in self._ask.members if roles.get(role_of(pod), 0) > 0],
            need=sum(roles.values()),
            role_needs=roles,
            choices=(),
        )
        quorum = Levels if ask.levels else roles_quorum_in
        return quorum(self._snapshot, ask, self._within, of=self._of, steps=self.steps.left)

    def _has(self, part: Minima) -> bool:
        """Whether the part has as many members as it needs."""
        if any(self._members[role] < number for role, number in part.roles):
            return False
        return all(sum(map(self._has, choice.parts)) >= choice.least for choice in part.choices)

    def _nearest(self, choices: tuple[Choice, ...]) -> _Roles:
        """The roles of the first choice that has enough members."""
        parts = [part for choice in choices for part in sorted(choice.parts, key=self._lacks)[: choice.least]]
        return _merged(*(_merged(dict(part.roles), self._nearest(part.choices)) for part in parts))

    def _lacks(self, part: Minima) -> bool:
        return not self._has(part)


def _merged(*all_roles: _Roles) -> _Roles:
    """All these numbers; no role is in two of them."""
    return {role: number for roles in all_roles for role, number in roles.items()}
