"""The API server is killed while gangs are bound, on a separate control plane, with the chart's account."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import crds
from testbed.control_plane import ControlPlane
from tests.faults.outages import Outages

pytestmark = [pytest.mark.sample, pytest.mark.timeout(240)]


def test_kills_of_the_api_server_end_no_replica_and_leave_no_gang_in_pieces(tmp_path: Path) -> None:
    """Two replicas; it is down for a moment, and for about the leader's deadline plus its own start-up time.

    A restarted server denies everything for some seconds (403), and answers 410 to every watch: one list for each kind
    and replica, and one of the statuses for each new leader. `make outages` does this twenty times, also with one.
    """
    with ControlPlane() as control_plane:
        crds.install(control_plane)
        report = Outages(control_plane, replicas=2, folder=tmp_path, seed=1, say=lambda _: None).run((0, 12))
    assert not report.wrong(), "\n".join(report.wrong())
    assert report.relists
    for labels, lists in report.relists.items():
        most = 2 * 2 if 'cause="Expired"' in labels else 1 + sum(each.lost_lease for each in report.rounds)
        assert lists <= most, report.table()
