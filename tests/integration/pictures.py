"""Pictures of the page, taken in a real browser.

`python -m tests.integration.pictures` (make docs) writes those of README and docs/dashboard.md, of `tests.page_scene`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gangsched.page.board import Board
from gangsched.page.listener import Listener
from gangsched.page.server import Page
from testbed import chromium
from testbed.chromium import Tab
from testbed.operator import Operator, address_of_page
from tests.browsing import Echo, remembered, scene, seen
from tests.page_scene import END

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
SETTINGS = "page: {enabled: true, port: 0}\n"
WIDTH = 640
_TOP = """({
    y: document.querySelector("main").offsetTop - 4,
    to: document.getElementById(%s).getBoundingClientRect().bottom,
})"""
_DIFFERENCE = """(async (one, other) => {
    const pixels = async (data) => {
        const bitmap = await createImageBitmap(await (await fetch(`data:image/webp;base64,${data}`)).blob());
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height), pen = canvas.getContext("2d");
        pen.drawImage(bitmap, 0, 0);
        return [bitmap.width, bitmap.height, pen.getImageData(0, 0, bitmap.width, bitmap.height).data];
    };
    const [wide, high, first] = await pixels(one), [otherWide, otherHigh, second] = await pixels(other);
    const most = Math.max(high, otherHigh) * Math.max(wide, otherWide);
    let differing = most - Math.min(high, otherHigh) * Math.min(wide, otherWide);
    for (let y = 0; y < Math.min(high, otherHigh); y += 1) {
        for (let x = 0; x < Math.min(wide, otherWide); x += 1) {
            const here = 4 * (y * wide + x), there = 4 * (y * otherWide + x);
            differing += [0, 1, 2].some((of) => Math.abs(first[here + of] - second[there + of]) > 40);
        }
    }
    return differing / most;
})"""


class Shot(NamedTuple):
    """A picture of the scene: its name, the size of the window, and the fragment of the page's address."""

    name: str
    width: int
    height: int
    dark: bool = False
    address: str = ""


SHOTS = (
    Shot("page", 1440, 900),
    Shot("page-dark", 1440, 900, dark=True),
    Shot("page-gang", 1440, 900, address="group=vision/depth-est"),
    Shot("page-gang-dark", 1440, 900, dark=True, address="group=vision/depth-est"),
    Shot("page-phone", 390, 844),
    Shot("page-phone-dark", 390, 844, dark=True),
)
_SETTLED_MS = 1500
"""After a change of the window, in milliseconds, the page is at rest."""


class Camera:
    """A browser that shows the operator's page, for synchronous callers."""

    def __init__(self, runner: asyncio.Runner, tab: Tab, stack: AsyncExitStack) -> None:
        self._runner = runner
        self._tab = tab
        self._stack = stack

    def open(self, operator: Operator) -> None:
        """Show the page of this operator."""
        self._runner.run(self._open(address_of_page(operator)))

    def open_board(self, things: Mapping[str, bytes]) -> None:
        """Show a page of these things at the time of the scene."""
        self._runner.run(self._open_board(things))

    def view(self, shot: Shot) -> bytes:
        """A WebP picture of what a window shows."""
        return self._runner.run(self._view(shot))

    def picture(self, *, to: str, dark: bool = False) -> bytes:
        """A WebP picture of what the page shows from its first heading to the end of the element with this id."""
        return self._runner.run(self._picture(to, dark=dark))

    def difference(self, one: bytes, other: bytes) -> float:
        """The fraction of pixels, from 0 to 1, that differ clearly between two pictures."""
        both = ", ".join(json.dumps(base64.b64encode(each).decode()) for each in (one, other))
        # On a page without a Content-Security-Policy, which may read its own data.
        self._runner.run(self._tab.page.goto("about:blank"))
        return float(self.value(f"{_DIFFERENCE}({both})"))

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self._runner.run(self._tab.page.evaluate(expression))

    async def _open(self, address: str) -> None:
        await self._tab.page.set_viewport_size({"width": WIDTH, "height": 900})
        await self._tab.page.goto(address)
        await self._tab.until("document.body?.classList.contains('shown')")

    async def _open_board(self, things: Mapping[str, bytes]) -> None:
        board = Board()
        board.show(things)
        page = Page(board, again="", what_if=Echo(), now=lambda: END)
        listener = Listener(page)
        self._stack.push_async_callback(listener.close)
        port = await listener.start(0)
        await self._open(f"http://127.0.0.1:{port}/?token={page.token}")

    async def _view(self, shot: Shot) -> bytes:
        page = self._tab.page
        await page.set_viewport_size({"width": shot.width, "height": shot.height})
        await page.emulate_media(color_scheme="dark" if shot.dark else "light")
        await page.evaluate(f"location.hash = {json.dumps(shot.address)}")
        await page.wait_for_timeout(_SETTLED_MS)
        taken = await self._tab.devtools.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
        return base64.b64decode(taken["data"])

    async def _picture(self, to: str, *, dark: bool) -> bytes:
        await self._tab.page.emulate_media(color_scheme="dark" if dark else "light")
        found = await self._tab.page.evaluate(_TOP % json.dumps(to))
        clip = {"x": 0, "y": found["y"], "width": WIDTH, "height": found["to"] - found["y"] + 8, "scale": 1}
        wanted = {"format": "webp", "quality": 80, "clip": clip, "captureBeyondViewport": True}
        taken = await self._tab.devtools.send("Page.captureScreenshot", wanted)
        return base64.b64decode(taken["data"])


@contextmanager
def camera() -> Iterator[Camera]:
    """A camera, whose browser ends with the block.

    Raises:
        SetupError: there is no Chromium.
    """
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            browser = runner.run(stack.enter_async_context(chromium.started()))
            yield Camera(runner, runner.run(stack.enter_async_context(chromium.tab(browser))), stack)
        finally:
            runner.run(stack.aclose())


def main() -> None:
    """Write the pictures of the scene."""
    with camera() as made:
        made.open_board(seen(scene()) | remembered())
        for shot in SHOTS:
            (IMAGES / f"{shot.name}.webp").write_bytes(made.view(shot))


if __name__ == "__main__":
    main()
