"""Credentials and the address of the API server, from a kubeconfig or the service account of our own pod."""

from __future__ import annotations

import base64
import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import yaml

from gangsched.kube.client import token_files
from gangsched.kube.client.auth_providers import AuthProvider
from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.exec_plugin import ExecPlugin, call, load_certificate
from gangsched.kube.client.kubeconfigs import Cluster, InvalidKubeconfig, User, read_kubeconfig
from gangsched.kube.client.token_files import TokenFile, own_namespace

_UNREADABLE = (OSError, ValueError, TypeError, yaml.YAMLError)


@dataclass(frozen=True, kw_only=True)
class Impersonation:
    """The user whose rights requests have instead of the caller's own. The caller must have the right to impersonate.

    `extra` are further attributes of the user, each with its values.
    """

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def headers(self) -> Iterator[tuple[str, str]]:
        """The headers of each request; a name may occur more than once."""
        yield "Impersonate-User", self.user
        if self.uid:
            yield "Impersonate-Uid", self.uid
        yield from (("Impersonate-Group", group) for group in self.groups)
        for key, values in self.extra:
            yield from ((f"Impersonate-Extra-{urllib.parse.quote(key, safe='')}", value) for value in values)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """How to reach the API server.

    `server` is its URL without a trailing slash and may contain a path. `tls` is None for plain HTTP. `tls_name` is the
    name in its certificate if that is not the host in the URL. `authorization` returns the current value of the
    Authorization header, renewed if it expires; None if there is none. `plugin` gives them if a kubeconfig names one.
    `namespace` is the one to use if none is named. `context` and `cluster` are names in the kubeconfig; empty in a pod.
    """

    server: str
    authorization: Callable[[], Awaitable[str | None]]
    plugin: ExecPlugin | None = None
    tls: ssl.SSLContext | None = None
    tls_name: str | None = None
    proxy: str | None = None
    acting_as: Impersonation | None = None
    namespace: str = "default"
    context: str = ""
    cluster: str = ""


async def find_connection(
    *, kubeconfig: str | None, context: str | None, acting_as: Impersonation | None = None
) -> Connection:
    """Find credentials: `kubeconfig`, else $KUBECONFIG, else the pod's service account, else ~/.kube/config.

    Only a kubeconfig has contexts, so with a `context` the service account is not considered. `acting_as` replaces the
    kubeconfig's impersonation.

    Raises:
        NoCredentials: there are no credentials, or they cannot be used; the message says what to do.
    """
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and context is None and _in_pod():
        connection = _in_cluster()
    else:
        connection = await _from_kubeconfig(_existing(named or "~/.kube/config"), context)
    if acting_as is not None:
        connection = replace(connection, acting_as=acting_as)
    if connection.acting_as is not None and not all(value.isprintable() for _, value in connection.acting_as.headers()):
        raise NoCredentials("The name of a user or group to impersonate has a control character: correct it.")
    return connection


def _in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (token_files.SERVICE_ACCOUNT / "token").exists()


def _in_cluster() -> Connection:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    folder = token_files.SERVICE_ACCOUNT
    token = TokenFile(folder / "token", server)
    try:
        token.read()
        authority = (folder / "ca.crt").read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise NoCredentials(f"The pod's service account cannot be used: {error}") from error
    return Connection(
        server=server,
        authorization=token.authorization,
        tls=_tls(server, authority),
        proxy=_proxy_of_environment(server),
        namespace=own_namespace(folder / "namespace"),
    )


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
    source = f"The kubeconfig {' + '.join(files)}"
    try:
        content = read_kubeconfig(files)
        if context is not None and context not in content.contexts:
            names = f"it has {', '.join(content.contexts)}" if content.contexts else "it has none"
            raise NoCredentials(f"{source} has no context {context}: {names}.")
        chosen, cluster, user = content.chosen(context)
        impersonation = _impersonation(user, source)
        connection = await _connection(cluster, user, f"The user {chosen.user} of {source[0].lower()}{source[1:]}")
    except InvalidKubeconfig as error:
        raise NoCredentials(f"{source} cannot be used: {error}") from error
    except _UNREADABLE as error:
        raise NoCredentials(
            f"{source} cannot be read as a kubeconfig ({type(error).__name__}: {error}):"
            " compare it with the output of `kubectl config view`."
        ) from error
    return replace(
        connection,
        acting_as=impersonation,
        namespace=chosen.namespace or "default",
        context=context or content.current_context,
        cluster=chosen.cluster,
    )


