"""The browser for the tests of the page."""

from __future__ import annotations

from tests.browsing import board, browser, own_tab, tab, window

__all__ = ["board", "browser", "own_tab", "tab", "window"]
