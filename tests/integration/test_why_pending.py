"""docs/why-pending.md shows the messages for each kind of waiting."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from documentation.waiting import KINDS, NAMESPACE
from testbed.control_plane import ControlPlane
from tests.integration import why_pending
from tests.integration.pictures import Camera

ALIKE = 0.05
"""Largest permitted fraction of different pixels. Other machines render letters differently, which changes less than
this; boxes that are filled differently, or a sentence more or less, change more."""


@pytest.mark.timeout(900)
def test_the_page_shows_what_is_told_of_each_kind(
    with_crd: ControlPlane, camera: Camera, record_property: Callable[[str, object], None]
) -> None:
    with_crd.delete_nodes()
    try:
        with why_pending.watched(with_crd, camera):
            seen = why_pending.play(with_crd, camera)
    finally:
        why_pending.clear(with_crd)
        with_crd.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        with_crd.kubectl("delete", "deviceclass", "accelerators", "--ignore-not-found")
    assert len(seen) == len(KINDS) == 15
    assert why_pending.page(seen) == why_pending.PAGE.read_text()
    shown = {name: (why_pending.PICTURES / f"{name}.webp").read_bytes() for name in seen}
    differing = {name: camera.difference(each.picture, shown[name]) for name, each in seen.items()}
    record_property("measured", f"pictures of why-pending: at most {max(differing.values()):.1%} of the pixels differ")
    assert max(differing.values()) < ALIKE, differing
    # The comparison would notice if two were swapped.
    assert camera.difference(shown["few"], shown["cpu"]) > ALIKE
