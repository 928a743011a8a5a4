"""The pictures of docs/concepts.md, drawn by make docs from gangsched's decisions and its table of phases.

Each picture has its own background and colours for light and dark themes, so that it is readable in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import gangsched
from gangsched.core.gang.states import TABLE
from gangsched.core.objects.record import Phase

FOLDER = Path("docs/images")
_STYLE = """
    .bg { fill: #ffffff } .ink { fill: #1b2733 } .soft { fill: #5b6875 } .line { fill: none; stroke: #8592a0 }
    .gang { fill: #2f6fb3 } .other { fill: #9aa7b4 } .wait { fill: none; stroke: #2f6fb3 } .box { fill: #e8f0f9 }
    .bad { fill: #fbeedd } .end { fill: #eceff2 } .tip { fill: #8592a0 }
    @media (prefers-color-scheme: dark) {
      .bg { fill: #14191f } .ink { fill: #e3e9ef } .soft { fill: #a3b0bd } .line { stroke: #75828f }
      .gang { fill: #6aa7e6 } .other { fill: #5b6875 } .wait { stroke: #6aa7e6 } .box { fill: #1f3348 }
      .bad { fill: #47341c } .end { fill: #2a323b } .tip { fill: #75828f }
    }"""
_SLOTS, _STEP, _RADIUS = 4, 38, 13
_MINIMUM, _MEMBERS = 4, 6

Json = dict[str, Any]


def pages() -> dict[Path, str]:
    """Each picture by its path, relative to the repository."""
    return {FOLDER / f"{name}.svg": made() for name, made in _PICTURES.items()}


def _quorum() -> str:
    """The same gang twice, with too little room and with enough, as gangsched decides."""
    parts: list[str] = []
    for left, head, taken in (
        (30, "Room for 3: nothing is bound", (3, 2)),
        (480, "Room for 5: the quorum is bound", (2, 1)),
    ):
        decided = gangsched.simulate(list(_objects(taken)), [])
        placed = Counter(decided.of("gang").placements.values())
        waiting = _MEMBERS - placed.total()
        if placed.total() not in (0, 5):
            raise AssertionError(f"the picture says something else than gangsched decides: {decided.of('gang')}")
        parts.append(_text(left, 34, head, size=17, bold=True))
        for row, used in enumerate(taken):
            name, top = f"node-{row + 1}", 52 + 78 * row
            parts.append(f'<rect class="line" x="{left}" y="{top}" width="390" height="66" rx="8"/>')
            parts.append(_text(left + 12, top + 20, f"node {row + 1}", kind="soft", size=12))
            dots = ["other"] * used + ["gang"] * placed[name]
            parts += [_dot(left + 90 + _STEP * at, top + 33, kind) for at, kind in enumerate(dots)]
            free = range(len(dots), _SLOTS)
            parts += [_dot(left + 90 + _STEP * at, top + 33, "line", dashed=True) for at in free]
        parts.append(_text(left, 236, "waiting", kind="soft", size=12))
        parts += [_dot(left + 90 + _STEP * at, 232, "wait") for at in range(waiting)]
    said = ("Three members fit, and the quorum is four:", "none is bound, and the room is free for other groups.")
    then = ("The quorum fits: it is bound, and the fifth member too.", "The sixth follows when there is room.")
    parts += [_text(30, 276 + 20 * at, line) for at, line in enumerate(said)]
    parts += [_text(480, 276 + 20 * at, line) for at, line in enumerate(then)]
    what = "A gang of six pods with minMember 4: with room for three none is bound, with room for five five are"
    return _svg(900, 316, what, parts)


def _objects(taken: Sequence[int]) -> Iterator[Json]:
    for row, used in enumerate(taken):
        name = f"node-{row + 1}"
        room = {"cpu": str(_SLOTS), "pods": "110"}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": room}}
        for at in range(used):
            yield _pod(f"other-{row}-{at}", nodeName=name)
    yield {
        "apiVersion": "gangsched.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"minMember": _MINIMUM},
    }
    for at in range(_MEMBERS):
        yield _pod(f"gang-{at}", labels={"gangsched.io/pod-group": "gang"}, schedulerName="gangsched")


def _pod(name: str, labels: Mapping[str, str] | None = None, **spec: str) -> Json:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def _places() -> str:
    """A driver whose executors arrive later."""
    stages = (
        ("1. The driver exists", 1, 4, "It is bound, and four places", "are held for its executors."),
        ("2. Executors come", 3, 2, "Each takes a place before", "anything else is planned."),
        ("3. All have come", 5, 0, "The group is Scheduled,", "and nothing is held."),
    )
    parts: list[str] = []
    for number, (head, bound, held, *said) in enumerate(stages):
        left = 30 + 290 * number
        parts.append(_text(left, 34, head, size=17, bold=True))
        parts.append(f'<rect class="line" x="{left}" y="52" width="260" height="66" rx="8"/>')
        parts += [_dot(left + 40 + 45 * at, 85, "gang") for at in range(bound)]
        parts += [_dot(left + 40 + 45 * at, 85, "wait", dashed=True) for at in range(bound, bound + held)]
        parts += [_text(left, 146 + 20 * at, line) for at, line in enumerate(said)]
    what = "A driver is bound while four places are held for its executors, which take them one by one"
    return _svg(900, 186, what, parts)


_AT: Mapping[Phase, tuple[int, int, str]] = {
    Phase.PENDING: (20, 60, "box"),
    Phase.QUEUED: (170, 60, "box"),
    Phase.BINDING: (320, 60, "box"),
    Phase.SCHEDULED: (470, 60, "box"),
    Phase.RUNNING: (620, 60, "box"),
    Phase.SUCCEEDED: (770, 60, "end"),
    Phase.TIMED_OUT: (170, 200, "bad"),
    Phase.RESERVED: (320, 200, "box"),
    Phase.DEGRADED: (545, 200, "bad"),
    Phase.FAILED: (770, 200, "end"),
}
_WIDE, _HIGH = 110, 40
STEPS: Sequence[tuple[Phase, Phase]] = (
    (Phase.PENDING, Phase.QUEUED),
    (Phase.QUEUED, Phase.BINDING),
    (Phase.BINDING, Phase.SCHEDULED),
    (Phase.SCHEDULED, Phase.RUNNING),
    (Phase.RUNNING, Phase.SUCCEEDED),
    (Phase.QUEUED, Phase.TIMED_OUT),
    (Phase.TIMED_OUT, Phase.QUEUED),
    (Phase.QUEUED, Phase.RESERVED),
    (Phase.RESERVED, Phase.BINDING),
    (Phase.BINDING, Phase.DEGRADED),
    (Phase.RUNNING, Phase.DEGRADED),
    (Phase.DEGRADED, Phase.SCHEDULED),
    (Phase.RUNNING, Phase.FAILED),
)
"""The drawn steps, in the order of the list in docs/concepts.md that explains them."""


def _phases() -> str:
    """The usual way through the phases; each step must be one of the table's."""
    possible = {(start, row.then) for row in TABLE for start in row.starts}
    tip = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    parts = [f'<marker id="tip" {tip}><path class="tip" d="M0 0 8 4 0 8z"/></marker>']
    for number, (start, then) in enumerate(STEPS, 1):
        if (start, then) not in possible:
            raise AssertionError(
                f"{start} does not lead to {then} in the table of phases: change documentation/pictures.py"
            )
        (x1, y1), (x2, y2) = _ends(start, then)
        parts.append(f'<line class="line" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" marker-end="url(#tip)"/>')
        x, y = ((x1 + x2) // 2 - 4, y1 - 7) if y1 == y2 else ((x1 + x2) // 2 + 9, (y1 + y2) // 2 + 4)
        parts.append(_text(x, y, str(number), kind="soft", size=12))
    for phase, (x, y, kind) in _AT.items():
        parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="8"/>')
        parts.append(_text(x + _WIDE // 2, y + 25, phase.value, middle=True))
    parts.append(_text(20, 34, "The phases of a group", size=17, bold=True))
    return _svg(900, 262, "The usual way of a group: Pending, Queued, Binding, Scheduled, Running, Succeeded", parts)


def _ends(start: Phase, then: Phase) -> tuple[tuple[int, int], tuple[int, int]]:
    """The ends of an arrow, on the sides that face each other and next to an arrow in the opposite direction."""
    (x1, y1, _), (x2, y2, _) = _AT[start], _AT[then]
    if y1 == y2:
        return (x1 + _WIDE, y1 + _HIGH // 2), (x2 - 2, y2 + _HIGH // 2)
    back = (then, start) in STEPS
    aside = (-12 if y1 < y2 else 12) if back else 0
    towards = max(-40, min(40, (x2 - x1) // 4))
    down = y1 < y2
    first = (x1 + _WIDE // 2 + aside + towards, y1 + (_HIGH if down else 0))
    last = (x2 + _WIDE // 2 + aside - towards, y2 + (-2 if down else _HIGH + 2))
    return first, last


_PICTURES = {"quorum": _quorum, "places": _places, "phases": _phases}


def _dot(x: int, y: int, kind: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<circle class="{kind}"{dashes} stroke-width="2" cx="{x}" cy="{y}" r="{_RADIUS}"/>'


def _text(
    x: int, y: int, text: str, *, kind: str = "ink", size: int = 14, bold: bool = False, middle: bool = False
) -> str:
    more = (' font-weight="600"' if bold else "") + (' text-anchor="middle"' if middle else "")
    return f'<text class="{kind}" x="{x}" y="{y}" font-size="{size}"{more}>{escape(text)}</text>'


def _svg(width: int, height: int, what: str, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" '
        f'stroke-width="1.5" role="img" aria-label="{escape(what, quote=True)}.">'
    )
    note = "<!-- Generated by make docs from documentation/pictures.py: change that, not this file. -->"
    lines = [head, note, f"<style>{_STYLE}\n</style>", f'<rect class="bg" width="{width}" height="{height}"/>', *parts]
    return "\n  ".join(lines) + "\n</svg>\n"
