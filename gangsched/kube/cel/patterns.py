"""Kubernetes' functions for regular expressions, with a limit of the work that matching may take."""

from __future__ import annotations

import re

_MOST_WORK = 1_000_000
"""Largest number of steps that matching a pattern may take. A pattern that could take more is an error, because users
write patterns and all groups wait while one is matched."""


def _pattern(pattern: str, text: str) -> re.Pattern[str]:
    repeats, choices = len(re.findall(r"[*+{]", pattern)), len(re.findall(r"[|?]", pattern))
    if re.search(r"\)\s*[*+{]|\(\?[^:]|\\[1-9]", pattern) or max(2, len(text)) ** repeats << choices > _MOST_WORK:
        raise ValueError(f"the pattern {pattern!r} could take too long")
    try:
        return re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ValueError(pattern) from error


def find(text: str, pattern: str) -> str:
    """The first match of the pattern; empty if there is none."""
    match = _pattern(pattern, text).search(text)
    return match[0] if match else ""


def find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    """The matches of the pattern, at most so many; a negative number is no limit."""
    matches = [match[0] for match in _pattern(pattern, text).finditer(text)]
    return matches if most < 0 else matches[:most]
