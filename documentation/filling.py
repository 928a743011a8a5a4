"""Inserts generated parts into a hand-written page."""

from __future__ import annotations

import re


def put(pattern: str, new: str, text: str) -> str:
    """The text with the pattern's only match replaced.

    Raises:
        ValueError: the pattern has no match, or several.
    """
    text, number = re.subn(pattern, lambda _: new, text)
    if number != 1:
        raise ValueError(f"{pattern!r} is found {number} times: put back the one part that is generated")
    return text
