"""Puts generated parts into a page that people write."""

from __future__ import annotations

import re


def put(pattern: str, new: str, text: str) -> str:
    """The text with the one part that the pattern finds replaced.

    Raises:
        ValueError: there is none, or there are several.
    """
    text, number = re.subn(pattern, lambda _: new, text)
    if number != 1:
        raise ValueError(f"{pattern!r} is found {number} times: put back the one part that is generated")
    return text
