from __future__ import annotations

import asyncio
import base64
import gc
import json
import os
import resource
import socket
import ssl
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import certifi
import pytest
import uvloop
import yaml
from aiohttp import web

from gangsched.core.objects.wording import printable
from gangsched.kube.client import credentials, exec_plugin, token_files
from gangsched.kube.client.contact import Contact, Problem
from gangsched.kube.client.credentials import Impersonation
from gangsched.kube.client.errors import ApiError, ApiUnreachable, Garbled, NoCredentials
from gangsched.kube.client.lease import LeaseClient, LeaseSpec
from gangsched.kube.client.session import ApiSession, Response, connect
from gangsched.kube.writing.sending import write
from tests.kube.fake_api import FakeApi, body, serving, status, stream

LEASE = "/apis/coordination.k8s.io/v1/namespaces/n/leases/l"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def kubeconfig(
    path: Path, *, server: str = "http://127.0.0.1:9/base/", user: dict[str, Any] | None = None, **cluster: object
) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "one",
                "contexts": [{"name": name, "context": {"cluster": name, "user": "me"}} for name in ("one", "two")],
                "clusters": [
                    {"name": "one", "cluster": {"server": server} | cluster},
                    {"name": "two", "cluster": {"server": "http://two"}},
                ],
                "users": [{"name": "me", "user": user or {}}],
            }
        )
    )
    return str(path)


def in_team(path: Path) -> None:
    """Give the context `two` a namespace."""
    content = yaml.safe_load(path.read_text())
    content["contexts"][1]["context"]["namespace"] = "team"
    path.write_text(yaml.safe_dump(content))


async def connection(**options: Any) -> credentials.Connection:
    return await credentials.find_connection(**({"kubeconfig": None, "context": None} | options))


async def test_the_kubeconfig_that_is_named_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "env", server="http://env"))
    named = kubeconfig(tmp_path / "named", server="http://named")
    assert (await connection(kubeconfig=named)).server == "http://named"
    assert (await connection()).server == "http://env"


async def test_files_of_the_environment_that_do_not_exist_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = kubeconfig(tmp_path / "present", server="http://present")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{present}:")
    assert (await connection()).server == "http://present"


async def test_the_kubeconfig_at_home_comes_last(tmp_path: Path) -> None:
    kubeconfig(tmp_path / ".kube" / "config", server="http://home")
    assert (await connection()).server == "http://home"


async def test_a_context_can_be_chosen_and_a_server_may_have_a_path(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config")
    assert (await connection(kubeconfig=path)).server == "http://127.0.0.1:9/base"
    assert (await connection(kubeconfig=path, context="two")).server == "http://two"


async def test_without_any_credentials_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match=rf"no kubeconfig at {tmp_path}/\.kube/config .* give --kubeconfig FILE"):
        await connection()
    with pytest.raises(NoCredentials, match="no kubeconfig at /nowhere/at/all"):
        await connection(kubeconfig="/nowhere/at/all")


@pytest.mark.parametrize(
    "text", [None, "", "a: [", "7", "[]", "contexts: 3", "current-context: x\ncontexts: [{}]", "\x00"]
)
async def test_a_folder_or_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "config"
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    with pytest.raises(NoCredentials, match=f"The kubeconfig {path} cannot be"):
        await connection(kubeconfig=str(path))


async def test_the_namespace_is_that_of_the_context_or_default(tmp_path: Path) -> None:
    path = Path(kubeconfig(tmp_path / "config"))
    assert (await connection(kubeconfig=str(path))).namespace == "default"
    in_team(path)
    assert (await connection(kubeconfig=str(path), context="two")).namespace == "team"


@pytest.mark.parametrize(
    ("user", "flags", "sent"),
    [
        ({}, None, []),
        ({"as": "jane"}, None, [("Impersonate-User", "jane")]),
        (
            {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"Scopes/x": ["y", "z"]}},
            None,
            [
                ("Impersonate-User", "jane"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-Scopes%2Fx", "y"),
                ("Impersonate-Extra-Scopes%2Fx", "z"),
            ],
        ),
        (
            {"as": "jane", "as-groups": ["a"]},
            Impersonation(user="joe", groups=("c",)),
            [("Impersonate-User", "joe"), ("Impersonate-Group", "c")],
        ),
    ],
)
async def test_requests_say_whose_rights_they_have(tmp_path: Path, user, flags, sent) -> None:
    path = kubeconfig(tmp_path / "config", user={"token": "t", **user})
    api = FakeApi.answering("GET", "/x", body({}))
    found = await connection(kubeconfig=path, acting_as=flags)
    async with serving(api) as session:
        asking = ApiSession(replace(found, server=session.server))
        await asking.request("GET", "/x")
        await asking.close()
    [asked] = api.asked
    headers = [(name, value) for name, value in asked.headers.items() if name.startswith("Impersonate")]
    assert headers == sent


