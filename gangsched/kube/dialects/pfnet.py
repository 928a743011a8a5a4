"""The annotations of pfnet's gang plug-in, under a prefix that each installation chooses.

The size is the minimum: there is no gang of which fewer than all may run. Its time-out is a waiting pod's; here it is
the group's maxScheduleTime, with the same default, limit and jitter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from gangsched.config.dialects import Key, Row
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence
from gangsched.kube.dialects.kind import MOST_MEMBERS

_PREFIX = "PREFIX"
"""Stands in the row for the prefix that the configuration says."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class PfnetDialect(Dialect):
    """Times in seconds; the jitter is added to every time-out anew."""

    limit_s: int
    default_s: int
    jitter_s: int

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        size = self._size(said)
        if size <= 1:
            return None
        return structs.replace(
            base,
            min_member=size,
            max_schedule_time_s=self._timeout_s(said),
            default_time_s=float(self.default_s),
            jitter_s=float(self.jitter_s),
        )

    def _size(self, said: Mapping[Key, str]) -> int:
        """The gang's size, 0 where the pod does not say.

        Raises:
            ValueError: it is no number. pfnet takes that for 0, and would schedule the members one by one.
        """
        [key] = self.row.minimum
        text = said.get(key, "0")
        if not _INTEGER.fullmatch(text) or int(text) > MOST_MEMBERS:
            raise ValueError(
                f"{sentence(key)} is {quoted(text)}: write a whole number up to {MOST_MEMBERS}; 1 is no gang."
            )
        return int(text)

    def _timeout_s(self, said: Mapping[Key, str]) -> float | None:
        """As pfnet: what is no number asks for nothing. 0 and less, which it accepts, would never let a gang wait."""
        text = said.get(self.row.time[0], "")
        asked_s = int(text) if _INTEGER.fullmatch(text) else 0
        return float(min(asked_s, self.limit_s)) if asked_s > 0 else None


def dialect(row: Row, settings: Settings) -> Dialect:
    """The dialect with the prefix and the times of the configuration."""
    chosen = settings.pfnet

    def prefixed(keys: tuple[Key, ...]) -> tuple[Key, ...]:
        return tuple(Key(key.name.replace(_PREFIX, chosen.gang_annotation_prefix)) for key in keys)

    return PfnetDialect(
        row=replace(row, group=prefixed(row.group), minimum=prefixed(row.minimum), time=prefixed(row.time)),
        limit_s=chosen.gang_schedule_timeout_seconds_limit,
        default_s=chosen.gang_schedule_default_timeout_seconds,
        jitter_s=chosen.gang_schedule_timeout_jitter_seconds,
    )