def _impersonation(user: User, source: str) -> Impersonation | None:
    """The impersonation that the kubeconfig's user asks for; None if there is none."""
    if not user.impersonate:
        if user.as_groups or user.as_user_extra:
            # Without them, requests would have other rights than intended.
            raise NoCredentials(f"{source} has `as-groups` or `as-user-extra` and lacks `as`: correct it.")
        return None
    return Impersonation(
        user=user.impersonate,
        groups=tuple(user.as_groups),
        uid=user.as_uid,
        extra=tuple((key, tuple(values)) for key, values in user.as_user_extra.items()),
    )


def contexts(kubeconfig: str | None) -> list[str]:
    """The names of the contexts in this kubeconfig, by default in those of $KUBECONFIG or in ~/.kube/config.

    Raises:
        NoCredentials, OSError, ValueError, yaml.YAMLError: there is no kubeconfig, or one cannot be read.
    """
    return list(read_kubeconfig(_existing(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")).contexts)


async def _connection(cluster: Cluster, user: User, source: str) -> Connection:
    server = cluster.server.rstrip("/")
    tls = _tls_of(cluster, user) if server.startswith("https:") else None
    plugin = await _plugin(cluster, user, tls, source)
    return Connection(
        server=server,
        authorization=plugin.authorization if plugin is not None else _authorization(user, server),
        plugin=plugin,
        tls=tls,
        tls_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or _proxy_of_environment(server),
    )


async def _plugin(cluster: Cluster, user: User, tls: ssl.SSLContext | None, source: str) -> ExecPlugin | None:
    """The user's plug-in with its first credentials; None if the user has none."""
    if user.exec is not None:
        plugin = ExecPlugin(partial(call, user.exec, cluster), server=cluster.server, tls=tls)
    elif user.auth_provider is not None:
        plugin = ExecPlugin(AuthProvider(user.auth_provider, cluster.server).token, server=cluster.server, tls=tls)
    else:
        return None
    try:
        await plugin.renew()
    except FileNotFoundError as error:
        if user.exec is None or error.filename != user.exec.command:
            raise
        hint = user.exec.install_hint.strip()
        raise NoCredentials(
            f"{source} gets its credentials from the exec plug-in {error.filename}, which is not installed here:"
            " install it, put it on the PATH, or use a kubeconfig without it."
            f"{f' The kubeconfig says: {hint}' if hint else ''}"
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise NoCredentials(f"{source} gets no credentials: {error}") from error
    return plugin


def _authorization(user: User, server: str) -> Callable[[], Awaitable[str | None]]:
    """What returns the Authorization header of a user without a plug-in."""
    if user.token_file and not user.token:
        token = TokenFile(Path(user.token_file), server)
        token.read()
        return token.authorization
    header = None
    if user.token:
        header = f"Bearer {user.token.strip()}"
    elif user.username:
        header = f"Basic {base64.b64encode(f'{user.username}:{user.password}'.encode()).decode()}"

    async def authorization() -> str | None:
        return header

    return authorization


def _tls_of(cluster: Cluster, user: User) -> ssl.SSLContext:
    context = _tls(cluster.server, cluster.authority())
    certificate = user.certificate()
    if certificate is not None:
        try:
            load_certificate(context, *certificate)
        except (OSError, ValueError) as error:
            raise _unreadable_certificate(cluster.server, error) from error
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _tls(server: str, authority: str | None) -> ssl.SSLContext:
    """TLS that trusts this authority, in PEM, or those of the system."""
    if authority is not None and not authority.strip():
        # ssl would trust the system's authorities instead.
        raise _unreadable_certificate(server, "the file of its authority is empty")
    try:
        context = ssl.create_default_context(cadata=authority)
    except (OSError, ValueError) as error:
        raise _unreadable_certificate(server, error) from error
    # Python 3.13 requires extensions that the CAs of many clusters lack; kubectl and the API server do not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _unreadable_certificate(server: str, error: Exception | str) -> NoCredentials:
    return NoCredentials(f"A certificate or key for {server} cannot be read: {error}")


def _proxy_of_environment(server: str) -> str | None:
    """The proxy from HTTPS_PROXY and NO_PROXY. aiohttp's own `trust_env` would also send passwords from ~/.netrc."""
    url = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass(url.hostname or ""):
        return None
    return urllib.request.getproxies().get(url.scheme)
