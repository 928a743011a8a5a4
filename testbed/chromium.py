"""A headless Chromium that tests drive with Playwright, and its installation on a Debian machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, CDPSession, ConsoleMessage, Page, ViewportSize, async_playwright

from gangsched.page.child import WITHIN_S
from testbed.cache import SetupError

MISSING = "there is no Chromium: install it, on Debian with apt-get install chromium"
SIZE: ViewportSize = {"width": 1280, "height": 720}
_NAMES = ("chromium", "chromium-browser", "google-chrome")


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


@dataclass
class Tab:
    """One tab. `problems` lists the exceptions, errors and violations of the page's policy that the browser reports.

    `requested` lists the addresses of all requests. `devtools` is for what only the DevTools protocol tells.
    """

    page: Page
    devtools: CDPSession
    problems: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    async def until(self, expression: str, *, within_s: float = WITHIN_S + 10) -> Any:  # noqa: ANN401 - any JSON
        """Poll the expression until its value is truthy, and return the value.

        Playwright's own `wait_for_function` needs `eval`, which the page's policy forbids. By default it takes longer
        than the page itself waits for an answer.

        Raises:
            TimeoutError: it is not truthy within that time; the text says what the page shows instead.
        """
        try:
            async with asyncio.timeout(within_s):
                pause_s = 0.02
                while not (value := await self.page.evaluate(expression)):
                    await asyncio.sleep(pause_s)
                    pause_s = min(1.2 * pause_s, 0.1)
        except TimeoutError as error:
            shown = await self.page.evaluate("document.body.innerText")
            raise TimeoutError(f"{expression} did not hold within {within_s} s; the page shows:\n{shown}") from error
        return value

    async def reset(self) -> None:
        """Make it empty, with the size, colours and cookies of a new one."""
        await self.page.goto("about:blank")
        await self.page.context.clear_cookies()
        await self.page.set_viewport_size(SIZE)
        await self.page.emulate_media(color_scheme="null")
        await self.page.mouse.move(0, 0)
        self.problems.clear()
        self.requested.clear()

    def report(self, message: ConsoleMessage) -> None:
        """Add a message of the console to the problems if it is an error."""
        if message.type == "error":
            self.problems.append(message.text)


@asynccontextmanager
async def started() -> AsyncIterator[Browser]:
    """A new browser, which ends with the block.

    Raises:
        SetupError: there is no Chromium.
    """
    program = find()
    if not program:
        raise SetupError(MISSING)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def tab(browser: Browser) -> AsyncIterator[Tab]:
    """An empty tab with cookies of its own, which is closed with the block."""
    context = await browser.new_context(viewport=SIZE)
    try:
        page = await context.new_page()
        opened = Tab(page, await context.new_cdp_session(page))
        page.on("pageerror", lambda error: opened.problems.append(error.message))
        page.on("console", opened.report)
        page.on("request", lambda request: opened.requested.append(request.url))
        yield opened
    finally:
        await context.close()


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
