"""A minute of the soak, with a control plane of its own: see tests.faults.soak."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import binaries

ROOT = Path(__file__).resolve().parents[2]
DURATION_S = 60


@pytest.mark.integration
@pytest.mark.sample
@pytest.mark.timeout(600)
def test_all_rules_hold_under_a_minute_of_all_faults() -> None:
    """The seed is in the output of a failure, with the folder that holds logs and recordings."""
    if binaries.find() is None:
        message = "NOT TESTED under faults: the control plane is not built; run make control-plane"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    seed = 1 if os.environ.get("CI") == "true" else secrets.randbelow(10**6)
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.soak", "--duration", str(DURATION_S), "--seed", str(seed)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["seed"] == seed
    assert report["violations"] == []
    assert report["quiet_periods"] >= 1
    assert report["bindings"] >= 10
    assert report["groups_with_places"] >= 1
    assert sum(report["faults"].values()) >= 20
    assert report["troubles"]["kill_apiserver"] >= 1
    assert report["replayed_turns"] >= 100
