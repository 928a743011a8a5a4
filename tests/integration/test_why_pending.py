"""docs/why-pending.md shows what people are told of each kind of waiting."""

from __future__ import annotations

import pytest

from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.waiting import KINDS, NAMESPACE
from tests.integration import why_pending


@pytest.mark.timeout(300)
def test_the_page_shows_what_is_told_of_each_kind(with_crd: ControlPlane) -> None:
    with_crd.delete_nodes()
    try:
        with Operator(with_crd, leader_elect=True):
            seen = why_pending.play(with_crd)
    finally:
        why_pending.clear(with_crd)
        with_crd.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        with_crd.kubectl("delete", "deviceclass", "accelerators", "--ignore-not-found")
    assert len(seen) == len(KINDS) == 15
    assert why_pending.page(seen) == why_pending.PAGE.read_text()
