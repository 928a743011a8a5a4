"""The browser for the tests of the page."""

from __future__ import annotations

from tests.browsing import board, browser, tab

__all__ = ["board", "browser", "tab"]
