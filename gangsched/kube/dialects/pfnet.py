"""The annotations of pfnet's gang plug-in, with a prefix that each installation chooses.

The size is the minimum, because all members of such a gang must run. In pfnet's plug-in the time-out is that of a
waiting pod; here it is the group's maxScheduleTime, with the same default, limit and jitter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration
from gangsched.kube.dialects.dialect import Dialect, quoted, sentence
from gangsched.kube.dialects.dialect_fields import needless
from gangsched.kube.dialects.dialect_kind import MOST_MEMBERS

_PREFIX = "PREFIX"
"""The placeholder in the row for the configured prefix."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class PfnetDialect(Dialect):
    """pfnet's annotations. Times are in seconds; each time-out gets a new random jitter."""

    limit_s: int
    default_s: int
    jitter_s: int

    def parse(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        size = self._size(texts)
        if size <= 1:
            return None
        return structs.replace(
            base,
            min_member=size,
            max_schedule_time_s=self._timeout_s(texts),
            default_time_s=float(self.default_s),
            jitter_s=float(self.jitter_s),
        )

    def _size(self, texts: Mapping[Key, str]) -> int:
        """The gang's size; 0 if the pod declares none.

        Raises:
            ValueError: the text is not a number in range. pfnet reads that as 0 and schedules members one by one.
        """
        [key] = self.row.minimum
        text = texts.get(key, "0")
        if not _INTEGER.fullmatch(text) or int(text) > MOST_MEMBERS:
            raise ValueError(
                f"{sentence(key)} is {quoted(text)}: write a whole number up to {MOST_MEMBERS}; 1 means no gang."
            )
        return int(text)

    def _timeout_s(self, texts: Mapping[Key, str]) -> float | None:
        """The time-out as in pfnet: a text that is not a number is ignored. pfnet also accepts 0 and less.

        Such a time-out would never let a gang wait, so it is ignored here.
        """
        text = texts.get(self.row.time[0], "")
        asked_s = int(text) if _INTEGER.fullmatch(text) else 0
        return float(min(asked_s, self.limit_s)) if asked_s > 0 else None


def dialect(row: DialectRow, settings: Settings) -> Dialect:
    """The dialect with the configured prefix and times."""
    chosen = settings.pfnet

    def prefixed(keys: tuple[Key, ...]) -> tuple[Key, ...]:
        return tuple(Key(key.name.replace(_PREFIX, chosen.gang_annotation_prefix)) for key in keys)

    return PfnetDialect(
        row=replace(row, group=prefixed(row.group), minimum=prefixed(row.minimum), time=prefixed(row.time)),
        texts=(
            needless(
                Key(f"{chosen.gang_annotation_prefix}-position"), "the plug-in itself writes it, for people to read"
            ),
        ),
        limit_s=chosen.gang_schedule_timeout_seconds_limit,
        default_s=chosen.gang_schedule_default_timeout_seconds,
        jitter_s=chosen.gang_schedule_timeout_jitter_seconds,
    )
