"""Requests to the answers' server over TLS."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from gangsched.answers import gate as gates
from gangsched.answers import server as servers
from gangsched.answers.certificate import Certificate, make_certificate
from gangsched.answers.examiner import NoAnswer, NoRoom
from gangsched.answers.gate import Gate
from gangsched.answers.server import Server
from gangsched.core.objects.declaration import GroupKey
from gangsched.runtime.health import ListenError
from gangsched.views.reach import Reach
from tests.answers.fake_reviews import FakeReviews, token

PATH = "/v1/explain/mine/training"


class FakeExaminer:
    def __init__(self) -> None:
        self.known = {"training": "training", "training-0": "training", "secret-0": "secret"}
        self.asked: list[tuple[GroupKey, Reach]] = []
        self.failure: Exception | None = None
        self.slow: asyncio.Event | None = None

    async def explain(self, key: GroupKey, reach: Reach) -> bytes | None:
        self.asked.append((key, reach))
        if self.slow is not None:
            await self.slow.wait()
        if self.failure is not None:
            raise self.failure
        name = self.known.get(key.name)
        return None if name is None else json.dumps({"namespace": key.namespace, "name": name}).encode()

    async def close(self) -> None:
        pass


@dataclass
class Served:
    api: FakeReviews
    examiner: FakeExaminer
    certificate: Certificate
    client: aiohttp.ClientSession
    port: int
    told: list[int]
    is_ready: bool = True

    async def get(self, path: str = PATH, account: str = "me", method: str = "GET", **fields) -> tuple[int, dict]:
        headers = {"Authorization": f"Bearer {token(account)}"} if account else {}
        async with self.client.request(method, f"https://127.0.0.1:{self.port}{path}", headers=headers, **fields) as it:
            text = await it.text()
            assert it.headers["Cache-Control"] == "no-store"
            return it.status, json.loads(text) if text else {}


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    certificate = make_certificate()
    api: Any = FakeReviews("me", "other", rights={("me", "get", "podgroups", "mine", "")})
    examiner: Any = FakeExaminer()
    told: list[int] = []
    server = Server(
        Gate(api),
        examiner,
        certificate,
        ready=lambda: found.is_ready,
        on_answer=lambda status, _: told.append(status),
        request_s=1.0,
        most_connections=4,
    )
    port = await server.start(0)
    running = asyncio.create_task(server.run())
    known = aiohttp.Fingerprint(bytes.fromhex(certificate.fingerprint))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=known)) as client:
        found = Served(api, examiner, certificate, client, port, told)
        yield found
    running.cancel()
    await server.close()


async def test_whoever_may_get_the_group_is_answered(served):
    assert await served.get() == (200, {"namespace": "mine", "name": "training"})
    assert served.examiner.asked == [(GroupKey("mine", "training"), Reach(namespace="mine", node_names=False))]
    assert served.told == [200]


@pytest.mark.parametrize(
    ("account", "status", "sentence"),
    [("", 401, gates.NO_TOKEN), ("stranger", 401, gates.UNKNOWN), ("other", 403, gates.NO_RIGHT)],
)
async def test_whoever_is_not_let_in_hears_why_and_nothing_is_looked_up(served, account, status, sentence):
    assert await served.get(account=account) == (status, {"error": sentence})
    assert not served.examiner.asked


async def test_whoever_lacks_the_right_learns_not_whether_there_is_such_a_group(served):
    assert await served.get(account="other") == await served.get("/v1/explain/mine/none", account="other")


async def test_what_there_is_not_is_not_found(served):
    assert await served.get("/v1/explain/mine/none") == (404, {"error": servers.NO_GROUP})


async def test_a_pods_name_shows_its_group_only_to_those_who_may_get_that(served):
    served.api.rights = {("me", "get", "podgroups", "mine", name) for name in ("training", "training-0", "secret-0")}
    assert (await served.get("/v1/explain/mine/training-0"))[0] == 200
    assert await served.get("/v1/explain/mine/secret-0") == (404, {"error": servers.NO_GROUP})


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "GET", 404),
        ("/v1/explain/mine", "GET", 404),
        ("/v1/explain/mine/training/x", "GET", 404),
        ("/v1/explain/mine/..%2Ftheirs", "GET", 400),
        ("/metrics", "GET", 404),
        (PATH, "POST", 405),
        (PATH, "DELETE", 405),
        (PATH, "HEAD", 405),
    ],
)
async def test_nothing_else_is_answered(served, path, method, status):
    assert (await served.get(path, method=method))[0] == status
    assert not served.examiner.asked


async def test_a_question_has_no_body(served):
    assert (await served.get(data=b"x" * 10))[0] == 413
    assert not served.examiner.asked


async def test_a_replica_that_has_not_listed_everything_says_so(served):
    served.is_ready = False
    assert await served.get() == (503, {"error": servers.NOT_READY})


async def test_one_account_cannot_keep_all_others_from_asking(served):
    served.api.rights.add(("other", "get", "podgroups", "mine", ""))
    served.examiner.slow = asyncio.Event()
    asked = [asyncio.create_task(served.get()) for _ in range(3)]
    found, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in found] == [(429, {"error": gates.TOO_OFTEN})]
    theirs = asyncio.create_task(served.get(account="other"))
    while len(served.examiner.asked) < 3:  # noqa: ASYNC110 - requests come over the network
        await asyncio.sleep(0.01)
    served.examiner.slow.set()
    assert sorted([status for status, _ in await asyncio.gather(*asked, theirs)]) == [200, 200, 200, 429]
    assert (await served.get())[0] == 200


@pytest.mark.parametrize(
    ("failure", "status", "sentence"),
    [
        (NoAnswer("x"), 503, servers.NO_ANSWER),
        (NoRoom(), 503, servers.NO_ROOM),
        (RuntimeError("secret"), 500, servers.NO_ANSWER),
    ],
)
async def test_a_failure_says_nothing_but_that(served, failure, status, sentence):
    served.examiner.failure = failure
    assert await served.get() == (status, {"error": sentence})


@pytest.mark.slow
async def test_connections_beyond_the_most_wait_and_silent_ones_end(served):
    """Eight silent connections: four are accepted and end after a second; a later question is answered."""
    silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    silent += [await asyncio.open_connection("127.0.0.1", served.port, ssl=tls) for _ in range(2)]
    waiting = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(4)]
    for _, writer in waiting:
        writer.close()
    async with asyncio.timeout(20):
        assert (await served.get())[0] == 200
        assert await silent[2][0].read() == b""
    for _, writer in silent:
        writer.close()


async def test_a_connection_carries_one_question(served):
    """Otherwise a series of refused requests could keep a slot."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=tls)
    writer.write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer.count(b"HTTP/1.1 404") == 1
    assert b"connection: close" in answer.lower()
    writer.close()


