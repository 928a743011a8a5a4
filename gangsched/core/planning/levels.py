"""Places a quorum some of whose roles must each be in one domain of a node label (`Ask.levels`), one inside the other.

A level confines the members of its roles to one domain: that of its members which are placed already, or else one that
is chosen here. Domains are chosen level by level, outer ones first, the tightest first among those that may take all; a
choice is given up once the whole quorum does not fit beside what was chosen so far, within a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gangsched.core.cluster.labels import Within
from gangsched.core.objects.declaration import Level, Topology
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.planning import budget as units
from gangsched.core.planning import topology
from gangsched.core.planning.ask import Ask, confined, roles_quorum_in
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import Places
from gangsched.core.planning.search import Steps

if TYPE_CHECKING:
    from gangsched.core.planning.quorum import Quorum

TRIES = 128
"""Limit for the number of choices of domains, complete or not, that are tried."""

_ByRole = Mapping[str, Within]
"""Where the members of each role that has levels may be, by role."""


def homes(snapshot: Snapshot, ask: Ask) -> _ByRole:
    """Where the members of roles may be whose levels have members that are placed already."""
    by_role: dict[str, Within] = {}
    for level in ask.levels:
        value = _home(snapshot, ask, level)
        if value is not None:
            by_role |= {role: (*by_role.get(role, ()), (level.key, value)) for role in level.roles}
    return by_role


def divided(snapshot: Snapshot, ask: Ask) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The node labels of which members must be in one domain and are in several, with these domains.

    Others have bound some of them, or labels of their nodes were changed.
    """
    required = [(ask.topology, ask.own)] if ask.topology is not None and ask.topology.required else []
    for wanted, own in (*required, *((Topology(level.key), _own(ask, level)) for level in ask.levels)):
        domains = topology.occupied(snapshot, wanted, snapshot.by_row(own))
        if len(domains) > 1:
            yield wanted.key, tuple(domains)


def _home(snapshot: Snapshot, ask: Ask, level: Level) -> str | None:
    return topology.home(snapshot, Topology(level.key), _own(ask, level))


def _own(ask: Ask, level: Level) -> Counter[str]:
    """How many members of the level's roles are on which node."""
    own = Counter[str]()
    for role in level.roles:
        own.update(ask.own_by_role.get(role, {}))
    return own


class Levels:
    """A quorum with levels on one snapshot; it is used like a `Quorum`.

    What it says about a refusal is true where each level is in its own domain or in the one with most room.
    """

    def __init__(
        self, snapshot: Snapshot, ask: Ask, within: Within, *, of: Collection[MemberClass] | None, steps: int
    ) -> None:
        self._snapshot = snapshot
        self._ask = ask
        self._within = within
        self._of = of
        self._tries = 0
        self.steps = Steps(steps, budget=snapshot.budget)
        roles = set(map(role_of, ask.members))
        self._levels = [level for level in ask.levels if not roles.isdisjoint(level.roles)]
        explained: dict[str, Within] = {}
        for level in self._levels:
            value = _home(snapshot, ask, level)
            if value is None:
                value = topology.roomiest(snapshot, Topology(level.key), self._classes(level, explained))
            explained |= self._inside(level, value, explained)
        self.first = self._quorum(explained)
        self.slots, self.room = self.first.slots, self.first.room
        self.smallest = self.first.smallest
        self.take_most = self.first.take_most

    def find(self) -> Places | None:
        """Find and take a place for each member; None, with nothing taken, if there is none.

        None is certain unless the steps have ended.
        """
        return self._find(self._levels, {})

    def _find(self, levels: Sequence[Level], by_role: _ByRole) -> Places | None:
        """Places with these roles where they may be, and those of the levels in one domain each."""
        self._tries += 1
        if self._tries > TRIES:
            self.steps.break_off()
            return None
        self._snapshot.budget.charge(units.TRIED * len(self._ask.members))
        mark, quorum = self._snapshot.mark(), self._quorum(by_role)
        places = quorum.find()
        if places is None or not levels:
            self.steps.rests_on(quorum.steps)
            return places
        self._snapshot.undo(mark)
        level, *others = levels
        for value in self._values(level, by_role):
            places = self._find(others, {**by_role, **self._inside(level, value, by_role)})
            if places is not None or self._tries > TRIES:
                return places
        return None

    def _values(self, level: Level, by_role: _ByRole) -> Sequence[str]:
        """The domains that may take what is needed of the level's roles, in the order in which to try them."""
        home = _home(self._snapshot, self._ask, level)
        if home is not None:
            return [home]
        need = max(1, sum(self._ask.role_needs.get(role, 0) for role in level.roles))
        return [*topology.candidates(self._snapshot, Topology(level.key), self._classes(level, by_role), need)]

    def _classes(self, level: Level, by_role: _ByRole) -> list[MemberClass]:
        """The class of each member of the level's roles, where its role may be."""
        members = [pod for pod in self._ask.members if role_of(pod) in level.roles]
        within = by_role.get(level.roles[0], self._within)
        classes = confined(self._snapshot, members, self._ask.avoided, within)
        return [classes[pod.uid] for pod in members]

    def _inside(self, level: Level, value: str | None, by_role: _ByRole) -> _ByRole:
        return {role: (*by_role.get(role, self._within), (level.key, value)) for role in level.roles}

    def _quorum(self, by_role: _ByRole) -> Quorum:
        return roles_quorum_in(
            self._snapshot, self._ask, self._within, of=self._of, steps=self.steps.left, within_by_role=by_role
        )


def placed_in(snapshot: Snapshot, ask: Ask, members: Sequence[Pod]) -> Mapping[str, MemberClass]:
    """The class of each of these members, by UID, inside the domains of those of its levels that are placed already."""
    return confined(snapshot, members, ask.avoided, (), within_by_role=homes(snapshot, ask))