@pytest.mark.parametrize(
    ("user", "told"),
    [
        ({"as-groups": ["a"]}, "lacks `as`"),
        ({"as": "jane", "as-groups": "a"}, r"\.user\.as-groups"),
        ({"as": "j", "as-user-extra": 3}, r"\.user\.as-user-extra"),
    ],
)
async def test_an_impersonation_that_is_not_understood_is_refused_rather_than_used_in_part(
    tmp_path, user, told
) -> None:
    with pytest.raises(NoCredentials, match=told):
        await connection(kubeconfig=kubeconfig(tmp_path / "config", user=user))


async def test_a_name_with_a_control_character_never_reaches_a_header(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match="control character"):
        await connection(kubeconfig=kubeconfig(tmp_path / "config"), acting_as=Impersonation(user="a\r\nX: y"))


def test_the_namespace_is_the_pods_own_or_default_outside_of_one(tmp_path):
    file = tmp_path / "namespace"
    assert token_files.own_namespace(file) == "default"
    file.write_text("gangsched-system\n")
    assert token_files.own_namespace(file) == "gangsched-system"


async def test_a_user_that_is_a_list_is_no_kubeconfig(tmp_path: Path) -> None:
    user: Any = [1, "x", None]
    with pytest.raises(NoCredentials, match="cannot be read as a kubeconfig"):
        await connection(kubeconfig=kubeconfig(tmp_path / "config", user=user))


async def test_a_certificate_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    data = "bm90IGEgY2VydGlmaWNhdGU="
    path = kubeconfig(
        tmp_path / "config",
        server="https://secure",
        user={"client-certificate-data": data, "client-key-data": data},
    )
    with pytest.raises(NoCredentials, match="A certificate or key for https://secure cannot be read"):
        await connection(kubeconfig=path)


async def test_keys_leave_no_file_behind_and_can_be_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    authority: dict[str, Any] = {"certificate-authority-data": _authority_data()}
    path = kubeconfig(tmp_path / "config", server="https://secure", **authority)
    for _ in range(2):
        found = await connection(kubeconfig=path)
        assert found.tls is not None
        assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert _names_in(tmp_path) == ["config"]


async def test_tls_checks_are_off_only_where_the_kubeconfig_says_so(tmp_path: Path) -> None:
    cluster: dict[str, Any] = {"insecure-skip-tls-verify": True, "tls-server-name": "kube"}
    path = kubeconfig(tmp_path / "config", server="https://secure", **cluster)
    found = await connection(kubeconfig=path)
    assert found.tls is not None
    assert found.tls.verify_mode is ssl.CERT_NONE
    assert found.tls_name == "kube"


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, None),
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "me", "password": "secret"}, "Basic bWU6c2VjcmV0"),
    ],
)
async def test_a_user_is_authorized_as_the_kubeconfig_says(tmp_path: Path, user: Any, header: str | None) -> None:
    found = await connection(kubeconfig=kubeconfig(tmp_path / "config", user=user))
    assert await found.authorization() == header


def plugin(folder: Path, failures: str = "", *, expired: int) -> dict[str, Any]:
    """A credential plug-in that counts its calls and returns expired tokens before call number `expired`."""
    path = folder / "plugin.py"
    path.write_text(
        "import json, pathlib, sys\n"
        f"calls = pathlib.Path({str(folder / 'calls')!r})\n"
        "count = int(calls.read_text()) + 1 if calls.exists() else 1\n"
        f"calls.write_text(str(count))\n{failures}"
        f"expiry = '2020-01-01T00:00:00Z' if count < {expired} else '2999-01-01T00:00:00Z'\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': f't{count}', 'expirationTimestamp': expiry}}))\n"
    )
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(path)]}


async def test_a_plugin_is_called_again_before_its_token_expires(tmp_path: Path) -> None:
    command = plugin(tmp_path, expired=3)
    found = await connection(kubeconfig=kubeconfig(tmp_path / "config", user={"exec": command}))
    headers = await asyncio.gather(*[found.authorization() for _ in range(4)])
    assert headers[0] == "Bearer t2"
    assert headers[1:] == ["Bearer t3"] * 3


