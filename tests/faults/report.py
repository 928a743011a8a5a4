"""What a soak tells in the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Report:
    """Figures of one run; times in seconds. `violations` are sentences; empty means that all rules held."""

    seed: int
    seconds: float = 0.0
    groups: int = 0
    groups_with_places: int = 0
    groups_ran_out: int = 0
    pods_bound: int = 0
    bindings: int = 0
    evictions: int = 0
    actions: Mapping[str, int] = field(default_factory=dict)
    actions_refused: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    troubles: Mapping[str, int] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)
    rejected_by_kubelet: Mapping[str, int] = field(default_factory=dict)
    kills: int = 0
    leader_changes: int = 0
    leases_lost: int = 0
    quiet_periods: int = 0
    slowest_rest_s: float = 0.0
    longest_partial_s: float = 0.0
    longest_partial: str = "no group was ever partial"
    longest_held_for_nobody_s: float = 0.0
    replayed_turns: int = 0
    violations: list[str] = field(default_factory=list)

    def line(self) -> str:
        """One line of JSON."""
        return json.dumps(vars(self), ensure_ascii=False)

    def table(self) -> str:
        """The same for people, without the violations."""
        rows = []
        for name, value in vars(self).items():
            if name == "violations":
                continue
            shown = value
            if isinstance(value, Mapping):
                parts = sorted(value.items(), key=lambda pair: (-pair[1], pair[0]))
                shown = f"{sum(value.values())}: " + ", ".join(f"{what} {count}" for what, count in parts)
            elif isinstance(value, float):
                shown = f"{value:.1f}"
            rows.append(f"  {name.replace('_', ' '):20} {shown}")
        return "\n".join(rows)
