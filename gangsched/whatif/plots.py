"""Draws replays over time: waiting gangs, and resources used and fragmented, one line for each strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gangsched.whatif.measures import Measures, Sample

_HOUR_S = 3600


def draw(measures: Sequence[Measures], folder: Path) -> Iterator[Path]:
    """Write the SVG files and yield their paths; the folder is created if it does not exist.

    Raises:
        ImportError: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    yield _over_time(measures, folder / "waiting.svg", "gangs that wait", lambda sample: sample.waiting)
    for resource in measures[0].used:
        name = resource.rpartition("/")[2]
        yield _over_time(measures, folder / f"{name}-used.svg", f"{resource} in use, %", _share("used", resource))
        yield _over_time(
            measures, folder / f"{name}-fragmented.svg", f"{resource} fragmented, %", _share("fragmented", resource)
        )


def _share(attribute: str, resource: str) -> Callable[[Sample], float]:
    return lambda sample: float(getattr(sample, attribute)[resource]) * 100


def _over_time(measures: Sequence[Measures], path: Path, title: str, value: Callable[[Sample], float]) -> Path:
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra of the package

    figure: Any = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for result in measures:
        hours = [sample.at_s / _HOUR_S for sample in result.samples]
        axes.plot(hours, [value(sample) for sample in result.samples], label=result.strategy)
    axes.set_xlabel("hours since the first arrival")
    axes.set_ylabel(title)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    return path