def issuing(folder: Path, *issued: dict[str, str]) -> dict[str, Any]:
    """A credential plug-in that gives these credentials, one at each call and the last ones from then on."""
    path, calls = folder / "issuing.py", folder / "issued"
    path.write_text(
        "import json, pathlib\n"
        f"calls = pathlib.Path({str(calls)!r})\n"
        "count = int(calls.read_text()) + 1 if calls.exists() else 1\n"
        "calls.write_text(str(count))\n"
        f"issued = {list(issued)!r}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': issued[min(count, len(issued)) - 1]}))\n"
    )
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(path)]}


async def test_a_token_without_expiry_that_the_server_refuses_is_replaced_and_the_request_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: such a plug-in was called once, and never again."""
    monkeypatch.setattr(exec_plugin, "LEAST_S", 0.0)
    api = FakeApi.answering("GET", "/x", body({}), status(401), body({}), status(401), body({}))
    api.answer("GET", "/w", status(401), stream("{}"))
    async with serving(api) as server:
        user = {"exec": issuing(tmp_path, {"token": "t1"}, {"token": "t2"}, {"token": "t3"}, {"token": "t4"})}
        session = await connect(kubeconfig=kubeconfig(tmp_path / "config", server=server.server, user=user))
        first = asyncio.gather(*[session.request("GET", "/x") for _ in range(2)])
        assert [answer.status for answer in await first] == [200, 200]
        assert (await session.request("GET", "/x")).ok
        with pytest.raises(ApiError):
            async with session.stream("/w", {}):
                pytest.fail("the stream was opened")
        async with session.stream("/w", {}) as pieces:
            assert len([piece async for piece in pieces]) == 1
        await session.close()
    given = [asked.headers["Authorization"] for asked in api.asked]
    assert given == [f"Bearer t{number}" for number in (1, 1, 2, 2, 3, 3, 4)]


async def test_refused_credentials_that_are_new_are_not_replaced_at_once(tmp_path: Path) -> None:
    api = FakeApi.answering("GET", "/x", status(401), status(401))
    async with serving(api) as server:
        user = {"exec": issuing(tmp_path, {"token": "t1"}, {"token": "t2"})}
        session = await connect(kubeconfig=kubeconfig(tmp_path / "config", server=server.server, user=user))
        assert [(await session.request("GET", "/x")).status for _ in range(2)] == [401, 401]
        await session.close()
    assert (tmp_path / "issued").read_text() == "1"


async def test_a_plugin_that_fails_after_a_refusal_leaves_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_plugin, "LEAST_S", 0.0)
    api = FakeApi.answering("GET", "/x", status(401))
    async with serving(api) as server:
        user = {"exec": issuing(tmp_path, {"token": "t1"}, {})}
        session = await connect(kubeconfig=kubeconfig(tmp_path / "config", server=server.server, user=user))
        assert (await session.request("GET", "/x")).status == 401
        await session.close()


async def test_a_plugin_that_is_not_installed_is_named_with_its_hint(tmp_path: Path) -> None:
    command = {"apiVersion": "v1", "command": "no-such-plugin", "installHint": "See https://example.com/install\n"}
    path = kubeconfig(tmp_path / "config", user={"exec": command})
    told = (
        f"The user me of the kubeconfig {path} gets its credentials from the exec plug-in no-such-plugin, which is not "
        "installed here: install it, put it on the PATH, or use a kubeconfig without it. The kubeconfig says: "
        "See https://example.com/install"
    )
    with pytest.raises(NoCredentials) as failed:
        await connection(kubeconfig=path)
    assert str(failed.value) == told


async def test_a_plugin_that_fails_once_and_then_works_costs_the_session_nothing(tmp_path: Path) -> None:
    """The token has expired; the plug-in fails in a request and a watch, answers nonsense, fails again, and works."""
    command = plugin(
        tmp_path,
        "if count in (2, 3, 5): sys.exit('the identity provider is away')\nif count == 4: print('{'); sys.exit()\n",
        expired=6,
    )
    api = FakeApi.answering("GET", "/x", body({}))
    async with serving(api) as server:
        session = await connect(
            kubeconfig=kubeconfig(tmp_path / "config", server=server.server, user={"exec": command})
        )
        told: list[tuple[str, str, str]] = []
        session.contact.observer = Told(told)
        with pytest.raises(ApiUnreachable, match=r"cannot be renewed: .*the identity provider is away"):
            await session.request("GET", "/x")
        with pytest.raises(ApiUnreachable, match=r"cannot be renewed: .*the identity provider is away"):
            async with session.stream("/x", {}):
                pytest.fail("the stream was opened")
        with pytest.raises(ApiUnreachable, match="cannot be renewed"):
            await session.request("GET", "/x")
        with pytest.raises(ApiUnreachable, match="cannot be renewed"):
            async with session.stream("/x", {}):
                pytest.fail("the stream was opened")
        assert (await session.request("GET", "/x")).ok
        await session.close()
    assert [asked.headers["Authorization"] for asked in api.asked] == ["Bearer t6"]
    assert told == [("Credentials", "get", "/x")] * 4


class Told:
    def __init__(self, told: list[tuple[str, str, str]]) -> None:
        self._told = told

    def api_failed(self, problem: str, verb: str, resource: str) -> None:
        self._told.append((problem, verb, resource))


async def test_how_requests_are_answered_is_noted_but_of_those_that_may_fail_for_good() -> None:
    told: list[tuple[str, str, str]] = []
    api = FakeApi()
    denied = status(403, 'pods is forbidden: User "u" cannot list resource "pods" in API group ""')
    for method in ("GET", "WATCH"):
        api.answer(method, "/api/v1/pods", denied, denied, stream(then="drop") if method == "WATCH" else status(500))
    async with serving(api) as session:
        session.contact.observer = Told(told)
        for essential in (True, False):
            await session.request("GET", "/api/v1/pods", essential=essential)
            with pytest.raises(ApiError):
                async with session.stream("/api/v1/pods", {"watch": "true"}, essential=essential):
                    pytest.fail("the stream was opened")
        await session.request("GET", "/api/v1/pods")
        session.server = "http://127.0.0.1:1"
        for other in (session, session.separate()):
            other.server = "http://127.0.0.1:1"
            with pytest.raises(ApiUnreachable):
                await other.request("GET", "/api/v1/pods")
    assert told == [
        ("Denied", "list", "pods"),
        ("Denied", "watch", "pods"),
        ("Failing", "list", "pods"),
        ("Unreachable", "list", "pods"),
        ("Unreachable", "list", "pods"),
    ]


@pytest.mark.parametrize("how", ["request", "stream"])
async def test_an_answer_to_what_may_fail_for_good_shows_too_that_the_server_can_be_reached(how: str) -> None:
    """Steps: one request gets no answer, another does, and much later one gets none: that is not an outage."""
    now = [0.0]
    api = FakeApi.answering("GET", "/x", body({}))
    api.answer("WATCH", "/x", stream())
    async with serving(api) as server:
        contact = Contact("https://api", monotonic=lambda: now[0])
        session = ApiSession(credentials.Connection(server=server.server, authorization=_nobody), contact)
        contact.unanswered("GET", "/x", "the connection was lost")
        if how == "request":
            await session.request("GET", "/x", essential=False)
        else:
            async with session.stream("/x", {"watch": "true"}, essential=False):
                pass
        now[0] = 100.0
        contact.unanswered("GET", "/x", "the connection was lost")
        assert contact.lasts_s(Problem.UNREACHABLE) == 0.0
        await session.close()


async def test_in_a_pod_the_service_account_is_used_and_its_token_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "ca.crt").write_text(base64.b64decode(_authority_data()).decode())
    (tmp_path / "namespace").write_text("gangsched-system\n")
    monkeypatch.setattr(token_files, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(token_files, "FRESH_S", 0.0)
    kubeconfig(tmp_path / ".kube" / "config", server="http://home")
    found = await connection()
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "gangsched-system")
    assert found.tls is not None
    assert found.tls.verify_mode is ssl.CERT_REQUIRED
    assert await found.authorization() == "Bearer first"
    assert (await connection(context="two")).server == "http://two"
    token.write_text("second")
    assert await found.authorization() == "Bearer second"
    token.unlink()
    with pytest.raises(NoCredentials, match="cannot be renewed"):
        await found.authorization()


@pytest.mark.parametrize(("no_proxy", "proxy"), [("", "http://proxy:3128"), ("secure", None)])
async def test_the_proxy_of_the_environment_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_proxy: str, proxy: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (await connection(kubeconfig=kubeconfig(tmp_path / "config", server="https://secure"))).proxy == proxy


async def test_a_request_carries_what_it_was_given() -> None:
    api = FakeApi.answering("PATCH", "/api/x%2Fy", body({"a": 1}, 201))
    async with serving(api) as session:
        answer = await session.request(
            "PATCH", "/api/x%2Fy", params={"q": "a b&c"}, body=b"[1]", content_type="application/json-patch+json"
        )
    assert (answer.status, json.loads(answer.body), answer.ok) == (201, {"a": 1}, True)
    [asked] = api.asked
    assert asked.query == {"q": "a b&c"}
    assert asked.body == [1]
    assert asked.headers["Content-Type"] == "application/json-patch+json"
    assert asked.headers["Authorization"] == "Bearer of-tests"
    assert asked.headers["Accept-Encoding"] == "identity"


async def test_an_error_says_what_the_server_says() -> None:
    api = FakeApi.answering("GET", "/x", status(409, "busy", reason="Conflict", headers={"Retry-After": "5"}))
    api.answer("GET", "/x", body(["no status"], 502))
    async with serving(api) as session:
        with pytest.raises(ApiError, match=r"^409 Conflict: busy$") as told:
            (await session.request("GET", "/x")).checked()
        assert (told.value.status, told.value.reason, told.value.retry_after_s) == (409, "Conflict", 5.0)
        with pytest.raises(ApiError, match=r'^502 HTTP: \["no status"\]$'):
            (await session.request("GET", "/x")).checked()


async def test_an_answer_that_takes_too_long_is_given_up() -> None:
    api = FakeApi.answering("GET", "/x", stream(then="hang"))
    async with serving(api) as session:
        with pytest.raises(ApiUnreachable, match="cannot be reached"):
            await session.request("GET", "/x", timeout_s=0.05)


@pytest.mark.parametrize(
    "said", [b'{"message":"\xff","metadata":{"resourceVersion":"\xff"}}', b'{"metadata":' + b"[" * 100_000]
)
async def test_an_answer_that_cannot_be_decoded_is_an_answer_all_the_same(said: bytes) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=int(request.query.get("status", "200")), body=said)

    api = FakeApi.answering("GET", "/x", answer)
    api.answer("GET", LEASE, answer)
    async with serving(api) as session:
        with pytest.raises(ApiError, match=r"^502 HTTP: "):
            (await session.request("GET", "/x", params={"status": "502"})).checked()
        with pytest.raises(Garbled, match="A Lease cannot be read"):
            await LeaseClient(session=session, namespace="n", name="l").get(timeout_s=5)


async def test_a_stream_whose_framing_is_broken_later_ends() -> None:
    """Steps: a whole chunk arrives; then another packet is not a valid chunk, and the connection stays open."""

    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n")
        await arrived.wait()
        writer.write(b"no chunk\r\n")
        await reader.read()
        writer.close()

    arrived = asyncio.Event()
    server = await asyncio.start_server(broken, "127.0.0.1", 0)
    session = ApiSession(credentials.Connection(server=_address(server), authorization=_nobody))
    pieces = []

    async def read() -> None:
        async with session.stream("/x", {}, silent_s=0.2) as stream_of_pieces:
            async for piece in stream_of_pieces:
                pieces.append(piece)
                arrived.set()

    with pytest.raises(ApiUnreachable):
        await asyncio.wait_for(read(), 10)
    assert pieces == [b"{}\n"]
    await session.close()
    server.close()


async def test_a_stream_does_not_wait_for_credentials_for_ever() -> None:
    """A plug-in that hangs would block the authorization of all other requests, as its calls are serialized."""

    async def never() -> str | None:
        await asyncio.Event().wait()
        return None

    session = ApiSession(credentials.Connection(server="http://127.0.0.1:9", authorization=never))
    with pytest.raises(ApiUnreachable):
        async with asyncio.timeout(10), session.stream("/x", {}, silent_s=0.1):
            pytest.fail("the stream was opened")
    await session.close()


async def test_a_stream_that_is_not_answered_is_given_up_before_it_counts_as_silent(monkeypatch) -> None:
    """A server that has just started may accept a watch and never answer it."""
    monkeypatch.setattr("gangsched.kube.client.session._WATCH_ANSWER_S", 0.1)
    api, never = FakeApi(), asyncio.Event()

    async def silence(_: web.Request) -> web.StreamResponse:
        await never.wait()
        return web.json_response({})

    api.answer("GET", "/x", silence)
    async with serving(api) as session:
        with pytest.raises(ApiUnreachable, match="no answer in time"):
            async with asyncio.timeout(10), session.stream("/x", {}, silent_s=60):
                pytest.fail("the stream was opened")
        never.set()


async def test_another_client_shares_connections_and_credentials_and_may_be_closed() -> None:
    api = FakeApi.answering("GET", "/x", body({}), body({}))
    async with serving(api) as session:
        other = session.client()
        async with other.get(f"{session.server}/x") as answer:
            assert answer.status == 200
        await other.close()
        assert (await session.request("GET", "/x")).ok
    assert [asked.headers["Authorization"] for asked in api.asked] == ["Bearer of-tests"] * 2


@pytest.mark.slow
async def test_a_thousand_requests_without_an_answer_keep_neither_the_next_nor_the_lease_waiting() -> None:
    """As many bindings as `bindConcurrency` allows, a few at a time as the executor sends them."""
    api, go = FakeApi(), asyncio.Event()

    async def late(_: web.Request) -> web.StreamResponse:
        await go.wait()
        return web.json_response({})

    api.answer("POST", "/binding", *[late] * 1024)
    api.answer("POST", "/status", body({}))
    api.answer("PATCH", LEASE, body({"metadata": {"resourceVersion": "2"}}))
    async with serving(api) as session:
        bindings: list[asyncio.Task[Response]] = []
        while len(bindings) < 1024:
            wave = (session.request("POST", "/binding", timeout_s=60, connect_s=20) for _ in range(64))
            bindings += map(asyncio.create_task, wave)
            await api.until_asked(len(bindings))
        another = await write(session, "POST", "/status", {})
        lease = LeaseClient(session=session.separate(), namespace="n", name="l")
        renewed = await lease.update(LeaseSpec(), version="1", timeout_s=5.0)
        go.set()
        answers = await asyncio.gather(*bindings)

    assert len(api.asked) == 1026
    assert another.ok
    assert renewed.version == "2"
    assert all(answer.ok for answer in answers)


@contextmanager
def resetting() -> Iterator[str]:
    """The address of a server that resets each connection as soon as it is established."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    accepted.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.slow
