"""The notices of `gangsched dashboard`: stale data are marked as stale, and no decision is based on them."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, nullcontext

import pytest

from gangsched.cli import cluster_reader, dashboard, make_parser
from gangsched.cli.cluster_reader import Look
from gangsched.cli.dashboard import LiveBoard
from gangsched.config.settings import Settings
from gangsched.kube.client.errors import ApiUnreachable
from gangsched.page.board import Board
from gangsched.views.cluster_overview import Overview

SEEN = Look(Overview((), ()), (), Settings())


class Cluster:
    """A cluster that answers, unless `error` is set."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.live = LiveBoard(Board(), SEEN)

    async def look(self) -> Look:
        await asyncio.sleep(0.02)
        if self.error is not None:
            raise self.error
        return SEEN

    async def troubles(self, number: int) -> list[str | None]:
        """The first `number` distinct problems that the page reports after it opens."""
        told: list[str | None] = []
        async with asyncio.timeout(5), aclosing(self.live.board.follow(silent_s=5)) as lines:
            async for line in lines:
                told.append(json.loads(line)["set"]["head"]["trouble"])
                if len(told) == number:
                    break
        return told


@pytest.fixture
async def cluster(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    monkeypatch.setattr(cluster_reader, "pause_s", lambda _: 0.01)
    found = Cluster()
    reading = asyncio.create_task(found.live.follow(found.look))
    yield found
    reading.cancel()


async def test_while_the_cluster_does_not_answer_what_is_shown_is_called_old_and_nothing_is_decided(cluster):
    cluster.error = ApiUnreachable("no route")
    told = "This page is out of date, because the cluster does not answer: no route"
    assert await cluster.troubles(2) == [None, told]
    assert cluster.live.lacks() == told
    cluster.error = None
    assert await cluster.troubles(2) == [told, None]
    assert cluster.live.lacks() == ""


async def test_what_was_read_long_ago_is_called_old_until_it_is_read_again(cluster, monkeypatch):
    monkeypatch.setattr(dashboard, "_OLD_S", 0.0)
    await asyncio.sleep(0.05)
    told = "This page shows the state at the last visit: the cluster is being read again …"
    assert await cluster.troubles(3) == [None, told, None]


class Gone(io.StringIO):
    """Output whose reader is gone."""

    def flush(self) -> None:
        raise BrokenPipeError


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(*_: object) -> Look:
        return SEEN

    monkeypatch.setattr(dashboard, "connected", nullcontext)
    monkeypatch.setattr(cluster_reader, "look", look)


def ended(port: int) -> int:
    arguments = make_parser().parse_args(["dashboard", f"--port={port}"])
    status: int = arguments.execute(arguments)
    return status


@pytest.mark.usefixtures("seen")
def test_an_output_whose_reader_is_gone_is_no_matter_of_the_port(monkeypatch):
    """Regression: "port 0 of 127.0.0.1 cannot be used (None)"."""
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(BrokenPipeError):
        ended(0)


@pytest.mark.usefixtures("seen")
def test_a_port_that_is_taken_is_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert ended(port) == 1
    assert f"gangsched dashboard: error: port {port} of 127.0.0.1 cannot be used" in capsys.readouterr().err
