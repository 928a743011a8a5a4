"""An open plan, as the group knows it for which others are preempted, or end by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod


@dataclass(slots=True, kw_only=True)
class Plan:
    """Where the group will be once others have left. `core.contention.plans` changes it, and nobody else."""

    places: Sequence[tuple[Pod, str]]
    """The members, each with the node that is reserved for it."""
    opened_at: float
    expires: float
    """When the plan is given up if those that are to leave are still there, in epoch seconds."""
    whole: Mapping[GroupKey, frozenset[str]] = field(default_factory=dict)
    """The groups that leave entirely, and their members by UID."""
    single: Mapping[GroupKey, frozenset[str]] = field(default_factory=dict)
    """Groups of which only these members leave, by UID."""
    loose: frozenset[str] = frozenset()
    """Pods without a group that leave, by UID."""
    held: frozenset[str] = frozenset()
    """Reservations beside the bound members of groups that leave entirely, by UID: they are given up with those."""
    claims: frozenset[ObjectKey] = frozenset()
    """The ResourceClaims with devices of those that leave. They outlive their pods for a while."""
    anyway: frozenset[str] = frozenset()
    """Members of gangs, by UID, that did not terminate yet when it was opened, but were to leave in any case."""
    units: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What leaves together, by name: the UIDs of its pods."""
    start: float | None = None
    """When others that end by themselves have left the places, in epoch seconds; infinity if nobody knows. None: they
    are preempted."""
    ends: dict[str, float] = field(default_factory=dict)
    """Those that end by themselves until then, by UID, and when, in epoch seconds; after a grace period if need be."""
    promises: set[str] = field(default_factory=set)
    """Of those the ones, by UID, that nothing ends but their word."""
    spared: frozenset[str] = frozenset()
    """Of those that would be called in the ones, by UID, that stay because the others are enough."""
    leaving: frozenset[str] = field(init=False)
    """The UIDs of all pods that leave, and of reservations that are given up."""
    victims: frozenset[str] = field(init=False)
    """The UIDs of the pods that are evicted for it: others that leave terminated already when it was opened."""
    former: bool = False
    """A former leader opened it. Who leaves for it is found out anew, by another search if that is not enough."""
    allowed: bool = True
    """Whether others may still be preempted for the group."""
    asked: tuple[object, ...] = ()
    """What the group asked for (`gang.wait.Wait.asked`)."""
    beside: frozenset[str] = frozenset()
    """The pods of other schedulers, by UID, that were on its nodes already."""
    told: frozenset[str] = frozenset()
    """The pods that were told to leave, by UID."""
    evicting_since: float = 0.0
    """When the first pods were told to leave; 0.0 before that."""
    paused_until: float = 0.0
    """Until when the group's clock stands still, in epoch seconds: the victims' grace periods (contract rule 4)."""
    attempt: int = -1
    """The attempt of the group during which its clock stands still."""
    refused_since: dict[str, float] = field(default_factory=dict)
    """Since when the API server has refused these evictions, by the pods' UIDs."""
    looked_at: frozenset[str] | None = None
    """Those that left when they were last looked at, by UID; None before that."""
    remaining: int = -1
    """How many of them were there; -1 before that."""
    nodes_seen: Sequence[Node | None] = ()
    """The node of each place as it was when it was last looked at; None for one that is gone."""
    changes_seen: int = -1
    """How many changes of nodes there were then; -1 before that."""
    lost_at: float = float("inf")
    """From when on a node counts as lost that does not take its members, in epoch seconds; infinity if all do."""
    covered: bool = True
    """As much as its places need is free, or used by those who leave for it."""
    tried_when_left: bool = False
    """All have left, and the group is or was tried since."""

    def __post_init__(self) -> None:
        self.note_leaving()

    def note_leaving(self) -> None:
        """Others leave than before."""
        self.leaving = self.held.union(self.ends.keys() - self.spared, *self.units.values())
        self.victims = self.loose.union(*self.whole.values(), *self.single.values())

    def note_asked(self, asked: tuple[object, ...]) -> None:
        """The plan is for a group that asks for this."""
        self.asked = asked

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes with its places."""
        return frozenset(node for _, node in self.places)

    def paused_s(self, attempt: int, now: float) -> float:
        """How many seconds the group's clock has stood still for victims in this attempt, or will have by then."""
        counts = self.evicting_since and attempt == self.attempt
        return max(0.0, min(now, self.paused_until) - self.evicting_since) if counts else 0.0

    @property
    def members(self) -> frozenset[str]:
        """The UIDs of the members that it has places for."""
        return frozenset(pod.uid for pod, _ in self.places)
