"""`gangsched replay`: how long the gangs of a trace wait on given nodes, for each strategy."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import WRONG_USAGE, UsageError, fail, note, run
from gangsched.cli.progress import Progress
from gangsched.cli.replay_report import as_json, as_text, shown_time

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.core.objects.node import Node
    from gangsched.whatif.played import Replay
    from gangsched.whatif.traces.trace_values import Trace

_STDIN = "-"
_PODS = 110
"""The kubelet's default for the number of pods on a node (`maxPods`)."""
_COUNT = re.compile(r"0*[1-9][0-9]{0,4}")
"""A number from 1 to 99,999."""


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
    parser.add_argument(
        "trace",
        metavar="TRACE",
        help="the trace; - is standard input, and generate:NAME,load=N,days=N,seed=N generates one for the nodes: NAME "
        "is mixture, stream or lublin",
    )
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
        choices=("csv", "json", "swf", "pai", "openb", "helios", "acme", "philly"),
        help="form of the trace (default: by the name of the file, else csv); those after json are public traces",
    )
    parser.add_argument("--sha256", metavar="HEX", help="refuse the trace unless this is its SHA-256 checksum")
    parser.add_argument("--gangs", metavar="N", type=int, help="play only the first N gangs")
    parser.add_argument(
        "--limits",
        choices=("exact", "long", "none"),
        help="give all gangs hard limits that are exact or too long, or none (default: those of the trace)",
    )
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        action="append",
        help="placement strategy; may be repeated, to compare several (default: Pack)",
    )
    parser.add_argument(
        "--baseline",
        choices=("fifo", "first-fit", "quota", "easy"),
        action="append",
        default=[],
        help="also play the trace in this way, without gangsched; may be repeated",
    )
    parser.add_argument(
        "--preempt",
        action="store_true",
        help="preempt gangs of lower priority, as if priorities were those of PriorityClasses; without it they only "
        "order gangs",
    )
    parser.add_argument(
        "--starvation-age",
        metavar="DURATION",
        help="reserve places for a gang that has waited for so long, as reservation.starvationAge of the operator does "
        "(default: 30m; 0s: reserve none)",
    )
    parser.add_argument(
        "--expected-starts",
        action="store_true",
        help="find out when waiting gangs will probably start, as the operator does, and print how often they did",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with samples over time")
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="draw the figures as SVG files in this folder (needs matplotlib)"
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    return run(arguments, partial(_replay, arguments))


def _replay(arguments: argparse.Namespace) -> int:
    from gangsched.whatif.measures import measure  # noqa: PLC0415
    from gangsched.whatif.traces.trace_values import TraceError  # noqa: PLC0415
    from gangsched.whatif.world.manifests import ManifestError  # noqa: PLC0415 - see the package

    _check(arguments.strategy or [], plots=arguments.plots is not None)
    try:
        nodes = _nodes(arguments.files, arguments.nodes)
        trace = _trace(arguments, nodes)
        results = [measure(replay) for replay in _replays(arguments, trace, nodes)]
    except (ManifestError, TraceError) as error:
        for problem in error.problems:
            fail(arguments, problem)
        return WRONG_USAGE
    if arguments.plots is not None:
        from gangsched.whatif.plots import draw  # noqa: PLC0415 - see the package

        for path in draw(results, arguments.plots):
            note(arguments, f"drew {path}")
    if arguments.json:
        print(json.dumps(as_json(results, arguments.baseline), ensure_ascii=False, indent=2))
    else:
        print("\n".join(as_text(results, arguments.baseline)))
    return 0


def _replays(arguments: argparse.Namespace, trace: Trace, nodes: Sequence[Node]) -> Iterator[Replay]:
    from msgspec.structs import replace  # noqa: PLC0415

    from gangsched.config.settings import load  # noqa: PLC0415
    from gangsched.whatif import baselines  # noqa: PLC0415
    from gangsched.whatif.trace_replay import replay  # noqa: PLC0415 - see the package

    policy = load(flags={}).policy()
    if arguments.starvation_age is not None:
        reservations = replace(policy.reservations, starvation_age_s=_duration(arguments.starvation_age))
        policy = replace(policy, reservations=reservations)
    for remark in trace.remarks:
        note(arguments, remark)
    for name in arguments.strategy or ["Pack"]:
        with _shown(name, trace) as progress:
            yield replay(
                trace,
                nodes,
                policy,
                strategy=name,
                preempt=arguments.preempt,
                forecasts=arguments.expected_starts,
                progress=progress,
            )
    for name in arguments.baseline:
        with _shown(name, trace) as progress:
            yield baselines.play(trace, nodes, name, progress)


@contextmanager
def _shown(name: str, trace: Trace) -> Iterator[Callable[[int, float], None]]:
    """Shows on a terminal how many gangs have ended by which time of the simulated clock, both of which it is told."""

    def text(ended: int, now_s: float) -> str:
        return f"{name}: {ended} of {len(trace.gangs)} gangs have ended, after {shown_time(now_s)} of the trace"

    with Progress(text(0, 0.0)) as progress:
        yield lambda ended, now_s: progress.say(text(ended, now_s)) if progress.due else None


def _duration(text: str) -> float:
    from gangsched.core.objects.duration import parse_duration  # noqa: PLC0415

    try:
        return parse_duration(text, shortest_s=0)
    except ValueError as error:
        raise UsageError(f"--starvation-age: {error}") from None


def _check(strategies: Sequence[str], *, plots: bool) -> None:
    import importlib.util  # noqa: PLC0415 - see the package

    from gangsched.core.planning.strategies import STRATEGIES  # noqa: PLC0415

    if unknown := [name for name in strategies if name not in STRATEGIES]:
        raise UsageError(f"there is no strategy {unknown[0]}: choose from {', '.join(STRATEGIES)}")
    if plots and importlib.util.find_spec("matplotlib") is None:
        raise UsageError("--plots needs matplotlib: install it with pip install 'gangsched[plots]'")


def _trace(arguments: argparse.Namespace, nodes: Sequence[Node]) -> Trace:
    from gangsched.whatif.traces.generated import PREFIX, generate  # noqa: PLC0415
    from gangsched.whatif.traces.run_limits import with_limits  # noqa: PLC0415
    from gangsched.whatif.traces.trace_values import Trace  # noqa: PLC0415 - see the package

    if arguments.trace.startswith(PREFIX):
        if arguments.sha256 is not None or arguments.form is not None:
            raise UsageError(f"--sha256 and --form are for files, and {arguments.trace} is generated: leave them out")
        trace = generate(arguments.trace, nodes)
    else:
        trace = _read(arguments)
    if arguments.gangs is not None:
        if arguments.gangs < 1:
            raise UsageError("--gangs must be at least 1")
        trace = Trace(trace.gangs[: arguments.gangs], trace.remarks)
    if arguments.limits is not None:
        trace = with_limits(trace, arguments.limits)
    return trace


def _read(arguments: argparse.Namespace) -> Trace:
    from gangsched.whatif.traces.forms import form_of, read  # noqa: PLC0415
    from gangsched.whatif.traces.trace_values import TraceError  # noqa: PLC0415 - see the package

    shown = "standard input" if arguments.trace == _STDIN else arguments.trace
    try:
        content = sys.stdin.buffer.read() if arguments.trace == _STDIN else Path(arguments.trace).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise TraceError([f"{shown}: cannot be read ({error.strerror}): name a file with a trace"]) from None
    except UnicodeDecodeError:
        raise TraceError([f"{shown}: is not UTF-8 text: name a file with a trace"]) from None
    digest = hashlib.sha256(content).hexdigest()
    if arguments.sha256 is not None and digest != arguments.sha256.lower():
        raise TraceError([f"{shown}: its SHA-256 is {digest}, not {arguments.sha256}: get the original again"])
    return read(text, shown, arguments.form or form_of(arguments.trace))


def _nodes(files: Sequence[str], described: Sequence[str]) -> Sequence[Node]:
    from gangsched.whatif.world.building import build  # noqa: PLC0415
    from gangsched.whatif.world.manifests import read  # noqa: PLC0415 - see the package

    nodes = list(build(read(files)).nodes) if files else []
    for number, text in enumerate(described):
        nodes += _described(text, "node" if not number else f"node-{number}")
    if not nodes:
        raise UsageError("there are no nodes: name files with Node manifests, or use --nodes, such as --nodes 10:cpu=8")
    return nodes


def _described(text: str, prefix: str) -> Iterator[Node]:
    from gangsched.core.objects.node import Node  # noqa: PLC0415 - see the package
    from gangsched.core.objects.quantity import InvalidQuantity, amount  # noqa: PLC0415
    from gangsched.core.objects.wording import shortened  # noqa: PLC0415

    count, _, resources = text.partition(":")
    pairs = [pair.partition("=") for pair in resources.split(",")]
    if not _COUNT.fullmatch(count) or any(not name or not value for name, _, value in pairs):
        raise UsageError(
            f"--nodes {shortened(text, 100)!r} has not the form N:RESOURCES with N up to 99999: write, for example, "
            "100:cpu=64,memory=512Gi"
        )
    try:
        amounts = {name: amount(name, value) for name, _, value in pairs}
    except InvalidQuantity as error:
        raise UsageError(f"--nodes {text!r}: {error}") from None
    allocatable = tuple(sorted(({"pods": _PODS} | amounts).items()))
    width = len(str(int(count) - 1))
    for number in range(int(count)):
        name = f"{prefix}-{number:0{width}}"
        yield Node(name, allocatable=allocatable, labels=(("kubernetes.io/hostname", name),))
