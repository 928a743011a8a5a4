"""Chooses the members of a gang's quorum and a node for each of them.

Members of one class (equal shape, excluded by the same existing pods) are counted, not iterated: how many of them a
node takes is arithmetic on the capacity matrix, which is exact for a gang of one class. Several classes are a packing
problem: they are tried scarcest first, then largest first, and small cases that still fail are searched exhaustively
within a budget. Members are chosen in their order; if these do not fit, the smallest are tried, then, in small cases,
every choice. Nothing else depends on the order of members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.strategy import Strategy
from gangsched.core.planning import search
from gangsched.core.planning.backtracking import Backtracking
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import any_couples, helped, hoped
from gangsched.core.planning.expansion import only_by_name
from gangsched.core.planning.filling import Counts, Places, asks_too_much_in_all, choose, fill_class, hand_out
from gangsched.core.planning.search import Kind, Search, Selection, Share, Slots, Steps, selections
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.strategies import PACK

TRIES = 8
"""Limit for the number of choices of members that are tried in one order."""
DIAGNOSED = search.STEPS // 4
"""Limit of search steps for finding out how many members of a refused quorum fit."""
_Way = tuple[Strategy, tuple[Preference, ...] | None]
_PACKED: _Way = (PACK, None)


class Quorum:
    """One gang's quorum on one snapshot. `room` is how many members of each class would fit alone.

    `classes` are the members' classes without preferences, `preferring` those with them, both by UID. `steps` has ended
    if the search was not exhaustive.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        classes: Mapping[str, MemberClass],
        *,
        preferring: Mapping[str, MemberClass],
        members: Sequence[Pod],
        slots: Slots,
        strategy: Strategy,
        prefer: tuple[Preference, ...],
    ) -> None:
        self.slots = slots
        self.steps = Steps(budget=snapshot.budget)
        every = dict.fromkeys(classes.values())
        self.room = {member: int(hoped(snapshot, member, every).sum()) for member in every}
        self._helped = helped(snapshot, every)
        self._snapshot = snapshot
        self._classes = classes
        self._preferring = preferring
        self._members = members
        self._ways: list[_Way] = [(strategy, prefer)]
        preferential = any(each.prefer or snapshot.scores.prefers(each) for each in set(preferring.values()))
        if strategy is not PACK or prefer or preferential:
            # Strategies and preferences never decide whether a gang fits: one that only fits packed is packed.
            self._ways.append(_PACKED)
        self._kinds = Counter(map(self._kind, members))
        self._size = {member: search.size(snapshot, member) for member in self.room}
        self._largest = list(self.room)
        if len(self._largest) > 1:
            self._largest.sort(key=lambda member: (-self._size[member], member.in_order()))
        self._rank = {member: at for at, member in enumerate(reversed(self._largest))}

    def find(self) -> Places | None:
        """Find and take a place for each member of the quorum; None, with nothing taken, if there is none.

        None is certain unless the steps have ended.
        """
        if not self.slots.number:
            return []
        if self._hopeless():
            return None
        for at in range(len(self._ways)):
            found = self._in_order(self._members, self._ways[at:])
            if found is None and len(self._members) > self.slots.number:
                found = self._in_order(self._by_size(), self._ways[at:])
            if found is not None:
                return found
        return self._packed_or_searched()

    def smallest(self) -> Counter[MemberClass]:
        """The classes, with counts, of a quorum made of the smallest members."""
        by_size = self._by_size()
        chosen = choose(by_size, self.slots, set()) or by_size[: self.slots.number]
        return Counter(self._classes[pod.uid] for pod in chosen)

    def take_most(self) -> tuple[int, MemberClass, Counts]:
        """Take places for as much of the quorum as fits.

        Returns the number of members with places, the class of the first member without one, and the classes of the
        members that would complete the quorum: where there is a choice, the smallest that a new node can help.
        """
        mark = self._snapshot.mark()
        placed, shares = self._greedy()
        steps = Steps(DIAGNOSED, budget=self._snapshot.budget)
        for number in range(placed.total() + 1, self.slots.number if len(self.room) > 1 else 0):
            self._snapshot.undo(mark)
            found = self._search(number, steps)
            self._take(shares if found is None else found[1])
            if found is None:
                break
            placed, shares = Counter(found[0]), found[1]
        slots = self.slots
        for (_, role), count in placed.items():
            slots = slots.without(role, count)
        return placed.total(), self._left_out(placed, slots), self._missing(placed, slots)

    # Ways to find places

    def _hopeless(self) -> bool:
        """Whether room is too small even if each class had the nodes to itself, or if all nodes were one."""
        roles: Counter[str] = Counter()
        usable: Counter[MemberClass] = Counter()
        for (member, role), count in self._kinds.items():
            roles[role] += min(count, self.room[member])
            usable[member] += count
        for member, count in usable.items():
            usable[member] = min(count, self.room[member])
        if usable.total() < self.slots.number or any(roles[role] < need for role, need in self.slots.roles.items()):
            return True
        return len(usable) > 1 and asks_too_much_in_all(self._snapshot, usable, self.slots.number)

    def _in_order(self, members: Sequence[Pod], ways: Sequence[_Way]) -> Places | None:
        """Find places for the first members that fill the slots, skipping members that do not fit."""
        passed: set[str] = set()
        for _ in range(TRIES):
            chosen = choose(members, self.slots, passed)
            if chosen is None:
                break
            places, short = self._fill(chosen, ways)
            if places is not None:
                return places
            dispensable = self._dispensable(chosen, short, passed)
            if not dispensable:
                break
            passed |= dispensable
        return None

    def _packed_or_searched(self) -> Places | None:
        mark = self._snapshot.mark()
        placed, shares = self._greedy()
        self._snapshot.undo(mark)
        if placed.total() == self.slots.number:
            return self.place(placed, shares)
        found = self._search(self.slots.number, self.steps)
        return found and self.place(*found)

    def place(self, selection: Selection, shares: list[Share]) -> Places:
        """Take these shares for the first members of these kinds. Returns the members with their nodes."""
        places = hand_out(self._snapshot, self._first_of(selection), self._classes, shares)
        taken = Counter((self._preferring[pod.uid], self._snapshot.cluster.capacity.rows[node]) for pod, node in places)
        self._take((member, row, count) for (member, row), count in taken.items())
        return places

    def _fill(self, chosen: Sequence[Pod], ways: Sequence[_Way]) -> tuple[Places | None, Counts]:
        """Places for all of them; or None, with the number of members without room by class, from the first order."""
        counts = Counter(self._classes[pod.uid] for pod in chosen)
        short: Counts = {member: count - self.room[member] for member, count in counts.items()}
        short = {member: missing for member, missing in short.items() if missing > 0}
        if short:
            return None, short
        largest = [member for member in self._largest if member in counts]
        scarcest = sorted(largest, key=lambda member: self.room[member] / counts[member])
        orders = [scarcest] if largest == scarcest else [scarcest, largest]
        same = self._preferring is self._classes
        split = counts if same else Counter(self._preferring[pod.uid] for pod in chosen)
        for order, way in ((order, way) for way in ways for order in orders):
            shares, missing = self._fill_in(order, split, way)
            if not missing:
                return hand_out(self._snapshot, chosen, self._preferring, shares), {}
            short = short or missing
        return None, short

    def _fill_in(self, order: Sequence[MemberClass], counts: Counts, way: _Way) -> tuple[list[Share], Counts]:
        """Place `counts` of each class, with or without preferences; `order` lists the classes without preferences."""
        mark = self._snapshot.mark()
        shares: list[Share] = []
        position = {member: at for at, member in enumerate(order)}
        left = {member: counts[member] for member in sorted(counts, key=lambda each: position[each.impartial])}
        while left:
            before = len(shares)
            for member, count in list(left.items()):
                placed = fill_class(self._snapshot, member, count, strategy=way[0], prefer=way[1])
                shares += placed
                left[member] = missing = count - sum(number for _, _, number in placed)
                if not missing:
                    del left[member]
                elif member.impartial not in self._helped:
                    self._snapshot.undo(mark)
                    return [], {member.impartial: missing}
            if left and len(shares) == before:
                self._snapshot.undo(mark)
                return [], Counter(member.impartial for member, missing in left.items() for _ in range(missing))
        return shares, {}

    def _greedy(self) -> tuple[Counter[Kind], list[Share]]:
        """Pack and take as many members as fit, the smallest first."""
        slots = self.slots
        placed: Counter[Kind] = Counter()
        shares: list[Share] = []
        kinds = sorted(self._kinds.items(), key=lambda item: (self._rank[item[0][0]], item[0][1]))
        before = -1
        while placed.total() > before:
            before = placed.total()
            for kind, count in kinds:
                member, role = kind
                most = min(count - placed[kind], slots.open_to(role))
                if most:
                    taken = fill_class(self._snapshot, member, most)
                    shares += taken
                    number = sum(count for _, _, count in taken)
                    placed[kind] += number
                    slots = slots.without(role, number)
            # Further rounds are only for classes to which other members may have opened rows.
            kinds = [(kind, count) for kind, count in kinds if kind[0] in self._helped]
        return +placed, shares

    def _search(self, number: int, steps: Steps) -> tuple[Selection, list[Share]] | None:
        """Search places for `number` of the members, by the exhaustive search alone; nothing is taken."""
        kinds = {kind: min(count, self.room[kind[0]]) for kind, count in self._kinds.items() if self.room[kind[0]]}
        classes = [member for member in self._largest if self.room[member]]
        if len(kinds) > search.MOST_KINDS:
            steps.break_off()
            return None
        # If the room of one row depends on other rows, members are tried one by one.
        dependent = any_couples(self._snapshot, classes)
        attempt = Backtracking(self._snapshot, classes, steps) if dependent else Search(self._snapshot, classes, steps)
        # No selection is built once the steps have ended: even the first costs work, and a stack frame for each kind.
        for selection in () if steps.ended else selections(list(kinds.items()), self.slots, number):
            if steps.ended:
                break
            shares = attempt.find(selection)
            if shares is not None:
                return selection, shares
        return None

    # Choosing members

    def _kind(self, pod: Pod) -> Kind:
        return self._classes[pod.uid], role_of(pod)

    def _by_size(self) -> list[Pod]:
        return sorted(self._members, key=lambda pod: self._size[self._classes[pod.uid]])

    def _dispensable(self, chosen: Sequence[Pod], short: Counts, passed: set[str]) -> set[str]:
        """The last members of the classes without enough room, as many as lack room, that their roles do not need."""
        missing = dict(short)
        there = Counter(self._kind(pod)[1] for pod in self._members if pod.uid not in passed)
        dispensable = set()
        for pod in reversed(chosen):
            member, role = self._kind(pod)
            if missing.get(member, 0) > 0 and there[role] > self.slots.roles.get(role, 0):
                missing[member] -= 1
                there[role] -= 1
                dispensable.add(pod.uid)
        return dispensable

    def _first_of(self, selection: Selection) -> list[Pod]:
        left = Counter(selection)
        chosen = []
        for pod in self._members:
            kind = self._kind(pod)
            if left[kind] > 0:
                left[kind] -= 1
                chosen.append(pod)
        return chosen

    def _left_out(self, placed: Selection, slots: Slots) -> MemberClass:
        """The class of the first member without a place that could fill one of the open slots."""
        for kind, count in self._kinds.items():
            if placed.get(kind, 0) < count and slots.open_to(kind[1]):
                return kind[0]
        return next(iter(self.room))

    def _missing(self, placed: Counter[Kind], slots: Slots) -> Counter[MemberClass]:
        """The classes, with counts, of members without a place that would fill the open slots."""
        missing: Counter[MemberClass] = Counter()
        left = (self._kinds - placed).items()
        order = sorted(left, key=lambda item: (only_by_name(item[0][0]), self._rank[item[0][0]]))
        for (member, role), count in order:
            number = min(count, slots.open_to(role))
            if number:
                missing[member] += number
                slots = slots.without(role, number)
        return missing

    def _take(self, shares: Iterable[Share]) -> None:
        for member, row, number in shares:
            self._snapshot.take(row, member, number)
