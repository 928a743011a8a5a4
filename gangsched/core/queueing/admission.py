"""Limits how many waiting groups of one namespace are tried; groups beyond the limit stay outside until others leave.

A group waits from the time it is complete until its quorum is placed. Groups inside stay; the others keep their order
and enter one by one, so that a flood of groups, whatever their priority, costs other namespaces nothing. A group in the
back-off after a time-out gives way to one outside, so that groups that never fit do not keep all others out for ever,
and so does one that was refused while no time counts for it: it never times out.
Repairs, scheduled groups and pods without a group are always tried. Groups whose attempt began under a former leader
enter first.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.indexes import Grouped
from gangsched.core.objects.wording import number_of
from gangsched.core.queueing.lines import Lines, unless_among
from gangsched.core.queueing.order import order_key

_BEGUN, _NEW, _BACKING_OFF = range(3)


class Admission:
    """At most `most` gangs of each namespace are inside. Newcomers have asked to enter since the last `let_in`.

    `stirred`: some have asked since then, or there is room for some that are outside.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = Grouped[GroupKey, str]()
        self._backing_off = Grouped[GroupKey, str]()
        self._outside = Lines()
        self._newcomers: dict[GroupKey, None] = {}
        self._giving_way: list[GroupKey] = []
        self.stirred = False
        self._stuck: set[GroupKey] = set()

    def admits(self, gang: Gang, assessment: Assessment, now: float) -> bool:
        """Whether the gang may be tried now. If it may not, `let_in` admits it or sets its note."""
        key, want = gang.key, assessment.want
        if gang.plain or gang.record.scheduled_at or want.quorum is None or want.repair:
            self.drop(key)
            gang.wait.enter()
            return True
        refused = gang.record.capped is not None or gang.wait.refusal is not None
        if not gang.wait.outside:
            # Outside no clock runs, of whatever group.
            stuck = refused and not gang.record.clock_start and now >= gang.record.retry_at
            (self._stuck.add if stuck else self._stuck.discard)(key)
        backing_off = now < gang.record.retry_at or key in self._stuck
        begun = 0 < gang.record.clock_start < now
        rank = (_BACKING_OFF if backing_off else _BEGUN if begun else _NEW, order_key(gang, assessment))
        outside = self._outside.lists.get((key.namespace,))
        # A gang that would be the next to enter stays: otherwise two that back off would swap for ever.
        stays = not backing_off or not outside or rank <= outside[0][0]
        if stays and key in self._inside:
            if backing_off:
                self._backing_off.put(key, key.namespace)
            else:
                self._backing_off.drop(key)
            return True
        self._go(key)
        if not backing_off and (others := [*self._backing_off.of(key.namespace)]):
            self._giving_way.append(others[-1])
            self._backing_off.drop(others[-1])
        self._outside.file(key, rank, ((key.namespace,),))
        self._newcomers[key] = None
        self.stirred = True
        return False

    def go_on(self, gang: Gang) -> None:
        """Keep a gang inside whose attempt began under a former leader, if there is room."""
        inside = self._inside.of(gang.key.namespace)
        if gang.record.clock_start and not gang.plain and len(inside) < self._most:
            self._inside.put(gang.key, gang.key.namespace)

    def drop(self, key: GroupKey) -> None:
        """Forget a gang that does not wait any more."""
        self._go(key)
        self._stuck.discard(key)
        self._outside.drop(key)
        self._newcomers.pop(key, None)

    def _go(self, key: GroupKey) -> None:
        """Make room inside, if the gang was there."""
        if key in self._inside:
            self.stirred |= bool(self._outside.lists)
            self._inside.drop(key)
            self._backing_off.drop(key)

    def let_in(self, gangs: Mapping[GroupKey, Gang]) -> tuple[list[GroupKey], list[GroupKey], list[GroupKey]]:
        """Admit as many gangs as have room, in order.

        Returns those that entered, those that are newly kept outside, and those inside that back off and must be
        reconciled because another gang has come.
        """
        self.stirred = False
        entered, giving_way, self._giving_way = [], self._giving_way, []
        for name, outside in [*self._outside.lists.items()]:
            inside = len(self._inside.of(str(name[0])))
            entering = [key for _, key in outside[: max(0, self._most - inside)]]
            for key in entering:
                self._outside.drop(key)
                self._inside.put(key, key.namespace)
                self._newcomers.pop(key, None)
                gangs[key].wait.enter()
            entered += entering
        kept_out = [key for key in self._newcomers if not gangs[key].wait.outside]
        for key in kept_out:
            gangs[key].wait.stay_outside(self._note(key.namespace))
        self._newcomers.clear()
        return entered, kept_out, giving_way

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence."""
        yield from unless_among("those admitted", self._inside, alive)
        yield from unless_among("those for which no time counts", self._stuck, alive)
        yield from self._outside.validate("those outside", alive)
        yield from unless_among("those inside that back off", self._backing_off, self._inside)
        yield from unless_among("the newcomers", self._newcomers, self._outside)
        if any(key in self._outside for key in self._inside):
            yield "a gang is admitted and outside"
        if any(len(keys) > self._most for keys in self._inside.groups().values()):
            yield "more gangs are admitted than the limit allows"

    def _note(self, namespace: str) -> str:
        return (
            f"Namespace {namespace} already has {number_of(self._most, 'waiting group')}, as many as are tried at a "
            "time (namespaceLimits.waitingGroups); this group is tried in its turn, once one of them is bound, deleted "
            "or times out: delete groups that are not needed, or ask the cluster administrator to raise the limit."
        )
