"""A gang's record, step by step."""

from __future__ import annotations

import pytest

from gangsched.core.gang import placeholders
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.podgroup import GroupSpec, TimeoutPolicy
from gangsched.core.objects.record import Minima, Record
from tests.builders import key


@pytest.mark.parametrize("policy", TimeoutPolicy)
def test_successes_of_a_quorum_that_is_given_up_with_its_places_count_for_no_later_one(policy):
    """Regression: they stayed in the record when the reservation expired, and the next quorum's minimum was too low."""
    gang = Gang(key("a"))
    gang.record = Record(run_start=1.0, quorum=Minima(2), quorum_done=(("", 1),))
    placeholders.wait_no_longer(gang, GroupSpec(min_member=2, timeout_policy=policy), 5.0)
    assert (gang.record.quorum, gang.record.quorum_done) == (None, ())
