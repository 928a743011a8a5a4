"""The rules of leader election, with clocks that jump and drift."""

from __future__ import annotations

import msgspec
import pytest

from gangsched.config.settings import LeaderElection
from gangsched.kube.client.lease import Lease, LeaseSpec
from gangsched.runtime.election import Election, Timing

WALL = 1_767_225_600.0
T0 = "2026-01-01T00:00:00.000000Z"


def lease(holder: str | None = "other", *, version: str = "7", renewed: str = T0, **fields) -> Lease:
    spec = LeaseSpec(
        holder_identity=holder, lease_duration_seconds=15, acquire_time=T0, renew_time=renewed, lease_transitions=3
    )
    return Lease(version, msgspec.structs.replace(spec, **fields))


def election() -> Election:
    return Election("me", Timing())


def leading(*, sent: float = 100.0) -> Election:
    """An election that took over the lease by a request sent at `sent`."""
    made = election()
    made.saw(lease(holder=""), now=sent)
    take(made, sent=sent)
    return made


def take(made: Election, *, sent: float, version: str = "8", answered: float | None = None) -> None:
    """Claim the lease, which must be possible at `sent`."""
    claimed = made.claim(now=sent, wall=WALL)
    assert claimed is not None
    made.wrote(Lease(version, claimed[0]), sent=sent, now=sent if answered is None else answered)


def test_without_a_lease_it_is_created():
    made = election()
    made.saw(None, now=100.0)
    assert made.claim(now=100.0, wall=WALL) == (
        LeaseSpec(
            holder_identity="me",
            lease_duration_seconds=15,
            acquire_time=T0,
            renew_time="2026-01-01T00:00:00.000002Z",
            lease_transitions=0,
        ),
        "",
    )
    take(made, sent=100.0)
    assert not made.handed_over


def test_a_lease_of_another_is_taken_over_as_a_transition_that_names_the_version_seen():
    made = election()
    made.saw(lease(), now=100.0)
    assert made.claim(now=114.9, wall=WALL) is None
    claimed = made.claim(now=115.0, wall=WALL + 60)
    assert claimed is not None
    spec, version = claimed
    assert version == "7"
    assert spec.holder_identity == "me"
    assert spec.lease_transitions == 4
    assert spec.acquire_time == "2026-01-01T00:01:00.000000Z"


@pytest.mark.parametrize("holder", ["", None])
def test_a_lease_that_nobody_holds_is_claimed_at_once_as_a_hand_over(holder):
    made = election()
    made.saw(lease(holder=holder), now=100.0)
    take(made, sent=100.0)
    assert made.handed_over
    assert made.transitions == 4
    take(made, sent=102.0)
    assert made.handed_over


def test_an_expired_lease_is_no_hand_over():
    made = election()
    made.saw(lease(), now=100.0)
    take(made, sent=115.0)
    assert not made.handed_over


def test_each_renewal_that_is_seen_starts_the_wait_anew():
    made = election()
    made.saw(lease(), now=100.0)
    made.saw(lease(renewed="2026-01-01T00:00:02.000000Z", version="8"), now=110.0)
    made.saw(lease(renewed="2026-01-01T00:00:02.000000Z", version="8"), now=120.0)
    assert made.claim(now=124.9, wall=WALL) is None
    assert made.claim(now=125.0, wall=WALL) is not None


def test_somebody_who_labels_the_lease_does_not_renew_it():
    made = election()
    made.saw(lease(version="7"), now=100.0)
    made.saw(lease(version="9"), now=114.0)
    claimed = made.claim(now=115.0, wall=WALL)
    assert claimed is not None
    assert claimed[1] == "9"


@pytest.mark.parametrize("renewed", ["1970-01-01T00:00:00.000000Z", T0, "2999-01-01T00:00:00.000000Z", "nonsense"])
def test_times_of_other_machines_decide_nothing(renewed):
    made = election()
    made.saw(lease(renewed=renewed), now=100.0)
    assert made.claim(now=114.9, wall=0.0) is None
    assert made.claim(now=115.0, wall=0.0) is not None


