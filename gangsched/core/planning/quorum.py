"""Chooses the members of a gang's quorum and a node for each of them.

Members of one class (equal shape, excluded by the same existing pods) are counted, not iterated: how many of them a
node takes is arithmetic on the capacity matrix, which is exact for a gang of one class. Several classes are a packing
problem: they are tried scarcest first, then largest first, and small cases that still fail are searched exhaustively
within a budget. The first members are tried; if they do not fit together, any quorum is looked for (the smallest
members, then, in small cases, every choice), and `choice` makes it the first one in order that fits. Nothing else
depends on the order of members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.strategy import Strategy
from gangsched.core.planning import search
from gangsched.core.planning.backtracking import Backtracking
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.choice import choose, filling_up, first_of_kinds, in_order, left_out
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import any_couples, helped, hoped
from gangsched.core.planning.expansion import only_by_name
from gangsched.core.planning.filling import Counts, Places, asks_too_much_in_all, fill_class, hand_out
from gangsched.core.planning.search import Kind, Search, Selection, Share, Slots, Steps, selections
from gangsched.core.planning.strategies import PACK

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
        steps: int = search.STEPS,
    ) -> None:
        self.slots = slots
        self.steps = Steps(steps, budget=snapshot.budget)
        every = dict.fromkeys(classes.values())
        self.room = {member: int(hoped(snapshot, member, every).sum()) for member in every}
        self._snapshot = snapshot
        self._classes = classes
        self._preferring = preferring
        self._members = members
        self._strategy, self._prefer = strategy, prefer
        self._kinds = Counter(map(self._kind, members))
        self._usable = members
        if any(count > self.room[member] for (member, _), count in self._kinds.items()):
            self._usable = first_of_kinds(members, self._kind, {kind: self.room[kind[0]] for kind in self._kinds})
        self._largest = list(self.room)
        if len(self._largest) > 1:
            self._largest.sort(key=lambda member: (-self._size[member], member.in_order()))

    def find(self) -> Places | None:
        """Find and take a place for each member of the quorum; None, with nothing taken, if there is none.

        None is certain unless the steps have ended.
        """
        if not self.slots.number:
            return []
        if self._hopeless():
            return None
        mark = self._snapshot.mark()
        places = self._any()
        if places is None or len(self._usable) == self.slots.number:
            return places
        first = choose(self._usable, self.slots, set()) or ()
        if {pod.uid for pod, _ in places} == {pod.uid for pod in first}:
            return places
        self._snapshot.undo(mark)
        return self._first_in_order() or self._any()

    def _any(self) -> Places | None:
        """Find and take places for any quorum; for the first members, if they fit."""
        for arranged in (list, self._by_size):
            members = arranged(self._usable)
            chosen = choose(members, self.slots, set())
            places = self._fill(chosen) if chosen is not None else None
            if places is not None:
                return places
            if len(members) == self.slots.number:
                break
        return self._packed_or_searched()

    def smallest(self) -> Counter[MemberClass]:
        """The classes, with counts, of a quorum made of the smallest members."""
        by_size = self._by_size(self._members)
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
            more = self._search(number, steps)
            self._take(shares if more is None else more[1])
            if more is None:
                break
            placed, shares = Counter(more[0]), more[1]
        slots = self.slots
        for (_, role), count in placed.items():
            slots = slots.without(role, count)
        failing = left_out(self._kinds, placed, slots) or next(iter(self.room))
        return placed.total(), failing, self._missing(placed, slots)

    # What is asked only of several classes, or once the first try has failed.

    @cached_property
    def _size(self) -> Mapping[MemberClass, float]:
        return {member: search.size(self._snapshot, member) for member in self.room}

    @cached_property
    def _helped(self) -> Collection[MemberClass]:
        return helped(self._snapshot, self.room)

    @cached_property
    def _rank(self) -> Mapping[MemberClass, int]:
        return {member: at for at, member in enumerate(reversed(self._largest))}

    def _ways(self) -> Iterator[_Way]:
        yield self._strategy, self._prefer
        scores, classes = self._snapshot.scores, set(self._preferring.values())
        preferential = any(member.prefer or scores.prefers(member) for member in classes)
        if self._strategy is not PACK or self._prefer or preferential:
            # Strategies and preferences never decide whether a gang fits: one that only fits packed is packed.
            yield _PACKED

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

    def _first_in_order(self) -> Places | None:
        """Find and take places for the first choice of members that fits."""
        mark, accepted = self._snapshot.mark(), list[Pod]()
        steps = Steps(self.steps.left, budget=self._snapshot.budget)

        def fits(members: Sequence[Pod]) -> bool:
            if self._with(members, steps) is None:
                return False
            self._snapshot.undo(mark)
            accepted[:] = members
            return True

        in_order(self._usable, self.slots, kind=self._kind, fits=fits)
        return self._with(accepted, steps) if accepted else None

    def _with(self, members: Sequence[Pod], steps: Steps) -> Places | None:
        """Find and take places for a quorum that has all of these members."""
        uids = {pod.uid for pod in members}
        others = (pod for pod in self._by_size(self._usable) if pod.uid not in uids)
        places = self._fill(self.slots.first_of([*members, *others]))
        if places is None:
            selected = self._search(self.slots.number, steps, least=Counter(map(self._kind, members)))
            places = selected and self.place(*selected)
        return places

    def _packed_or_searched(self) -> Places | None:
        mark = self._snapshot.mark()
        placed, shares = self._greedy()
        self._snapshot.undo(mark)
        if placed.total() == self.slots.number:
            return self.place(placed, shares)
        selected = self._search(self.slots.number, self.steps)
        return selected and self.place(*selected)

    def place(self, selection: Selection, shares: list[Share]) -> Places:
        """Take these shares for the first members of these kinds. Returns the members with their nodes."""
        places = hand_out(self._snapshot, first_of_kinds(self._members, self._kind, selection), self._classes, shares)
        taken = Counter((self._preferring[pod.uid], self._snapshot.cluster.capacity.rows[node]) for pod, node in places)
        self._take((member, row, count) for (member, row), count in taken.items())
        return places

    def _fill(self, chosen: Sequence[Pod]) -> Places | None:
        """Places for all of them; None if they do not fit in the orders and ways that are tried."""
        counts = Counter([self._classes[pod.uid] for pod in chosen])
        if any(count > self.room[member] for member, count in counts.items()):
            return None
        largest = [member for member in self._largest if member in counts]
        scarcest = sorted(largest, key=lambda member: self.room[member] / counts[member])
        orders = [scarcest] if largest == scarcest else [scarcest, largest]
        same = self._preferring is self._classes
        split = counts if same else Counter(self._preferring[pod.uid] for pod in chosen)
        for way in self._ways():
            for order in orders:
                shares = self._fill_in(order, split, way)
                if shares is not None:
                    return hand_out(self._snapshot, chosen, self._preferring, shares)
        return None

    def _fill_in(self, order: Sequence[MemberClass], counts: Counts, way: _Way) -> list[Share] | None:
        """Place `counts` of each class, with or without preferences; `order` lists the classes without preferences."""
        mark = self._snapshot.mark()
        shares: list[Share] = []
        position = {member: at for at, member in enumerate(order)}
        left = {member: counts[member] for member in sorted(counts, key=lambda member: position[member.impartial])}
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
                    return None
            if left and len(shares) == before:
                self._snapshot.undo(mark)
                return None
        return shares

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

    def _search(
        self, number: int, steps: Steps, least: Selection | None = None
    ) -> tuple[Selection, list[Share]] | None:
        """Search places for `number` of the members, at `least` these of each kind; nothing is taken."""
        kinds = {kind: min(count, self.room[kind[0]]) for kind, count in self._kinds.items() if self.room[kind[0]]}
        classes = [member for member in self._largest if self.room[member]]
        if len(kinds) > search.MOST_KINDS:
            steps.break_off()
            return None
        # If the room of one row depends on other rows, members are tried one by one.
        dependent = any_couples(self._snapshot, classes)
        attempt = Backtracking(self._snapshot, classes, steps) if dependent else Search(self._snapshot, classes, steps)
        # No selection is built once the steps have ended: even the first costs work, and a stack frame for each kind.
        for selection in (
            ()
            if steps.ended
            else selections(
                [(kind, count, least.get(kind, 0) if least else 0) for kind, count in kinds.items()], self.slots, number
            )
        ):
            if steps.ended:
                break
            shares = attempt.find(selection)
            if shares is not None:
                return selection, shares
        return None

    # Choosing members

    def _kind(self, pod: Pod) -> Kind:
        return self._classes[pod.uid], role_of(pod)

    def _by_size(self, members: Sequence[Pod]) -> list[Pod]:
        return sorted(members, key=lambda pod: self._size[self._classes[pod.uid]])

    def _missing(self, placed: Counter[Kind], slots: Slots) -> Counter[MemberClass]:
        """The classes, with counts, of members without a place that would fill the open slots."""
        left = (self._kinds - placed).items()
        return filling_up(sorted(left, key=lambda item: (only_by_name(item[0][0]), self._rank[item[0][0]])), slots)

    def _take(self, shares: Iterable[Share]) -> None:
        for member, row, number in shares:
            self._snapshot.take(row, member, number)
