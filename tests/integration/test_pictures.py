"""The pictures of the page in the documentation are of this tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browsing import remembered, scene, seen
from tests.integration.pictures import IMAGES, SHOTS, Camera

ALIKE = 0.04
"""Greatest fraction of differing pixels: ages count up, and fonts differ between machines."""


@pytest.mark.timeout(180)
def test_the_pictures_show_the_page_as_it_is(camera: Camera, record_property: Callable[[str, object], None]) -> None:
    camera.open_board(seen(scene()) | remembered())
    taken = {shot.name: camera.view(shot) for shot in SHOTS}
    shown = {name: (IMAGES / f"{name}.webp").read_bytes() for name in taken}
    differing = {name: camera.difference(picture, shown[name]) for name, picture in taken.items()}
    record_property("measured", f"pictures of the page: at most {max(differing.values()):.1%} of the pixels differ")
    assert max(differing.values()) < ALIKE, differing
    # The comparison would notice if two were swapped.
    assert camera.difference(shown["page"], shown["page-gang"]) > ALIKE
