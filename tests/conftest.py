"""Puts the repository's root on the path, loads the checks that end every test run, and sets up hypothesis."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest_plugins = ["tests.run_checks"]

# How long an example takes says something about the machine's load, nothing about the code.
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("untimed")
