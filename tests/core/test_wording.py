"""Times in sentences."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.wording import moment


@given(st.integers(0, 253_402_300_799))
def test_a_time_is_written_as_kubernetes_writes_it(seconds):
    assert moment(seconds) == datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
