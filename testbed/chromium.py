"""A headless Chromium that tests drive over the DevTools protocol, and its installation on a Debian machine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from testbed.cache import SetupError

MISSING = "there is no Chromium: install it, on Debian with apt-get install chromium"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_STARTS_WITHIN_S = 60
_ANSWERS_WITHIN_S = 30
_PRESSED: dict[str, dict[str, Any]] = {
    "Enter": {"text": "\r", "windowsVirtualKeyCode": 13},
    "Escape": {"windowsVirtualKeyCode": 27},
}
"""Extra DevTools parameters for keys that have an effect of their own; the name alone is not enough for them."""
_PHONE = 600
"""Width in CSS pixels below which a window counts as a phone's."""


def find() -> str:
    """The path of a Chromium; empty if there is none."""
    return next(filter(None, map(shutil.which, _NAMES)), "")


def install() -> str:
    """The path of a Chromium; apt-get installs it if it is missing and this user has the permission.

    Raises:
        SetupError: there is none and it cannot be installed.
    """
    if not find() and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "-qq", *command], env=environment, check=False, stdout=subprocess.DEVNULL)
    found = find()
    if not found:
        raise SetupError(MISSING)
    return found


class Tab:
    """One tab. `problems` lists the exceptions, errors and violations of the page's policy that the browser reports.

    `requested` lists the addresses of all requests.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.problems: list[str] = []
        self.requested: list[str] = []
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def listen(self) -> None:
        """Process the browser's messages until it ends."""
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            elif said["method"] == "Runtime.exceptionThrown":
                self.problems.append(said["params"]["exceptionDetails"]["text"])
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.problems.append(said["params"]["entry"]["text"])
            elif said["method"] == "Network.requestWillBeSent":
                self.requested.append(said["params"]["request"]["url"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - the protocol's own
        """Call the protocol's method and return its result.

        Raises:
            RuntimeError: the browser reports an error.
        """
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        said = await asyncio.wait_for(answer, _ANSWERS_WITHIN_S)
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']['message']}")
        result: dict[str, Any] = said["result"]
        return result

    async def value(self, expression: str) -> Any:  # noqa: ANN401 - any JSON
        """The value of a JavaScript expression in the page."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']['text']}")
        return found["result"].get("value")

    async def until(self, expression: str, *, within_s: float = 20) -> Any:  # noqa: ANN401 - any JSON
        """Poll the expression until its value is truthy, and return the value.

        Raises:
            TimeoutError: it is not truthy within that time.
        """
        async with asyncio.timeout(within_s):
            while not (found := await self.value(expression)):  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.02)
        return found

    async def press(self, key: str) -> None:
        """Press and release a key."""
        more = _PRESSED.get(key, {})
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def size(self, width: int, height: int) -> None:
        """Resize the window, in CSS pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < _PHONE
        )


@asynccontextmanager
async def tab() -> AsyncIterator[Tab]:
    """An empty tab of a new browser, which ends with the block.

    Raises:
        SetupError: there is no Chromium, or it does not start.
    """
    program = find()
    if not program:
        raise SetupError(MISSING)
    with tempfile.TemporaryDirectory(prefix="gangsched-chromium-", ignore_cleanup_errors=True) as folder:
        command = (program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
        quiet = ("--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage")
        started = await asyncio.create_subprocess_exec(
            *command,
            *quiet,
            f"--user-data-dir={folder}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(await _address(session, Path(folder)), max_msg_size=0) as socket,
            ):
                made = Tab(socket)
                listening = asyncio.create_task(made.listen())
                try:
                    for domain in ("Page", "Runtime", "Log", "Network"):
                        await made.call(f"{domain}.enable")
                    yield made
                finally:
                    listening.cancel()
        finally:
            started.terminate()
            await started.wait()


async def _address(session: aiohttp.ClientSession, folder: Path) -> str:
    """The address of the DevTools WebSocket of the browser's first tab."""
    try:
        async with asyncio.timeout(_STARTS_WITHIN_S):
            told = folder / "DevToolsActivePort"
            while not told.exists() or not told.read_text().strip():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)
            port = told.read_text().splitlines()[0]
            while True:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    for each in await answer.json():
                        if each["type"] == "page":
                            return str(each["webSocketDebuggerUrl"])
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise SetupError(f"Chromium has not started within {_STARTS_WITHIN_S} s") from None


def main() -> int:
    """Install Chromium, for CI."""
    try:
        print(f"Chromium: {install()}")
    except SetupError as error:
        print(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
