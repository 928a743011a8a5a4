"""Pictures of the operator's page, taken in a real browser.

`python -m tests.integration.pictures` (make docs) writes those of docs/dashboard.md.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from demo.playground import FOLDER, add_nodes
from testbed import chromium, crds
from testbed.chromium import Tab
from testbed.control_plane import ControlPlane
from testbed.operator import Operator, address_of_page
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

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


class Camera:
    """A browser that shows the operator's page, for synchronous callers."""

    def __init__(self, runner: asyncio.Runner, tab: Tab) -> None:
        self._runner = runner
        self._tab = tab

    def open(self, operator: Operator) -> None:
        """Show the page of this operator."""
        self._runner.run(self._open(address_of_page(operator)))

    def text(self, selector: str) -> str:
        """The text of the first such element."""
        return str(self.value(f"document.querySelector({json.dumps(selector)}).textContent"))

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
        await self._tab.until("document.getElementById('summary')?.textContent.includes('group')")

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
            yield Camera(runner, runner.run(stack.enter_async_context(chromium.tab(browser))))
        finally:
            runner.run(stack.aclose())


def main() -> None:
    """Run the playground's first steps and write the pictures of the page."""
    with ControlPlane() as control_plane, camera() as made:
        crds.install(control_plane)
        add_nodes(control_plane)
        settings = control_plane.folder / "page.yaml"
        settings.write_text(SETTINGS)
        with Operator(control_plane, "--config", str(settings), leader_elect=True) as operator:
            cluster = Cluster(control_plane, "default")
            control_plane.kubectl("apply", "-f", str(FOLDER / "first.yaml"))
            until(lambda: cluster.phase("first") == "Running", within_s=60)
            control_plane.kubectl("apply", "-f", str(FOLDER / "waits.yaml"))
            made.open(operator)
            until(lambda: "nvidia.com/gpu" in made.text("#line"))
            for name, dark in (("page.webp", False), ("page-dark.webp", True)):
                (IMAGES / name).write_bytes(made.picture(to="line", dark=dark))
            made.value("document.querySelector('#groups button').click()")
            (IMAGES / "page-timeline.webp").write_bytes(made.picture(to="group"))


if __name__ == "__main__":
    main()
