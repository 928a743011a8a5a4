"""How a replica announces its address for queries."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gangsched.answers import announcement
from gangsched.answers.announcement import Announcement, announce, announced, read
from gangsched.kube.client.errors import ApiUnreachable
from gangsched.kube.client.session import Response

WHERE = Announcement(9443, "0f" * 32)
POD = {"POD_NAME": "gangsched-0", "POD_NAMESPACE": "sys"}


class FakeSession:
    def __init__(self, *answers: Response | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, Any]] = []

    async def request(self, method: str, path: str, *, body: bytes = b"null", **_: Any) -> Response:
        self.sent.append((method, path, json.loads(body)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_announcement_is_read_as_it_was_written():
    assert read(str(WHERE)) == WHERE


@pytest.mark.parametrize("text", ["", "port 1", f"port 99999999, certificate sha256:{'0' * 64}", f"{WHERE} more"])
def test_any_other_text_announces_nothing(text):
    assert read(text) is None


async def test_it_is_written_on_the_own_pod_until_the_api_server_takes_it(monkeypatch):
    monkeypatch.setattr(announcement, "_FIRST_S", 0.001)
    session: Any = FakeSession(ApiUnreachable("no"), Response(500, {}, b"{}"), Response(200, {}, b"{}"))
    await asyncio.wait_for(announce(session, WHERE, POD), 5)
    assert len(session.sent) == 3
    method, path, body = session.sent[-1]
    assert (method, path) == ("PATCH", "/api/v1/namespaces/sys/pods/gangsched-0/status")
    [condition] = body["status"]["conditions"]
    assert (condition["type"], condition["status"], read(condition["message"])) == (
        announcement.CONDITION,
        "True",
        WHERE,
    )


@pytest.mark.parametrize("env", [{}, {"POD_NAME": "a"}, {"POD_NAMESPACE": "b"}])
async def test_outside_of_a_pod_nothing_is_written(env):
    session: Any = FakeSession()
    await announce(session, WHERE, env)
    assert not session.sent


async def test_pods_that_are_ready_are_tried_first_and_others_left_out():
    def pod(name: str, message: str, ready: str) -> dict[str, Any]:
        told = [
            {"type": "Ready", "status": ready},
            {"type": announcement.CONDITION, "status": "True", "message": message},
        ]
        return {"metadata": {"name": name}, "status": {"conditions": told}}

    pods = [pod("a", str(WHERE), "False"), pod("b", "nonsense", "True"), pod("c", str(WHERE), "True")]
    body = json.dumps({"items": [*pods, {"metadata": {"name": "d"}}]}).encode()
    session: Any = FakeSession(Response(200, {}, body))
    assert await announced(session, "sys") == [("c", WHERE), ("a", WHERE)]
