"""Numbers that metrics show of the core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Plain numbers for metrics; `refusals` (by reason), `timeouts` and `node_refusals` only ever grow."""

    pods: int
    nodes: int
    phases: Mapping[str, int]
    waiting: int
    parked: int
    refusals: Mapping[str, int]
    timeouts: int
    avoided_nodes: int
    node_refusals: int
