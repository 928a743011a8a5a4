"""What a run in a stream of small Jobs finds wrong, and a minute of one."""

from __future__ import annotations

import os
import secrets

import pytest

from testbed import binaries
from tests.faults.starving import KILLS, LIMITS_S, OUTAGE_S, PASS_S, Findings, Starved, play

SAMPLE_S = 60.0


@pytest.mark.parametrize(
    ("gang", "wrong"),
    [
        (Starved(name="g", came=0.0, is_first=True), 0),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0], bound=10.0 + PASS_S), 0),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0], bound=11.0 + PASS_S), 1),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0]), 1),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0], bound=10.0 + PASS_S + OUTAGE_S, killed=True), 0),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0, 8.0], bound=8.0), 0),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0, 8.0, 9.0], bound=9.0), 1),
        (Starved(name="g", came=0.0, is_first=False, starts=[10.0, 20.0], bound=20.0), 0),
        (Starved(name="g", came=0.0, is_first=False, starts=[10.0], bound=LIMITS_S[1] + 1.0 + PASS_S), 1),
        (Starved(name="g", came=0.0, is_first=True, starts=[10.0], bound=9.0, partial=True), 1),
    ],
)
def test_who_is_bound_too_late_or_in_part_is_found(gang: Starved, wrong: int) -> None:
    assert len(Findings(gangs=[gang], ended=100.0).wrong()) == wrong


def test_an_eviction_is_found() -> None:
    assert len(Findings(evictions=1).wrong()) == 1


@pytest.mark.integration
@pytest.mark.sample
@pytest.mark.timeout(300)
def test_gangs_start_by_the_time_that_was_written_first_though_small_jobs_fill_every_gap() -> None:
    """`make nightly` does this for ten minutes. The seed is in the output of a failure."""
    if binaries.find() is None:
        message = "NOT TESTED in a stream of Jobs: the control plane is not built; run make control-plane"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    seed = 1 if os.environ.get("CI") == "true" else secrets.randbelow(10**6)
    found = play(duration_s=SAMPLE_S, seed=seed)
    assert found.wrong() == [], f"seed {seed}: {found.report()}"
    assert found.kills == KILLS
    assert found.backfilled
    # Who finds room by chance is bound before it starves.
    starved = [gang for gang in found.gangs if gang.bound > gang.came + PASS_S]
    assert all(gang.starts for gang in starved), f"seed {seed}: {found.report()}"
    assert starved