async def test_who_has_been_let_in_takes_no_place_from_who_comes(served):
    """More authorized requests wait for their answers than connections of unknown clients are accepted."""
    accounts = [f"one-{number}" for number in range(6)]
    served.api.accounts |= set(accounts)
    served.api.rights |= {(account, "get", "podgroups", "mine", "") for account in accounts}
    served.examiner.slow = asyncio.Event()
    asked = [asyncio.create_task(served.get(account=account)) for account in accounts]
    async with asyncio.timeout(10):
        while len(served.examiner.asked) < len(accounts):  # noqa: ASYNC110 - requests come over the network
            await asyncio.sleep(0.01)
        assert (await served.get(account=""))[0] == 401
    served.examiner.slow.set()
    assert {status for status, _ in await asyncio.gather(*asked)} == {200}


async def test_a_right_that_is_taken_away_while_the_answer_is_made_is_heeded(served, monkeypatch):
    monkeypatch.setattr(gates, "CACHE_TTL_S", 0.0)
    served.examiner.slow = asyncio.Event()
    asked = asyncio.create_task(served.get())
    while not served.examiner.asked:  # noqa: ASYNC110 - the request comes over the network
        await asyncio.sleep(0.01)
    served.api.rights.clear()
    served.examiner.slow.set()
    assert await asked == (403, {"error": gates.NO_RIGHT})


@pytest.mark.parametrize(
    "sent",
    [b"\x00\x1b[2J\r\n\r\n", b"GET / HTTP/9.9\r\nX\x1b: y\r\n\r\n", b"GET /" + b"a" * 100_000, b"POST / HTTP/1.1\r\n"],
    ids=["no HTTP", "a wrong header", "too long", "half of it"],
)
@pytest.mark.slow
async def test_what_is_no_request_is_neither_answered_nor_logged(served, sent, caplog):
    caplog.set_level("DEBUG")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=tls)
    writer.write(sent)
    async with asyncio.timeout(10):
        answer = await reader.read()
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400", b"HTTP/1.1 414"))
    assert b"\x1b" not in answer
    assert not [record for record in caplog.records if record.name != "asyncio"]
    writer.close()
    assert (await served.get())[0] == 200


async def test_a_client_that_knows_another_certificate_sends_nothing(served):
    wrong = aiohttp.Fingerprint(bytes.fromhex(make_certificate().fingerprint))
    with pytest.raises(aiohttp.ServerFingerprintMismatch):
        await served.client.get(f"https://127.0.0.1:{served.port}{PATH}", ssl=wrong)
    assert not served.api.asked


async def test_it_listens_on_the_loopback_alone_and_names_a_port_that_is_taken(served):
    server = Server(Gate(served.api), served.examiner, served.certificate, ready=lambda: True)
    with pytest.raises(ListenError, match=r"choose another answers\.port"):
        await server.start(served.port)
    await server.close()
