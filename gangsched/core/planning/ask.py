"""What a gang asks planning for, and the questions that follow from it: its classes, its domains, its quorum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.cluster.labels import Domain, Within
from gangsched.core.objects.declaration import Level, Preference, Topology
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.record import Choice
from gangsched.core.objects.start import Start
from gangsched.core.objects.strategy import Strategy
from gangsched.core.planning import topology
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify, preferring
from gangsched.core.planning.quorum import Quorum
from gangsched.core.planning.search import STEPS, Slots
from gangsched.core.planning.strategies import PACK


class Ask(Struct, frozen=True, kw_only=True):
    """A gang's request: `need` of `members`, which are tried in this order, must be placed.

    `role_needs` are minima by role; at least that many members must have the role, and at least `need` members exist.
    `own` counts the members that are already bound, by node. `avoided` nodes are used only if the gang fits nowhere
    else; among them `refused` nodes, which refused the gang itself, only if it fits on none of the others. Those of
    `pause` are not used. `topology` requests one domain of a label for all members. `wishes` are preferences by role,
    which come before `prefer`. `start` must be free in all before the first member is placed.
    Of each of the `choices` enough parts must be placed; their members count towards `need`. Each of the `levels` must
    be in one domain, that of members in `own_by_role` (numbers by node) if there are any.

    Members beyond the quorum, and those `following`, are not placed, but a domain that takes more of them is better; no
    more than `most` members are placed in all (None for no limit).
    """

    members: Sequence[Pod]
    need: int
    role_needs: Mapping[str, int] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    levels: tuple[Level, ...] = ()
    own_by_role: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    strategy: Strategy = PACK
    prefer: tuple[Preference, ...] = ()
    wishes: Mapping[str, tuple[Preference, ...]] = field(default_factory=dict)
    topology: Topology | None = None
    own: Mapping[str, int] = field(default_factory=dict)
    avoided: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    pause: Pause = OPEN
    start: Start | None = None
    following: Sequence[Pod] = ()
    most: int | None = None

    @property
    def only_counts(self) -> bool:
        """Whether nothing but the number of members is asked for."""
        in_parts = self.choices or self.levels or any(self.role_needs.values())
        return not (in_parts or self.topology or self.start)

    def avoiding(self, by_all: frozenset[str], by_gang: frozenset[str], pause: Pause) -> Ask:
        """The same, avoiding nodes that all gangs or this one avoid at present, and those of the `pause`."""
        refused = by_gang | pause.nodes
        # A preferred domain, whose nodes may be in order again, is left once they have failed again.
        prefers = self.topology is not None and not self.topology.required
        doubted = pause.failed_again if prefers else pause.doubted
        return replace(self, avoided=by_all | refused | doubted, refused=refused, pause=pause)


def asked_for(snapshot: Snapshot, ask: Ask) -> Hashable:
    """A key of everything, except the nodes, that decides whether the quorum fits."""
    roles = frozenset((role, need) for role, need in ask.role_needs.items() if need > 0)
    classes = classify(snapshot, ask.members, ask.avoided)
    kinds = Counter((classes[pod.uid], role_of(pod)) for pod in ask.members)
    if not (ask.choices or ask.levels):
        return frozenset(kinds.items()), roles, ask.need
    own = frozenset((role, frozenset(nodes.items())) for role, nodes in ask.own_by_role.items())
    return frozenset(kinds.items()), roles, ask.need, ask.choices, ask.levels, own


def domains_of(snapshot: Snapshot, ask: Ask) -> Sequence[tuple[Domain, ...]]:
    """Where the whole quorum may be: in one domain each, or, without a required topology, anywhere."""
    if ask.topology is None or not ask.topology.required:
        return [()]
    return [((ask.topology.key, value),) for value in domain_values(snapshot, ask, ask.topology)]


def domain_values(snapshot: Snapshot, ask: Ask, wanted: Topology) -> Mapping[str, int]:
    """The domains that may take the quorum, in the order in which to try them, with the most members that each takes.

    The domain of members that are already placed is the only one.
    """
    home = topology.home(snapshot, wanted, ask.own)
    if home is not None:
        return {home: len(ask.members)}
    classes, following = classes_of(snapshot, ask), classify(snapshot, ask.following, ask.avoided)
    later = [following[pod.uid] for pod in ask.following]
    return topology.candidates(snapshot, wanted, classes, ask.need, later=later, most=ask.most)


def classes_of(snapshot: Snapshot, ask: Ask) -> list[MemberClass]:
    """The class of each member, in the order of the members."""
    classes = classify(snapshot, ask.members, ask.avoided)
    return [classes[pod.uid] for pod in ask.members]


def confined(
    snapshot: Snapshot,
    members: Sequence[Pod],
    avoided: frozenset[str],
    within: Within,
    *,
    of: Collection[MemberClass] | None = None,
    within_by_role: Mapping[str, Within] | None = None,
) -> Mapping[str, MemberClass]:
    """Each member's class without preferences, by UID; all of them, or only those `of` these, confined to be
    `within` these domains.

    Members of roles that are in `within_by_role` are confined to what it says, which repeats the outer domains.
    """
    if within_by_role:
        alike: dict[Within, list[Pod]] = {}
        for pod in members:
            alike.setdefault(within_by_role.get(role_of(pod), within), []).append(pod)
        return {
            uid: member
            for where, pods in alike.items()
            for uid, member in confined(snapshot, pods, avoided, where, of=of).items()
        }
    classes = classify(snapshot, members, avoided, within=within if of is None else ())
    if of is None:
        return classes
    inside = {member: replace(member, within=within) for member in of}
    return {uid: inside.get(member, member) for uid, member in classes.items()}


def roles_quorum_in(
    snapshot: Snapshot,
    ask: Ask,
    within: Within,
    *,
    of: Collection[MemberClass] | None = None,
    steps: int = STEPS,
    within_by_role: Mapping[str, Within] | None = None,
) -> Quorum:
    """The quorum of an ask without choices, its members confined to these domains: all, or those `of` these classes.

    Members of roles that are in `within_by_role` are confined to what it says.

    The exhaustive search takes at most so many `steps`.
    """
    owed = {role: need for role, need in ask.role_needs.items() if need > 0}
    classes = confined(snapshot, ask.members, ask.avoided, within, of=of, within_by_role=within_by_role)
    return Quorum(
        snapshot,
        classes,
        preferring=preferring(snapshot, ask.members, classes, ask.wishes),
        members=ask.members,
        slots=Slots.of(ask.need, owed),
        strategy=ask.strategy,
        prefer=ask.prefer,
        steps=steps,
    )
