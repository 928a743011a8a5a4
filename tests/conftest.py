"""Puts the repository's root on the path, loads the checks that end every test run, and sets up hypothesis."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest_plugins = ["tests.run_checks"]

# How long an example takes says something about the machine's load, nothing about the code. CI tries the same examples
# each time, so that it judges the change and not the draw; at a desk they differ, which is how new defects are found.
hypothesis.settings.register_profile(
    "gangsched",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
hypothesis.settings.load_profile("gangsched")


@pytest.fixture(autouse=True)
def _faults_are_not_contained(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the core fails the test, unless the test is about such faults (marker `faults`)."""
    if request.node.get_closest_marker("faults") is None:
        from gangsched.core.containment import Containment

        def fail(_self: object, _key: object, _step: object, error: Exception, _now: float) -> None:
            raise error

        monkeypatch.setattr(Containment, "park", fail)
