"""The past of the page: what each gang did, and a sample of the whole cluster each minute, for a day and in 10 MB.

Both are things of the board, `past/NAMESPACE/NAME` and `minute/SECONDS`, so that browsers get them like everything
else. A gang that was deleted, or created anew under its name, stays as `past/NAMESPACE/NAME/SECONDS` of its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from gangsched.core.objects.declaration import GroupKey
from gangsched.page.things import Thing
from gangsched.views.activity import Activity, Step, activity, recorded
from gangsched.views.cluster_overview import Totals
from gangsched.views.group_row import GroupRow

KEPT_S = 24 * 3600.0
"""How long, in seconds, the past is kept."""
SAMPLE_S = 60.0
"""Time between two samples, in seconds."""
MOST_BYTES = 10 << 20
"""Maximum size of the past. Beyond it, the gangs that ended first are forgotten, and then no further one is kept."""
MOST_STEPS = 32
"""Maximum number of steps of one gang; the oldest are forgotten."""
_JSON = msgspec.json.Encoder()


@dataclass(slots=True)
class _Course:
    """What one gang did. `thing` shows it; `row` is its last known state, None once it was deleted, when it `ended`."""

    key: GroupKey
    steps: list[Step]
    row: GroupRow | None = None
    ended: float = 0.0
    thing: Thing = ("", b"")

    def update(self, name: str) -> None:
        key, ends = self.key, self.ended or None
        steps = [(step.value, round(at, 3)) for step, at in self.steps]
        content = {"namespace": key.namespace, "name": key.name, "steps": steps, "ended": ends}
        self.thing = (name, _JSON.encode(content))

    @property
    def size(self) -> int:
        name, content = self.thing
        return len(name) + len(content)


class History:
    """The past, as far as it was noted."""

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._present: dict[GroupKey, _Course] = {}
        self._over: deque[_Course] = deque()
        self._samples: deque[Thing] = deque(maxlen=int(KEPT_S / SAMPLE_S))
        self._sampled_at = float("-inf")
        self.size = 0
        """The size of all gangs' courses, in bytes."""

    def noted(self, rows: Iterable[GroupRow], totals: Totals, now: float) -> Iterator[Thing]:
        """Note the present state, and yield all things of the past. It may be consumed over several moments."""
        gone = set(self._present)
        for row in rows:
            gone.discard(row.key)
            course = self._note(row, now)
            if course is not None:
                yield course.thing
        for key in gone:
            self._end(key, now)
        if now - self._sampled_at >= SAMPLE_S:
            self._sampled_at = now
            self._samples.append(_sample(totals, now))
        self._forget(now)
        yield from (course.thing for course in self._over)
        yield from self._samples

    def _note(self, row: GroupRow, now: float) -> _Course | None:
        course = self._present.get(row.key)
        if course is not None and course.row is row:
            return course
        if course is not None and course.row is not None and _is_another(course.row, row):
            self._end(row.key, now)
            course = None
        if course is None:
            if self.size > self._most:
                return None
            course = self._present[row.key] = _Course(row.key, list(recorded(row)))
        before = course.size
        self._advance(course, row, now)
        self.size += course.size - before
        return course

    def _advance(self, course: _Course, row: GroupRow, now: float) -> None:
        """Add the step to what the gang does now. The record may know its time better than whoever looks."""
        done, last = activity(row), course.steps[-1][0] if course.steps else None
        preempted = course.row is not None and row.preemptions > course.row.preemptions
        if done is Activity.WAITING and (preempted or last is Activity.PREEMPTED):
            done = Activity.PREEMPTED
        if done is not last:
            waits = done in (Activity.WAITING, Activity.PREEMPTED)
            begun = row.since if waits else dict(recorded(row)).get(done, 0.0)
            earliest = course.steps[-1][1] if course.steps else 0.0
            course.steps.append((done, begun if earliest <= begun <= now and begun else now))
            del course.steps[:-MOST_STEPS]
        course.row = row
        course.update(f"past/{row.key.namespace}/{row.key.name}")

    def _end(self, key: GroupKey, now: float) -> None:
        course = self._present.pop(key)
        self.size -= course.size
        course.row, course.ended = None, now
        course.update(f"past/{key.namespace}/{key.name}/{now:.3f}")
        self.size += course.size
        self._over.append(course)

    def _forget(self, now: float) -> None:
        while self._over and (self.size > self._most or now - self._over[0].ended > KEPT_S):
            self.size -= self._over.popleft().size


def _is_another(before: GroupRow, row: GroupRow) -> bool:
    """Whether a PodGroup was created anew under the name. A gang without one is as old as its oldest pod."""
    return before.declared and row.declared and before.created != row.created


def _sample(totals: Totals, now: float) -> Thing:
    use = {name: round(totals.use(name), 4) for name in totals.main}
    content = {"at": round(now, 3), "running": totals.running, "waiting": totals.waiting, "use": use}
    return f"minute/{now:.0f}", _JSON.encode(content)
