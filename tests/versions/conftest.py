"""Tests of several versions of Kubernetes; `make versions` builds the older ones and runs these tests."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    for mark in (pytest.mark.integration, pytest.mark.versions, pytest.mark.timeout(900)):
        item.add_marker(mark)
