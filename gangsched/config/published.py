"""Settings as a leader publishes them on its Lease, so that the command line decides by the operator's own rules.

The settings that affect decisions about groups and differ from their defaults are published as one JSON object. If that
is too large for an annotation that is written with every renewal, its digest is published instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from gangsched.config.settings import Settings

_MOST_BYTES = 8192
_LONGEST = 4 * _MOST_BYTES
"""Longest text that is read, in characters: whoever may create a Lease may write a quarter of a megabyte into it."""
_DIGEST = "sha256:"
_NO_RULES = frozenset(
    {"leader_election", "listen", "page", "log_format", "log_level", "bind_concurrency", "pod_groups"}
)
"""Settings of the process, which affect no decision about a group."""
_ATTEMPTS = 64


@dataclass(frozen=True, slots=True)
class Published:
    """The settings of a leader, as far as they are known.

    `changed` are the keys that differ from their defaults. `unknown` are keys that this version does not know, or whose
    values it rejects: the leader is probably newer. `too_large`: only the digest of the settings was published.
    """

    settings: Settings
    changed: Sequence[str] = ()
    unknown: Sequence[str] = ()
    too_large: bool = False


def published(settings: Settings) -> str:
    """The text that publishes these settings."""
    values = settings.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=set(_NO_RULES))
    text = json.dumps(values, separators=(",", ":"), sort_keys=True)
    if len(text.encode()) <= _MOST_BYTES:
        return text
    return _DIGEST + hashlib.sha256(text.encode()).hexdigest()


def read(text: str) -> Published | None:
    """The settings that a leader has published with this text; None if the text is invalid."""
    if text.startswith(_DIGEST):
        return Published(Settings(), too_large=True)
    if len(text) > _LONGEST:
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    unknown: list[str] = []
    for _ in range(_ATTEMPTS):
        try:
            settings = Settings.model_validate_json(json.dumps(values))
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                unknown += _drop(values, fault["loc"], extra=fault["type"] == "extra_forbidden")
        else:
            return Published(settings, sorted(values), sorted({*unknown}))
    return None


def _drop(values: dict[str, Any], place: Sequence[str | int], *, extra: bool) -> Sequence[str]:
    """Remove the fault at this place and return the removed keys: an unknown key alone, otherwise its top-level key.

    A fault without a place concerns several keys together, so all keys are removed.
    """
    if not place:
        dropped = list(values)
        values.clear()
        return dropped
    part: Any = values
    for key in place[:-1] if extra else ():
        part = part.get(key) if isinstance(part, dict) else None
    if extra and isinstance(part, dict):
        part.pop(place[-1], None)
        return [".".join(map(str, place))]
    values.pop(str(place[0]), None)
    return [str(place[0])]
