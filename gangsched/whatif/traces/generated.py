"""Generates a trace that is named like `generate:mixture,load=1.0,days=2,seed=7`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from gangsched.core.objects.node import Node
from gangsched.whatif.traces.arrival_cycle import Target, target_of
from gangsched.whatif.traces.lublin import lublin
from gangsched.whatif.traces.mixture import mixture, stream
from gangsched.whatif.traces.trace_values import Trace, TraceError

PREFIX = "generate:"
GENERATORS: Mapping[str, Callable[[Target], Trace]] = {"mixture": mixture, "stream": stream, "lublin": lublin}
_NUMBERS = {"load": (1.0, 100.0), "days": (2.0, 366.0), "seed": (1.0, 1e12)}
"""The default and the maximum of each number."""


def generate(text: str, nodes: Sequence[Node]) -> Trace:
    """The trace that the text describes, for these nodes.

    Raises:
        TraceError: the text is wrong, or the nodes lack what the trace requests.
    """
    name, *pairs = text.removeprefix(PREFIX).split(",")
    if name not in GENERATORS:
        raise TraceError([f"{text}: there is no generator {name!r}: choose from {', '.join(GENERATORS)}"])
    values = {key: default for key, (default, _) in _NUMBERS.items()}
    values.update(_number(text, pair) for pair in pairs)
    target = target_of(nodes, values["load"], values["days"], int(values["seed"]))
    if not (target.cpus if name == "lublin" else target.gpus):
        raise TraceError([f"{text}: the nodes have no {'cpu' if name == 'lublin' else 'nvidia.com/gpu'}: name others"])
    return GENERATORS[name](target)


def _number(text: str, pair: str) -> tuple[str, float]:
    key, _, value = pair.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    most = _NUMBERS.get(key, (0.0, 0.0))[1]
    if not 0 < number <= most or (key == "seed" and number % 1):
        allowed = ", ".join(f"{name}=N up to {limit:g}" for name, (_, limit) in _NUMBERS.items())
        raise TraceError([f"{text}: {pair!r} is unknown or out of range: write {allowed}, and whole seeds above 0"])
    return key, number
