"""Puts the repository's root on the path, loads the checks that end every test run, and sets up hypothesis."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hypothesis

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
