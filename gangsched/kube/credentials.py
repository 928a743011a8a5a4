"""Credentials and the address of the API server, from a kubeconfig or the service account of our own pod."""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.config import ConfigException, kube_config, load_incluster_config
from kubernetes_asyncio.config.incluster_config import SERVICE_HOST_ENV_NAME, SERVICE_TOKEN_FILENAME

from gangsched.kube.errors import NoCredentials

_PLUGIN_S = 30.0
"""Time limit of an exec plug-in. After a failure the next request calls it again."""
_UNRENEWABLE = (ConfigException, OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError)
"""The library's exceptions for an exec plug-in that fails or gives an invalid answer, and for a missing file."""


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach the API server.

    `server` is its URL without a trailing slash and may contain a path. `tls` is None for plain HTTP. `tls_name` is the
    name in its certificate if that is not the host in the URL. `authorization` returns the current value of the
    Authorization header, renewed if it expires; None if there is none.
    """

    server: str
    authorization: Callable[[], Awaitable[str | None]]
    tls: ssl.SSLContext | None = None
    tls_name: str | None = None
    proxy: str | None = None


async def find_connection(*, kubeconfig: str | None, context: str | None) -> Connection:
    """Find credentials: `kubeconfig`, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Only a kubeconfig has contexts, so with a `context` the service account is not considered.

    Raises:
        NoCredentials: there are no credentials, or they cannot be used; the message says what to do.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and context is None and _in_pod():
        return _in_cluster()
    return await _from_kubeconfig(_existing(named or "~/.kube/config"), context)


def _in_pod() -> bool:
    return bool(os.environ.get(SERVICE_HOST_ENV_NAME)) and Path(SERVICE_TOKEN_FILENAME).exists()


def _in_cluster() -> Connection:
    found = Configuration()
    try:
        load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise NoCredentials(f"The pod's service account cannot be used: {error}") from error
    return _connection(found)


def _existing(paths: str) -> list[str]:
    """The existing files of a list like $KUBECONFIG. kubectl ignores missing ones too."""
    names = [str(Path(part).expanduser()) for part in paths.split(os.pathsep) if part]
    files = [name for name in names if Path(name).exists()]
    if not files:
        raise NoCredentials(
            f"There is no kubeconfig at {' or '.join(names)} and no service account of a pod:"
            " give --kubeconfig FILE or set KUBECONFIG."
        )
    return files


async def _from_kubeconfig(files: list[str], context: str | None) -> Connection:
    where = f"The kubeconfig {' + '.join(files)}"
    found = Configuration()
    # Keys and certificates pass through files because Python's ssl cannot load them from memory.
    with tempfile.TemporaryDirectory(prefix="gangsched-") as folder:
        try:
            loader = await kube_config.load_kube_config(
                config_file=os.pathsep.join(files),
                context=context,
                client_configuration=found,
                persist_config=False,
                temp_file_path=folder,
            )
        except ConfigException as error:
            raise NoCredentials(_unknown_context(files, context) or f"{where} cannot be used: {error}") from error
        except (OSError, ValueError, TypeError, AttributeError, KeyError, AssertionError, yaml.YAMLError) as error:
            missing = _missing_plugin(files, error) if isinstance(error, FileNotFoundError) else ""
            raise NoCredentials(
                missing
                or f"{where} cannot be read as a kubeconfig ({type(error).__name__}: {error}):"
                " compare it with the output of `kubectl config view`."
            ) from error
        finally:
            # The library keeps references to those files, but ours are deleted with the folder.
            kube_config._temp_files.clear()  # noqa: SLF001
        user = loader._user  # noqa: SLF001 - the library reads the user but not this key
        if user is not None and "as" in user.value:
            raise NoCredentials(
                f"{where} impersonates another user (`as:`), which gangsched does not support and would therefore act"
                " with more rights than intended: use a kubeconfig with that user's own credentials."
            )
        _renew_exec_token(found, loader)
        return _connection(found)


def _unknown_context(files: list[str], context: str | None) -> str:
    """A sentence about a context that the kubeconfig does not have; empty if it has it, or none was named."""
    if context is None:
        return ""
    known = [name for name, _ in _entries(files, "contexts")]
    if context in known:
        return ""
    has = f"it has {', '.join(known)}" if known else "it has none"
    return f"The kubeconfig {' + '.join(files)} has no context {context}: {has}."


def _missing_plugin(files: list[str], error: FileNotFoundError) -> str:
    """A sentence about an exec plug-in that is not installed; empty if another file is missing."""
    for user, entry in _entries(files, "users"):
        plugin = (entry.get("user") or {}).get("exec") or {}
        if plugin.get("command") == error.filename:
            hint = str(plugin.get("installHint") or "").strip()
            return (
                f"The user {user} of the kubeconfig {' + '.join(files)} gets its credentials from the exec plug-in "
                f"{error.filename}, which is not installed here: install it, put it on the PATH, or use a kubeconfig "
                f"without it.{f' The kubeconfig says: {hint}' if hint else ''}"
            )
    return ""


def _entries(files: list[str], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of this list in the files, which are YAML, by their names."""
    for name in files:
        content = yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        listed = content.get(key) if isinstance(content, dict) else None
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict):
                yield str(entry.get("name")), entry


def _renew_exec_token(configuration: Configuration, loader: kube_config.KubeConfigLoader) -> None:
    """Make the library call the exec plug-in again before its token expires, which it does not do itself."""
    if not hasattr(loader, "exec_plugin_expiry"):
        return
    one_at_a_time = asyncio.Lock()

    async def renew(configuration: Configuration) -> None:
        # A watch waits for credentials without a time limit, and all other requests wait behind it.
        async with one_at_a_time, asyncio.timeout(_PLUGIN_S):
            await loader.load_from_exec_plugin()
        configuration.api_key["BearerToken"] = loader.token

    configuration.refresh_api_key_hook = renew


def _connection(found: Configuration) -> Connection:
    server = str(found.host).rstrip("/")

    async def authorization() -> str | None:
        try:
            key = await found.get_api_key_with_prefix("BearerToken")
        except _UNRENEWABLE as error:
            raise NoCredentials(f"The credentials for {server} cannot be renewed: {error}") from error
        return str(key).strip() if key else None

    return Connection(
        server=server,
        authorization=authorization,
        tls=_tls(found) if server.startswith("https:") else None,
        tls_name=found.tls_server_name,
        proxy=found.proxy or _proxy_of_environment(server),
    )


def _tls(found: Configuration) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if found.cert_file:
            context.load_cert_chain(found.cert_file, keyfile=found.key_file)
    except (OSError, ValueError) as error:
        raise NoCredentials(f"A certificate or key for {found.host} cannot be read: {error}") from error
    # Python 3.13 requires extensions that the CAs of many clusters lack; kubectl and the API server do not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not found.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy_of_environment(server: str) -> str | None:
    """The proxy from HTTPS_PROXY and NO_PROXY. aiohttp's own `trust_env` would also send passwords from ~/.netrc."""
    url = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass(url.hostname or ""):
        return None
    return urllib.request.getproxies().get(url.scheme)