def test_a_connection_that_is_reset_while_it_is_made_closes_no_other_one() -> None:
    """On uvloop, as in the operator: the number of a closed descriptor is reused for the next one opened."""
    others: list[int] = []

    async def ask(server: str) -> None:
        session = ApiSession(credentials.Connection(server=server, tls=None, authorization=_nobody))
        for _ in range(10):
            asked = (session.request("GET", "/x", timeout_s=5) for _ in range(4))
            answers = await asyncio.gather(*asked, return_exceptions=True)
            assert {type(answer) for answer in answers} == {ApiUnreachable}
            others.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(4))
            gc.collect()
        await session.close()

    with resetting() as server:
        uvloop.run(ask(server))
    lost = 0
    for other in others:
        try:
            os.close(other)
        except OSError:
            lost += 1
    assert lost == 0


async def test_the_lease_is_renewed_though_no_connection_can_be_opened_any_more() -> None:
    """Unanswered bindings occupy every idle connection, and then the process may open no more files."""
    api = FakeApi.answering("PATCH", LEASE, *[body({"metadata": {"resourceVersion": "2"}})] * 2)
    api.answer("POST", "/binding", *[stream(then="hang")] * 9)
    async with serving(api) as session:
        lease = LeaseClient(session=session.separate(), namespace="n", name="l")
        await lease.update(LeaseSpec(), version="1", timeout_s=5.0)
        bindings = [asyncio.create_task(session.request("POST", "/binding")) for _ in range(9)]
        await api.until_asked(1 + len(bindings))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, limits[1]))
        try:
            with pytest.raises(ApiUnreachable, match="Too many open files"):
                await session.request("PATCH", "/status")
            renewed = await lease.update(LeaseSpec(), version="2", timeout_s=5.0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for task in bindings:
            task.cancel()
        await asyncio.wait(bindings)

    assert renewed.version == "2"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fine ü", "fine ü"),
        ("a\nb", "a\\nb"),
        ("\x1b[0m", "\\x1b[0m"),
        ("\u202e", "\\u202e"),
        ("x" * 2000, "x" * 999 + "…"),
    ],
)
def test_text_of_others_is_fit_for_a_log_line(text: str, shown: str) -> None:
    assert printable(text) == shown


async def _nobody() -> str | None:
    return None


def _address(server: asyncio.Server) -> str:
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _authority_data() -> str:
    return base64.b64encode(Path(certifi.where()).read_bytes()).decode()


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]
