"""`gangsched replay`: how long the gangs of a trace wait on given nodes, for each strategy."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.core.objects.node import Node
    from gangsched.whatif.measures import Measures
    from gangsched.whatif.trace import Trace

WRONG_USAGE = 2
_STDIN = "-"
_SHOWN_AFTER_S = 1.0
_SHOWN_EVERY_S = 0.5
_NAMED = 5
_PODS = 110
"""The kubelet's default for the number of pods on a node (`maxPods`)."""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "replay",
        help="show how long the gangs of a trace would wait, strategy by strategy, without a cluster",
        description="Play a trace of gangs, with their arrivals and run times, on given nodes: the scheduler decides "
        "as in a cluster, on a simulated clock. Print for each strategy how long gangs waited, how much of the nodes "
        "was used, and how much was free but of no use to the gangs of the trace. docs/replay.md describes traces and "
        "figures.",
        epilog="Exit status: 0 for success, 2 for wrong usage or for files that are unreadable.",
    )
    parser.add_argument("trace", metavar="TRACE", help="the trace; - is standard input")
    parser.add_argument("files", metavar="FILE", nargs="*", help="manifests of the nodes; other objects do not count")
    parser.add_argument(
        "--nodes",
        metavar="N:RESOURCES",
        action="append",
        default=[],
        help="N nodes with these resources, such as 100:cpu=64,memory=512Gi,nvidia.com/gpu=8; may be repeated",
    )
    parser.add_argument(
        "--form",
        choices=("csv", "json", "pai"),
        help="form of the trace (default: by the name of the file, else csv); pai is the table pai_task_table of "
        "Alibaba's cluster-trace-gpu-v2020",
    )
    parser.add_argument("--gangs", metavar="N", type=int, help="play only the first N gangs")
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        action="append",
        help="placement strategy; may be repeated, to compare several (default: Pack)",
    )
    parser.add_argument(
        "--preempt",
        action="store_true",
        help="preempt gangs of lower priority, as if priorities were those of PriorityClasses; without it they only "
        "order gangs",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with samples over time")
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="draw the figures as SVG files in this folder (needs matplotlib)"
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from gangsched.config.settings import InvalidConfig, load  # noqa: PLC0415
    from gangsched.whatif.measures import measure  # noqa: PLC0415
    from gangsched.whatif.trace import TraceError  # noqa: PLC0415
    from gangsched.whatif.trace_replay import replay  # noqa: PLC0415
    from gangsched.whatif.world.manifests import ManifestError  # noqa: PLC0415 - see the package

    strategies = arguments.strategy or ["Pack"]
    try:
        policy = load(flags={}).policy()
        _check(strategies, plots=arguments.plots is not None)
        nodes = _nodes(arguments.files, arguments.nodes)
        trace = _trace(arguments)
    except (ManifestError, TraceError) as error:
        return _fail(*error.problems)
    except (InvalidConfig, _UsageError) as error:
        return _fail(str(error))
    for remark in trace.remarks:
        print(f"gangsched replay: {remark}", file=sys.stderr)
    results = []
    for name in strategies:
        with _Progress(name, len(trace.gangs)) as progress:
            results.append(
                measure(replay(trace, nodes, policy, strategy=name, preempt=arguments.preempt, progress=progress.show))
            )
    if arguments.plots is not None:
        from gangsched.whatif.plots import draw  # noqa: PLC0415 - see the package

        for path in draw(results, arguments.plots):
            print(f"gangsched replay: drew {path}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"strategies": [_json(result) for result in results]}, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_text(results)))
    return 0


class _UsageError(ValueError):
    """An option is invalid; the message says what to write."""


def _fail(*problems: str) -> int:
    for problem in problems:
        print(f"gangsched replay: error: {problem}", file=sys.stderr)
    return WRONG_USAGE


def _check(strategies: Sequence[str], *, plots: bool) -> None:
    import importlib.util  # noqa: PLC0415 - see the package

    from gangsched.core.planning.strategies import STRATEGIES  # noqa: PLC0415

    if unknown := [name for name in strategies if name not in STRATEGIES]:
        raise _UsageError(f"there is no strategy {unknown[0]}: choose from {', '.join(STRATEGIES)}")
    if plots and importlib.util.find_spec("matplotlib") is None:
        raise _UsageError("--plots needs matplotlib: install it with pip install 'gangsched[plots]'")


def _trace(arguments: argparse.Namespace) -> Trace:
    from gangsched.whatif.trace import Trace, TraceError, form_of, read  # noqa: PLC0415 - see the package

    shown = "standard input" if arguments.trace == _STDIN else arguments.trace
    try:
        content = sys.stdin.buffer.read() if arguments.trace == _STDIN else Path(arguments.trace).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise TraceError([f"{shown}: cannot be read ({error.strerror}): name a file with a trace"]) from None
    except UnicodeDecodeError:
        raise TraceError([f"{shown}: is not UTF-8 text: name a file with a trace"]) from None
    trace = read(text, shown, arguments.form or form_of(arguments.trace))
    if arguments.gangs is None:
        return trace
    if arguments.gangs < 1:
        raise _UsageError("--gangs must be at least 1")
    return Trace(trace.gangs[: arguments.gangs], trace.remarks)


def _nodes(files: Sequence[str], described: Sequence[str]) -> Sequence[Node]:
    from gangsched.whatif.world.building import build  # noqa: PLC0415
    from gangsched.whatif.world.manifests import read  # noqa: PLC0415 - see the package

    nodes = list(build(read(files)).nodes) if files else []
    for number, text in enumerate(described):
        nodes += _described(text, "node" if not number else f"node-{number}")
    if not nodes:
        raise _UsageError(
            "there are no nodes: name files with Node manifests, or use --nodes, such as --nodes 10:cpu=8"
        )
    return nodes


def _described(text: str, prefix: str) -> Iterator[Node]:
    from gangsched.core.objects.node import Node  # noqa: PLC0415 - see the package
    from gangsched.core.objects.quantity import InvalidQuantity, amount  # noqa: PLC0415

    count, _, resources = text.partition(":")
    pairs = [pair.partition("=") for pair in resources.split(",")]
    if not count.isdigit() or not int(count) or any(not name or not value for name, _, value in pairs):
        raise _UsageError(f"--nodes {text!r} has not the form N:RESOURCES: write, for example, 100:cpu=64,memory=512Gi")
    try:
        amounts = {name: amount(name, value) for name, _, value in pairs}
    except InvalidQuantity as error:
        raise _UsageError(f"--nodes {text!r}: {error}") from None
    allocatable = tuple(sorted(({"pods": _PODS} | amounts).items()))
    width = len(str(int(count) - 1))
    for number in range(int(count)):
        name = f"{prefix}-{number:0{width}}"
        yield Node(name, allocatable=allocatable, labels=(("kubernetes.io/hostname", name),))


class _Progress:
    """Shows the progress of a long replay on a terminal, on one line that is erased at the end."""

    def __init__(self, strategy: str, gangs: int) -> None:
        self._strategy = strategy
        self._gangs = gangs
        self._next = time.monotonic() + _SHOWN_AFTER_S
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def show(self, ended: int, now_s: float) -> None:
        """Show that `ended` gangs have ended and that the simulated clock is at `now_s`."""
        if not sys.stderr.isatty() or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SHOWN_EVERY_S
        self._shown = True
        line = f"{self._strategy}: {ended} of {self._gangs} gangs have ended, after {_time(now_s)} of the trace"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _time(seconds: float) -> str:
    from gangsched.core.objects.duration import format_duration  # noqa: PLC0415 - see the package

    return format_duration(round(seconds, 1))


def _text(results: Sequence[Measures]) -> Iterator[str]:
    rows = [
        ("", *(result.strategy for result in results)),
        ("bound", *(f"{result.bound} of {result.gangs}" for result in results)),
    ]
    rows += [(f"wait, {name}", *(_time(result.wait_s[name]) for result in results)) for name in results[0].wait_s]
    rows.append(("until the last end", *(_time(result.makespan_s) for result in results)))
    rows += [(f"{name} in use", *(f"{result.used[name]:.1%}" for result in results)) for name in results[0].used]
    rows += [
        (f"{name} fragmented", *(f"{result.fragmented[name]:.1%}" for result in results)) for name in results[0].used
    ]
    if any(result.preemptions for result in results):
        rows.append(("gangs preempted", *(str(result.preemptions) for result in results)))
        rows.append(("work lost", *(f"{result.lost:.1%}" for result in results)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for head, *cells in rows:
        filled = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([head.ljust(widths[0]), *filled]).rstrip()
    for result in results:
        if result.never:
            named = ", ".join(result.never[:_NAMED])
            more = f" and {len(result.never) - _NAMED} more" if len(result.never) > _NAMED else ""
            yield ""
            yield from textwrap.wrap(
                f"{result.strategy}: never bound, because they do not fit: {named}{more}.",
                shutil.get_terminal_size((80, 24)).columns,
                break_on_hyphens=False,
            )


def _json(result: Measures) -> dict[str, object]:
    return {
        "strategy": result.strategy,
        "gangs": result.gangs,
        "bound": result.bound,
        "neverBound": list(result.never),
        "waitSeconds": dict(result.wait_s),
        "makespanSeconds": result.makespan_s,
        "preemptions": result.preemptions,
        "lost": result.lost,
        "used": dict(result.used),
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
