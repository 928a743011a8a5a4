"""Koordinator's annotations for gangs without a PodGroup.

Its waiting time is a duration as Go writes it, which has fractions and small units that gangsched's own has not. What
its `mode` tells apart, whether members that hold nodes let go of them when another finds none, does not arise here:
nothing is held before all have a place. `groups` would bind several gangs to each other, which this version cannot;
scheduling them one by one would be half of what was asked for, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from gangsched.core.duration import LONGEST_S, SHORTEST_S
from gangsched.core.model import Declaration
from gangsched.kube.dialects.dialect import Dialect, Key, quoted, sentence

_PREFIX = "gang.scheduling.koordinator.sh"
_GROUPS = Key(f"{_PREFIX}/groups")
_NAMES = msgspec.json.Decoder(list[str])

_LONGEST_DURATION = 64
_PARTS = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class KoordinatorDialect(Dialect):
    """Gangs that stand alone; one that is tied to others is an error."""

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        groups = said.get(_GROUPS)
        if groups and any(name.rpartition("/")[2] != base.group for name in _names(groups)):
            raise ValueError(
                f"{sentence(_GROUPS)} is {quoted(groups)}, which ties the gang to others: this version of gangsched "
                "cannot bind several gangs together; remove it, or make them one gang."
            )
        return super().parse(base, said)


def go_duration(text: str) -> float:
    """The seconds of a duration such as `30s`, `1.5h` or `1m30s`, as Go reads it.

    Raises:
        ValueError: it is none, or not from 1 s to 7 days.
    """
    parts = _PARTS.findall(text) if len(text) <= _LONGEST_DURATION else []
    if not parts or "".join(number + unit for number, unit in parts) != text.removeprefix("+"):
        raise ValueError(f"{text!r} is no duration")
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ValueError(f"{text!r} is out of range")
    return seconds


def _names(text: str) -> set[str]:
    try:
        names = set(_NAMES.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError(f"{sentence(_GROUPS)} is {quoted(text)}: write a JSON list of names, or remove it.") from None
    # One name may stand there with its namespace; two are two gangs even if they differ in nothing else.
    return names if len(names) <= 1 else names | {""}


KOORDINATOR = KoordinatorDialect(
    source="koordinator",
    group=(Key(f"{_PREFIX}/name"),),
    minimum=Key(f"{_PREFIX}/min-available"),
    time=Key(f"{_PREFIX}/waiting-time"),
    others=(_GROUPS,),
    seconds=go_duration,
)
