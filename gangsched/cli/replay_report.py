"""What `gangsched replay` prints: a table that compares strategies and baselines, or JSON."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gangsched.core.objects.wording import first_named

if TYPE_CHECKING:
    from gangsched.whatif.measures import Measures

_NAMED = 5
_OF_SIZES = ("mean", "p50", "p95", "p99")


def shown_time(seconds: float) -> str:
    """The time as people read it."""
    from gangsched.core.objects.duration import format_duration  # noqa: PLC0415 - see the package

    return format_duration(round(seconds, 1))


def as_text(results: Sequence[Measures], baselines: Sequence[str]) -> Iterator[str]:
    """The table, with a column for each result; those of `baselines` are the last ones."""
    rows = list(_rows(results))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for head, *cells in rows:
        filled = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([head.ljust(widths[0]), *filled]).rstrip()
    for place, result in enumerate(results):
        if result.never:
            named = first_named(result.never, _NAMED)
            why = ", because they do not fit" if place < len(results) - len(baselines) else ""
            yield ""
            yield from textwrap.wrap(
                f"{result.strategy}: never bound{why}: {named}.",
                shutil.get_terminal_size((80, 24)).columns,
                break_on_hyphens=False,
            )


def _rows(results: Sequence[Measures]) -> Iterator[tuple[str, ...]]:
    first = results[0]
    yield "", *(result.strategy for result in results)
    yield "bound", *(f"{result.bound} of {result.gangs}" for result in results)
    for name in first.wait_s:
        yield f"wait, {name}", *(shown_time(result.wait_s[name]) for result in results)
    if len(first.sizes) > 1:
        for size in first.sizes:
            for name in _OF_SIZES:
                waits = (shown_time(result.sizes[size].wait_s[name]) for result in results)
                yield f"wait of size {size}, {name}", *waits
            late = (f"{result.sizes[size].waiting} of {result.sizes[size].gangs}" for result in results)
            yield f"size {size} still waiting", *late
    for name in ("mean", "p95"):
        yield f"completion, {name}", *(shown_time(result.completion_s[name]) for result in results)
        yield f"bounded slowdown, {name}", *(f"{result.slowdown[name]:.1f}" for result in results)
    yield "until the last end", *(shown_time(result.makespan_s) for result in results)
    for name in first.used:
        yield f"{name} in use", *(f"{result.used[name]:.1%}" for result in results)
        yield f"{name} in use until the last arrival", *(f"{result.used_arriving[name]:.1%}" for result in results)
        yield f"{name} fragmented", *(f"{result.fragmented[name]:.1%}" for result in results)
    if any(result.reserved for result in results):
        for name in first.idle:
            yield f"{name} reserved and idle", *(f"{result.idle[name]:.1%}" for result in results)
        yield "places reserved for", *(f"{result.reserved} gangs" for result in results)
        yield "bound later than reserved", *(str(result.late) for result in results)
    if any(result.foretold for result in results):
        yield "start foretold for", *(f"{result.foretold} gangs" for result in results)
        shares = (result.covered / result.foretold if result.foretold else 0.0 for result in results)
        yield "started as foretold", *(f"{share:.1%}" for share in shares)
        yield "median error of the start", *(f"{result.error:.1%} of the wait" for result in results)
    if any(result.preemptions for result in results):
        yield "gangs preempted", *(str(result.preemptions) for result in results)
        yield "work lost", *(f"{result.lost:.1%}" for result in results)


def as_json(results: Sequence[Measures], baselines: Sequence[str]) -> Mapping[str, object]:
    """All figures, of strategies and of baselines."""
    first = len(results) - len(baselines)
    return {
        "strategies": [{"strategy": result.strategy, **_figures(result)} for result in results[:first]],
        "baselines": [{"baseline": result.strategy, **_figures(result)} for result in results[first:]],
    }


def _figures(result: Measures) -> dict[str, object]:
    return {
        "gangs": result.gangs,
        "bound": result.bound,
        "neverBound": list(result.never),
        "waitSeconds": dict(result.wait_s),
        "sizes": {
            name: {"gangs": size.gangs, "waitingAtLastArrival": size.waiting, "waitSeconds": dict(size.wait_s)}
            for name, size in result.sizes.items()
        },
        "completionSeconds": dict(result.completion_s),
        "boundedSlowdown": dict(result.slowdown),
        "makespanSeconds": result.makespan_s,
        "preemptions": result.preemptions,
        "lost": result.lost,
        "reserved": result.reserved,
        "late": result.late,
        "foretold": result.foretold,
        "covered": result.covered,
        "startError": result.error,
        "used": dict(result.used),
        "usedUntilLastArrival": dict(result.used_arriving),
        "reservedIdle": dict(result.idle),
        "fragmented": dict(result.fragmented),
        "samples": [
            {
                "atSeconds": sample.at_s,
                "used": dict(sample.used),
                "fragmented": dict(sample.fragmented),
                "waiting": sample.waiting,
                "running": sample.running,
            }
            for sample in result.samples
        ],
    }
