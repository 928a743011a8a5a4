"""Puts the repository's root on the path and loads the checks that end every test run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest_plugins = ["tests.run_checks"]
