"""Waiting for conditions in other processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Of = TypeVar("Of")
WITHIN_S = 60.0
"""How long tests wait unless they say otherwise: far longer than anything takes, because the machine may be busy."""


def until(condition: Callable[[], Of], within_s: float = WITHIN_S, *, what: str | Callable[[], str] = "") -> Of:
    """Wait until the condition holds; returns its value.

    Polls less often the longer it waits, because polling takes processor time from the awaited process.
    """
    began = time.monotonic()
    while not (result := condition()):
        waited_s = time.monotonic() - began
        assert waited_s < within_s, f"not within {within_s:g} s: {what() if callable(what) else what or condition}"
        time.sleep(min(max(0.03, waited_s / 6), 0.5))
    return result
