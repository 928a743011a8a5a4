"""What is played with each workload: each play ends with every gang whole or wholly unbound."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.controllers.matrix import FAILURE, RACE, SCALE, SUSPENSION
from tests.workloads.pages import manifest
from tests.workloads.stage import Stage

Json = dict[str, Any]

SIZE = 5
"""The pods of each workload on the pages, of 1 CPU each. The nodes have 8 CPUs."""
LARGER = 7
_WITHIN_S = 60
_STAYS_S = 2.0


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a workload's plays need to know of it."""

    kind: str
    path: str
    """The collection of its objects, such as ``apis/batch/v1/jobs``."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What the controller's configuration file needs beside addresses."""
    own_arguments: Sequence[str] = ()
    """Of the controller with its own integration."""
    own_config: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    """Whose PodGroups the controller makes with its own integration."""
    fails: str = "deleted"
    """How a member ends so that its controller makes it again: `Failed` or `deleted`."""
    scaled: Callable[[int], Json] = lambda _: {}
    """The change that gives the workload so many pods."""
    suspended: Callable[[bool], Json] = lambda _: {}
    """The change that suspends and resumes it."""


def race(stage: Stage, setting: Setting, column: str) -> tuple[str, str]:
    """Two at once: one runs whole and the other waits whole, then runs in place of the first; who runs, who is gone."""
    runs, waits = both(stage, setting, column)
    stage.remove(runs)
    until_whole(stage, waits)
    return waits, runs


def both(stage: Stage, setting: Setting, column: str) -> tuple[str, str]:
    """Creates two at once; who runs whole, and who waits whole."""
    names = ("first", "second")
    stage.apply("---\n".join(manifest(setting.kind, column, name) for name in names))
    until_settled(stage, *names)
    runs = next(name for name in names if stage.bound_of(name))
    return runs, next(name for name in names if name != runs)


def until_whole(stage: Stage, name: str, size: int = SIZE) -> None:
    """Waits until the workload has so many pods and all of them are bound."""
    stage.until(lambda: stage.counts(name) == (size, size), within_s=_WITHIN_S, what=f"{size} of {name} bound")


def until_settled(stage: Stage, *names: str) -> None:
    """Waits until one of the two is whole and the other, complete, is wholly unbound, and stays so."""

    def settled() -> bool:
        return sorted(stage.counts(name) for name in names) == [(SIZE, 0), (SIZE, SIZE)]

    stage.until(settled, within_s=_WITHIN_S, what="one whole, the other wholly waiting")
    until = time.monotonic() + _STAYS_S
    while time.monotonic() < until:
        assert settled(), stage.describe()
        time.sleep(0.2)


def failure(stage: Stage, setting: Setting, column: str) -> None:
    """A member of the one that runs fails and is made again, perhaps with all others; nothing ends in pieces."""
    runs, waits = both(stage, setting, column)
    member = next(pod for pod in stage.live(runs) if "nodeName" in pod["spec"])
    stage.end(member, setting.fails)
    uid = member["metadata"]["uid"]
    stage.until(
        lambda: len(stage.live(runs)) == SIZE and uid not in {pod["metadata"]["uid"] for pod in stage.live(runs)},
        within_s=_WITHIN_S,
        what=f"{member['metadata']['name']} is made again",
    )
    until_settled(stage, runs, waits)


def scale(stage: Stage, setting: Setting, column: str) -> None:
    """One that has room grows and shrinks, and is whole each time."""
    stage.apply(manifest(setting.kind, column, "first"))
    for size in (SIZE, LARGER, SIZE):
        stage.patch("first", setting.scaled(size))
        until_whole(stage, "first", size)


def suspension(stage: Stage, setting: Setting, column: str) -> None:
    """The one that runs is suspended: the other takes its place; resumed, it waits whole until the other is gone."""
    runs, waits = both(stage, setting, column)
    stage.patch(runs, setting.suspended(True))
    until_whole(stage, waits)
    assert stage.counts(runs) == (0, 0)
    stage.patch(runs, setting.suspended(False))
    until_settled(stage, runs, waits)
    stage.remove(waits)
    until_whole(stage, runs)


PLAYS: dict[str, Callable[[Stage, Setting, str], object]] = {
    RACE: race,
    FAILURE: failure,
    SCALE: scale,
    SUSPENSION: suspension,
}
