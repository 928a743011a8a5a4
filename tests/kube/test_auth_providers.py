"""Kubeconfigs with an auth-provider, and kubernetes-asyncio's reading of kubeconfigs compared with ours."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangsched.kube.client import exec_plugin
from gangsched.kube.client.credentials import Connection, find_connection
from gangsched.kube.client.errors import NoCredentials

LIBRARY = "kubernetes_asyncio"


def kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> str:
    content = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9", **cluster}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def found(path: Path, user: dict[str, Any], **cluster: Any) -> Connection:
    return await find_connection(kubeconfig=kubeconfig(path, user, **cluster), context=None)


def id_token(name: str, expires: int) -> str:
    body = json.dumps({"sub": name, "exp": expires}).encode()
    return f"e.{base64.urlsafe_b64encode(body).decode().rstrip('=')}.s"


async def test_without_the_library_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, LIBRARY, None)
    monkeypatch.setitem(sys.modules, f"{LIBRARY}.client", None)
    with pytest.raises(NoCredentials, match=r"install gangsched\[auth-providers\], or use an exec plug-in"):
        await found(tmp_path / "config", {"auth-provider": {"name": "oidc", "config": {}}})


async def test_no_other_kubeconfig_imports_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, LIBRARY, None)
    assert await (await found(tmp_path / "config", {"token": "t"})).authorization() == "Bearer t"


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the library's, of aiohttp's
async def test_an_expired_token_is_refreshed_and_again_when_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_plugin, "LEAST_S", 0.0)
    asked: list[str] = []

    async def discovery(request: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"http://{request.host}/token"})

    async def token(request: web.Request) -> web.Response:
        asked.append((await request.post())["refresh_token"])  # type: ignore[arg-type]
        number = len(asked)
        return web.json_response({"id_token": id_token(f"{number}", 1), "refresh_token": f"r{number}"})

    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", discovery)
    app.router.add_post("/token", token)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "client-id": "i",
        "client-secret": "s",
        "idp-issuer-url": f"http://127.0.0.1:{runner.addresses[0][1]}",
        "id-token": id_token("0", 1),
        "refresh-token": "r0",
    }
    try:
        connection = await found(tmp_path / "config", {"auth-provider": {"name": "oidc", "config": config}})
        assert await connection.authorization() == f"Bearer {id_token('1', 1)}"
        assert connection.plugin is not None
        assert await connection.plugin.replaced(connection.plugin.number)
        assert await connection.authorization() == f"Bearer {id_token('2', 1)}"
    finally:
        await runner.cleanup()
    assert asked == ["r0", "r1"]


@pytest.mark.extras
async def test_a_provider_that_gives_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoCredentials, match="auth-provider of the kubeconfig gives no token: oidc"):
        await found(tmp_path / "config", {"auth-provider": {"name": "oidc"}})


TEXTS = st.sampled_from(["a", "ü", "x y", "0"])
USERS = st.fixed_dictionaries(
    {}, optional={"token": TEXTS, "username": TEXTS, "password": TEXTS, "tokenFile": st.just("token")}
)
CLUSTERS = st.fixed_dictionaries(
    {"server": st.sampled_from(["http://s", "http://s/", "http://s:1/base/"])},
    optional={
        "tls-server-name": TEXTS,
        "proxy-url": st.just("http://p"),
        "insecure-skip-tls-verify": st.booleans(),
    },
)


@pytest.mark.extras
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(user=USERS, cluster=CLUSTERS)
async def test_the_library_reads_the_same(tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any]) -> None:
    """An oracle of our reading that others keep; where a user has only one half of a password kubectl decides."""
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config

    if ("username" in user) != ("password" in user):
        return
    (tmp_path / "token").write_text("from-file")
    ours = await found(tmp_path / "config", user, **cluster)
    theirs = Configuration()
    await load_kube_config(str(tmp_path / "config"), client_configuration=theirs, persist_config=False)
    assert ours.server == theirs.host
    assert await ours.authorization() == await theirs.get_api_key_with_prefix("BearerToken")
    assert ours.tls_name == theirs.tls_server_name
    assert ours.proxy == theirs.proxy