@pytest.mark.parametrize(("written", "lasts_s"), [(60, 60.0), (1, 1.0), (None, 15.0), (0, 15.0)])
def test_the_wait_is_what_the_holder_promised(written, lasts_s):
    made = election()
    made.saw(lease(lease_duration_seconds=written), now=100.0)
    assert made.free_in_s(100.0) == lasts_s


def test_the_right_to_act_is_counted_from_the_sending_not_from_the_answer():
    made = leading(sent=100.0)
    take(made, sent=104.0, answered=109.0)
    assert made.held(113.9)
    assert not made.held(114.0)


def test_a_paused_process_that_wakes_up_late_may_not_act():
    made = leading(sent=100.0)
    assert not made.held(3600.0)
    assert made.held_for_s(3600.0) == 0.0


def test_a_renewal_answered_after_its_own_deadline_gives_nothing():
    made = leading(sent=100.0)
    take(made, sent=102.0, answered=112.5)
    assert not made.held(112.5)


def test_a_renewal_keeps_who_and_since_when_and_never_repeats_a_time_though_the_clock_stands_still():
    made = leading()
    seen = set()
    for round_ in range(200):
        claimed = made.claim(now=102.0, wall=WALL)
        assert claimed is not None
        spec, version = claimed
        assert (version, spec.lease_transitions, spec.acquire_time) == (str(8 + round_), 4, T0)
        seen.add(spec.renew_time)
        made.wrote(Lease(str(9 + round_), spec), sent=102.0, now=102.0)
    assert len(seen) == 200


def test_a_wall_clock_that_jumps_back_changes_nothing_but_what_is_written():
    made = leading(sent=100.0)
    claimed = made.claim(now=102.0, wall=0.0)
    assert claimed is not None
    made.wrote(Lease("9", claimed[0]), sent=102.0, now=102.0)
    assert made.held(111.9)


def test_a_claim_without_an_answer_gives_no_right_to_act_but_is_recognised_when_read():
    made = election()
    made.saw(lease(holder=""), now=100.0)
    claimed = made.claim(now=100.0, wall=WALL)
    assert claimed is not None
    made.saw(Lease("8", claimed[0]), now=105.0)
    assert not made.held(105.0)
    take(made, sent=106.0, version="9")
    assert made.held(106.0)
    assert made.transitions == 4


def test_a_lease_that_vanished_still_counts_until_it_expires_and_is_then_created():
    made = election()
    made.saw(lease(), now=100.0)
    made.saw(None, now=101.0)
    assert made.claim(now=114.9, wall=WALL) is None
    claimed = made.claim(now=115.0, wall=WALL)
    assert claimed is not None
    assert claimed[1] == ""
    assert claimed[0].lease_transitions == 4


@pytest.mark.parametrize(
    ("now", "chance", "wait_s"),
    [
        (100.0, 0.0, 2.0),
        (100.0, 1.0, 1.6),
        (101.0, 0.0, 1.0),
        (107.0, 0.0, 0.0),
    ],
)
def test_attempts_begin_a_retry_period_apart_less_a_spread_however_long_the_last_one_took(now, chance, wait_s):
    assert leading().wait_s(began=100.0, now=now, chance=chance) == pytest.approx(wait_s)


def test_a_candidate_wakes_up_when_the_lease_expires():
    made = election()
    made.saw(lease(), now=100.0)
    assert made.wait_s(began=113.5, now=113.6, chance=0.0) == pytest.approx(1.4)
    assert made.wait_s(began=101.0, now=101.0, chance=0.0) == 2.0


def test_the_times_are_those_of_the_settings():
    settings = LeaderElection.model_validate({"leaseDuration": "1m", "renewDeadline": "40s", "retryPeriod": "3s"})
    assert Timing.of(settings) == Timing(lease_s=60, renew_s=40, retry_s=3)
    assert Timing.of(LeaderElection()) == Timing()
