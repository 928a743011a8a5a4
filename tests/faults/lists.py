"""Lists that are older than they could be, only where a real API server might give them too.

A list that asks for no resourceVersion is consistent: the answer is at least as new as the moment of the request. Such
a list is therefore only held back, so that it is old when it arrives, like any that was long on its way. One that asks
for resourceVersion 0 may be of any age, as behind several API servers; one that asks for "not older than" a version
may be as old as that. These get an answer that was given before.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Hashable, Mapping
from random import Random

from tests.faults.answers import Answer
from tests.faults.plan import Asked

_KEPT = 4
_VERSIONING = ("resourceVersion", "resourceVersionMatch")


class Lists:
    """Remembers the last answers to each list, by caller, path and query."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, deque[Answer]] = defaultdict(lambda: deque(maxlen=_KEPT))

    def remember(self, caller: str, asked: Asked, answer: Answer) -> None:
        """Keep the answer if it is a list that may be given again."""
        if answer.status == 200 and oldest_allowed(asked.query) is not None and _version(answer) is not None:
            self._answers[_key(caller, asked)].append(answer)

    def older(self, caller: str, asked: Asked, dice: Random) -> Answer | None:
        """An answer given before that this request may get; None if there is none."""
        oldest = oldest_allowed(asked.query)
        if oldest is None:
            return None
        usable = [answer for answer in self._answers[_key(caller, asked)] if (_version(answer) or 0) >= oldest]
        return dice.choice(usable) if usable else None


def oldest_allowed(query: Mapping[str, str]) -> int | None:
    """The oldest version that may answer a list with this query; None if it must be consistent or exact."""
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    if not version.isdecimal() or match == "Exact" or "continue" in query:
        return None
    # Without a word on how to match, a version goes with a limit only as an exact one, unless it is 0.
    if "limit" in query and not match and version != "0":
        return None
    return int(version)


def _key(caller: str, asked: Asked) -> Hashable:
    return caller, asked.path, frozenset(item for item in asked.query.items() if item[0] not in _VERSIONING)


def _version(answer: Answer) -> int | None:
    if "Content-Encoding" in answer.headers:
        return None
    try:
        return int(json.loads(answer.body)["metadata"]["resourceVersion"])
    except (ValueError, LookupError, TypeError):
        return None
