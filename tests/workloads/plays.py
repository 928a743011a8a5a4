"""The scenarios (plays) for each workload: each ends with every gang whole or wholly unbound."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from testbed.controllers.expected import EXPECTED, FAILURE, RACE, READY_AFTER_S, SCALE, SUSPENSION, Workload
from tests.workloads import pages
from tests.workloads.stage import Stage

Json = dict[str, Any]

SIZE = 5
"""The pods of each workload on the pages, of 1 CPU each. The nodes have 8 CPUs."""
LARGER = 7
_WITHIN_S = 90
_STAYS_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The properties of a workload that its plays depend on."""

    kind: str
    """As in EXPECTED."""
    path: str
    """The collection of its objects, such as ``apis/batch/v1/jobs``."""
    fails: str = "deleted"
    """How to end a member so that its controller recreates it: `Failed` or `deleted`."""
    scaled: Callable[[int], Json] = lambda _: {}
    """The patch that scales the workload to this many pods."""
    suspended: Callable[[bool], Json | list[Json]] = lambda _: {}
    """The patch that suspends or resumes it; a list is a JSON patch."""
    changed: Callable[..., object] = lambda *_: None
    """Turns the page's manifests into those of this row; they may already be the same."""
    pods: int = SIZE
    """How many pods its controller creates in all; SIZE of them fit."""
    first: int = SIZE
    """How many pods its controller creates before any of them is ready."""
    simulated: bool = True
    """Whether `gangsched simulate` expands it, into pods of the same owners and labels."""
    varies: str = ""
    """A regular expression of texts in the pods' names and labels that the controller makes at random or as a hash."""
    own_plays: Mapping[str, Play] = field(default_factory=dict)
    """Plays that replace the common ones for this workload."""

    @property
    def row(self) -> Workload:
        """The expected results."""
        return EXPECTED[self.kind]

    @property
    def within_s(self) -> float:
        """The longest time, in seconds, until all of its pods are bound."""
        return _WITHIN_S + (READY_AFTER_S * SIZE if self.row.late else 0)

    def manifest(self, column: str, name: str = "bert") -> str:
        """The manifest of its page for that way to declare a gang, as this row has it."""
        manifests = list(yaml.safe_load_all(pages.manifest(self.kind, column, name)))
        self.changed(*manifests)
        return yaml.safe_dump_all(manifests)


Play = Callable[[Stage, Setting, str], object]


def race(stage: Stage, setting: Setting, column: str) -> None:
    """Two at once: one runs whole and the other waits whole, then runs in place of the first."""
    runs, waits = both(stage, setting, column)
    stage.remove(runs)
    until_whole(stage, setting, waits)


def both(stage: Stage, setting: Setting, column: str) -> tuple[str, str]:
    """Creates two at once; returns the one that runs whole and the one that waits whole."""
    names = ("first", "second")
    stage.apply("---\n".join(setting.manifest(column, name) for name in names))
    return until_settled(stage, setting, *names)


def until_whole(stage: Stage, setting: Setting, name: str, size: int = SIZE) -> None:
    """Waits until the workload has `size` pods and all of them are bound."""
    stage.until(lambda: stage.counts(name) == [(size, size)], within_s=setting.within_s, what=f"{size} of {name} bound")


def until_settled(stage: Stage, setting: Setting, *names: str) -> tuple[str, str]:
    """Waits until one of the two is whole, the other wholly unbound with all pods that it can have, and both stay so.

    At no time do both have a bound pod. Returns the one that runs and the one that waits.
    """

    waits_with = {(number, 0) for number in (setting.first, SIZE)}
    since = time.monotonic()

    def settled() -> bool:
        nonlocal since
        counts = stage.counts(*names)
        assert not all(bound for _, bound in counts), f"both have bound pods: {stage.describe()}"
        waits, runs = sorted(counts, key=lambda each: each[1])
        if runs != (SIZE, SIZE) or waits not in waits_with:
            since = time.monotonic()
        return time.monotonic() > since + _STAYS_S

    stage.until(settled, within_s=setting.within_s, what="one whole, the other wholly waiting")
    one, other = names
    return (one, other) if stage.counts(one) == [(SIZE, SIZE)] else (other, one)


def failure(stage: Stage, setting: Setting, column: str) -> None:
    """A member of the running one fails and is recreated, perhaps with all others; no gang ends partly bound."""
    runs, waits = both(stage, setting, column)
    member = stage.live(runs)[0]
    stage.end(member, setting.fails)
    uid = member["metadata"]["uid"]

    def again() -> bool:
        live = stage.live(runs)
        return len(live) in (setting.first, SIZE) and uid not in {pod["metadata"]["uid"] for pod in live}

    stage.until(again, within_s=setting.within_s, what=f"{member['metadata']['name']} is made again")
    until_settled(stage, setting, runs, waits)


def scale(stage: Stage, setting: Setting, column: str) -> None:
    """One that has room is scaled up and down, and is whole each time."""
    stage.apply(setting.manifest(column, "first"))
    for size in (SIZE, LARGER, SIZE):
        stage.patch("first", setting.scaled(size))
        until_whole(stage, setting, "first", size)


def suspension(stage: Stage, setting: Setting, column: str) -> None:
    """The running one is suspended and the other takes its place; resumed, it waits whole until the other is gone."""
    runs, waits = both(stage, setting, column)
    stage.patch(runs, setting.suspended(True))
    until_whole(stage, setting, waits)
    # The other needs the room of only some of them, and controllers delete pods one by one.
    stage.until(lambda: stage.counts(runs) == [(0, 0)], what=f"the pods of {runs} are gone")
    stage.patch(runs, setting.suspended(False))
    until_settled(stage, setting, runs, waits)
    stage.remove(waits)
    until_whole(stage, setting, runs)


_PLAYS: dict[str, Play] = {RACE: race, FAILURE: failure, SCALE: scale, SUSPENSION: suspension}


def play(stage: Stage, setting: Setting, column: str, name: str) -> None:
    """Runs the play of that name."""
    (_PLAYS | dict(setting.own_plays))[name](stage, setting, column)
