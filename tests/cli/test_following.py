"""What `--watch` prints."""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from gangsched.cli.watch_option import Item, follow
from gangsched.kube.client.errors import ApiError, ApiUnreachable

ARGUMENTS = argparse.Namespace(prog="gangsched list")


class Over(Exception):  # noqa: N818 - a state of affairs
    """There are no more looks to follow."""


async def followed(monkeypatch: pytest.MonkeyPatch, looks: Sequence[Sequence[Item] | Exception]) -> list[float]:
    """Follow these looks; returns the pause after each."""
    rests: list[float] = []
    left: Iterator[Sequence[Item] | Exception] = iter(looks)

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    async def look() -> Sequence[Item]:
        found = next(left, Over())
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("asyncio.sleep", rest)
    with pytest.raises(Over):
        await follow(ARGUMENTS, look)
    return rests


async def test_what_has_changed_is_printed(monkeypatch, capsys):
    await followed(monkeypatch, [[("a", 1, "a is 1")], [("a", 1, "a is 1"), ("b", 1, "b is 1")], [("a", 2, "a is 2")]])
    assert capsys.readouterr().out == "a is 1\nb is 1\na is 2\n"


@pytest.mark.parametrize(
    "trouble",
    [ApiUnreachable("no answer"), ApiError(503, "Unavailable", "no answer"), ApiError(429, "Busy", "no answer")],
)
async def test_an_api_server_that_is_away_for_a_while_is_told_once(monkeypatch, capsys, trouble):
    seen = [("a", 1, "a")]
    await followed(monkeypatch, [seen, trouble, trouble, seen, trouble])
    told = capsys.readouterr()
    assert told.out == "a\n"
    assert told.err.count("no answer; retrying") == 2


async def test_what_the_api_server_asks_for_is_waited(monkeypatch):
    rests = await followed(monkeypatch, [[], ApiError(429, "Busy", "no", retry_after_s=17.0), []])
    assert rests[1] == 17.0
    assert rests[0] < 5 > rests[2]


@pytest.mark.parametrize(
    "looks",
    [[ApiUnreachable("at first")], [[], ApiError(403, "Forbidden", "no right")], [[], ApiError(401, "No", "expired")]],
)
async def test_what_does_not_go_by_ends_it(monkeypatch, looks):
    with pytest.raises(type(looks[-1])):
        await followed(monkeypatch, looks)


def test_what_is_printed_reaches_a_pipe_at_once():
    code = (
        "import argparse, asyncio\n"
        "from gangsched.cli.watch_option import follow\n"
        "async def look(): return [('a', 1, 'a is 1')]\n"
        "asyncio.run(follow(argparse.Namespace(prog='x'), look))\n"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as watching:
        try:
            assert watching.stdout is not None
            assert select.select([watching.stdout], [], [], 30)[0]
            assert watching.stdout.readline() == b"a is 1\n"
        finally:
            watching.kill()
