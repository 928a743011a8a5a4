"""A quorum that is decided and of which nothing is bound or on its way, because volumes are not ready yet.

What is asked for may change meanwhile: it is given up then, and the group is judged anew (contract rules 9 and 10).
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.record import Phase
from gangsched.core.objects.volumes import StorageClass
from tests.builders import claim, group, node, pod
from tests.harness import Harness


def awaiting() -> Harness:
    """A group of two whose nodes, in two zones, are chosen; its volumes are being provisioned."""
    harness = Harness.of(*(node(f"n{zone}", cpu=1, labels={"zone": zone}) for zone in "xy"), group("a", min_member=2))
    harness.disks.busy = True
    harness.provide(StorageClass("fast", "csi", waits=True, provisions=True))
    for at in (1, 2):
        harness.provide(claim(f"default/a-{at}", storage_class="fast", uid=f"claim-{at}"))
        harness.add(pod(f"a-{at}", group="a", volume_claims=[f"a-{at}"]))
    harness.wait(3)
    return harness


def provision(harness: Harness) -> None:
    harness.disks.busy = False
    harness.disks.work()
    harness.wait(60)


@pytest.mark.parametrize(
    ("change", "phase"),
    [({"min_member": 3}, Phase.PENDING), ({"topology": Topology("zone")}, Phase.QUEUED)],
    ids=["minimum", "topology"],
)
def test_what_a_changed_spec_asks_for_applies_at_once(change: dict[str, Any], phase: Phase) -> None:
    """Regression: both were bound, in two zones, though the group required one, or needed three."""
    harness = awaiting()
    harness.change_spec("default/a", **change)
    harness.wait(30)
    provision(harness)
    assert (harness.bound(), harness.status("default/a").phase) == ([], phase)


def test_what_changes_nothing_about_who_goes_where_is_no_reason() -> None:
    harness = awaiting()
    harness.change_spec("default/a", priority=7)
    provision(harness)
    assert harness.bound() == ["default/a-1", "default/a-2"]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_group_that_is_made_again_under_the_same_name_decides_anew(*, at_once: bool) -> None:
    """Regression: what its predecessor had decided was bound with the minimum of that."""
    harness = awaiting()
    harness.delete_group("default/a")
    if not at_once:
        harness.wait(1)
    harness.add(group("a", min_member=3, uid="uid-2", created=harness.now))
    harness.wait(3)
    provision(harness)
    assert (harness.bound(), harness.status("default/a").phase) == ([], Phase.PENDING)
