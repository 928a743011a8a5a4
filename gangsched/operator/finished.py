"""When a finished PodGroup is due to be deleted, without I/O. Times are epoch seconds.

Whether it may be deleted is the machine's decision, which knows its pods (`core.expired`). It answers nothing, so a
PodGroup that is still there is reported again after growing pauses.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gangsched.api.conversion import KEEP
from gangsched.api.podgroup_names import PHASE
from gangsched.api.times import parse_time
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.duration import parse_duration
from gangsched.core.objects.events import GroupExpired
from gangsched.core.objects.record import FINISHED, Phase

SELECTOR = ",".join(f"{PHASE}!={phase}" for phase in ("", *(phase for phase in Phase if phase not in FINISHED)))
"""The field selector of finished PodGroups. Selectors have no "or", so it excludes all other phases."""
PAUSES_S = (30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0)
"""Pauses before a PodGroup that has expired is reported again. After the last one it is forgotten until it changes,
because kopf does not always tell that an object is gone."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished PodGroup, in this version, and when it is due to be deleted."""

    key: GroupKey
    uid: str
    version: str
    due: float


def finished_group(body: Mapping[str, Any], *, default_ttl_s: float | None, now: float) -> Finished | None:
    """The PodGroup if it is finished and has a time to live; `default_ttl_s` is that of PodGroups that set none.

    None as well if it is kept or being deleted, or if its time to live cannot be read. A status without `finishedTime`
    counts as finished `now`.
    """
    metadata, status = body["metadata"], body.get("status") or {}
    if status.get("phase") not in FINISHED or metadata.get("deletionTimestamp"):
        return None
    if (metadata.get("annotations") or {}).get(KEEP) == "true":
        return None
    ttl, ended = (body.get("spec") or {}).get("ttlAfterFinished"), status.get("finishedTime")
    try:
        ttl_s = parse_duration(ttl) if ttl is not None else default_ttl_s
        since = parse_time(ended) if ended is not None else now
    except (ValueError, TypeError):
        return None
    if ttl_s is None:
        return None
    key = GroupKey(metadata["namespace"], metadata["name"])
    return Finished(key, metadata["uid"], metadata["resourceVersion"], since + ttl_s)


class Expiries:
    """The finished PodGroups that are known, in the order in which they are due."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Finished, int]] = {}
        self._heap: list[tuple[float, str, str]] = []

    def __len__(self) -> int:
        return len(self._known)

    def note(self, group: Finished) -> None:
        """Note this version of a PodGroup; nothing changes if it is known."""
        entry = self._known.get(group.uid)
        if entry is None or entry[0] != group:
            self._put(group, 0, group.due)

    def forget(self, uid: str) -> None:
        """Forget a PodGroup that is gone, or no longer finished."""
        self._known.pop(uid, None)

    def take(self, now: float, most: int) -> list[GroupExpired]:
        """The PodGroups that are due, the longest first, at most so many. Each is due again after a pause."""
        expired: list[GroupExpired] = []
        while self._heap and self._heap[0][0] <= now and len(expired) < most:
            _, uid, version = heapq.heappop(self._heap)
            group, times = self._known.get(uid, (None, 0))
            if group is None or group.version != version:
                continue
            expired.append(GroupExpired(group.key, uid, version))
            if times < len(PAUSES_S):
                self._put(group, times + 1, now + PAUSES_S[times])
            else:
                del self._known[uid]
        return expired

    def _put(self, group: Finished, times: int, due: float) -> None:
        self._known[group.uid] = group, times
        heapq.heappush(self._heap, (due, group.uid, group.version))
