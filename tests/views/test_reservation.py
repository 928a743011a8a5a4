"""What is shown of places that are reserved for later."""

from __future__ import annotations

import pytest

from gangsched.views.group_row import ReservedLater, as_object
from gangsched.views.group_rows import row
from tests.harness import START
from tests.reserving import cluster, gang, runs, starve


@pytest.mark.parametrize(("ends_in", "start"), [(300.0, START + 300), (None, 0.0)])
def test_a_row_says_from_when_on_places_are_reserved_and_for_how_many_pods_it_waits(ends_in, start):
    harness = cluster(*(runs(f"p{at}", at, ends_in) for at in range(4)))
    starve(harness, *gang("g", 3))
    machine = harness.machine
    key = next(key for key in machine.gangs if key.name == "g")
    found = row(machine.gangs[key], machine.assessments[key])
    assert found.reserved == ReservedLater(start, 3, 3)
    assert found.plan is None
    assert as_object(found)["reserved"] is not None
