"""How a pod names its group: gangsched's own labels and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gangsched.core.duration import parse_duration
from gangsched.core.model import Declaration

GROUP_LABEL = "gangsched.io/pod-group"
ROLE_LABEL = "gangsched.io/role"
MIN_MEMBER_ANNOTATION = "gangsched.io/min-member"
MAX_SCHEDULE_TIME_ANNOTATION = "gangsched.io/max-schedule-time"

_MAX_MEMBERS = 2**31 - 1
_LONGEST_QUOTE = 40


def declaration(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Declaration | None:
    """What the pod says of its group; None for a plain pod, which has no group label.

    Annotations without the label say nothing. What cannot be read becomes the declaration's `error`.
    """
    group = labels.get(GROUP_LABEL)
    if group is None:
        return None
    return _declaration(
        group,
        labels.get(ROLE_LABEL, ""),
        annotations.get(MIN_MEMBER_ANNOTATION),
        annotations.get(MAX_SCHEDULE_TIME_ANNOTATION),
    )


@lru_cache(maxsize=1024)
def _declaration(group: str, role: str, members: str | None, time: str | None) -> Declaration:
    if not group:
        return Declaration(group="", role=role, error=f"The label {GROUP_LABEL} is empty: give it the group's name.")
    try:
        return Declaration(
            group=group,
            role=role,
            min_member=None if members is None else _min_member(members),
            max_schedule_time_s=None if time is None else _max_schedule_time_s(time),
        )
    except ValueError as error:
        return Declaration(group=group, role=role, error=str(error))


def _min_member(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_MEMBERS)) and 1 <= int(text) <= _MAX_MEMBERS:
        return int(text)
    raise ValueError(
        f"The annotation {MIN_MEMBER_ANNOTATION} is {_quoted(text)}: write a whole number from 1 to {_MAX_MEMBERS}."
    )


def _max_schedule_time_s(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(
            f"The annotation {MAX_SCHEDULE_TIME_ANNOTATION} is {_quoted(text)}:"
            " write a duration from 1s to 168h, such as 90s, 5m or 1h30m."
        ) from None


def _quoted(text: str) -> str:
    """The text for a sentence: on one line and not longer than a glance."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")
