"""Credentials and the address of the API server, from a kubeconfig or the service account of our own pod."""

from __future__ import annotations

import os
import ssl
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from gangsched.config.yaml_documents import document
from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.exec_plugin import ExecPlugin
from gangsched.kube.client.kubeconfigs import (
    ConfigException,
    Configuration,
    exec_provider,
    incluster_config,
    kube_config,
)

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_UNRENEWABLE = (ConfigException, OSError, ValueError, TypeError, AttributeError, KeyError, RuntimeError)
"""The library's exceptions for credentials that cannot be renewed, and for a missing file."""


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
    `namespace` is the one to use if none is named.
    """

    server: str
    authorization: Callable[[], Awaitable[str | None]]
    plugin: ExecPlugin | None = None
    tls: ssl.SSLContext | None = None
    tls_name: str | None = None
    proxy: str | None = None
    acting_as: Impersonation | None = None
    namespace: str = "default"


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
        found = _in_cluster()
    else:
        found = await _from_kubeconfig(_existing(named or "~/.kube/config"), context)
    if acting_as is not None:
        found = replace(found, acting_as=acting_as)
    if found.acting_as is not None and not all(value.isprintable() for _, value in found.acting_as.headers()):
        raise NoCredentials("The name of a user or group to impersonate has a control character: correct it.")
    return found


def _in_pod() -> bool:
    named = os.environ.get(incluster_config.SERVICE_HOST_ENV_NAME)
    return bool(named) and Path(incluster_config.SERVICE_TOKEN_FILENAME).exists()


def _in_cluster() -> Connection:
    found = Configuration()
    try:
        incluster_config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        raise NoCredentials(f"The pod's service account cannot be used: {error}") from error
    return replace(_connection(found), namespace=own_namespace())


def own_namespace(file: Path = _OWN_NAMESPACE) -> str:
    """The namespace of the pod that this process runs in; `default` outside of a pod."""
    try:
        return file.read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


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
            for name in files:
                _content(name)
            loader = await kube_config.load_kube_config(
                config_file=os.pathsep.join(files),
                context=context or _current_of_first(files),
                client_configuration=found,
                persist_config=False,
                temp_file_path=folder,
            )
            # The library reads user and context, but not these keys.
            user: Any = loader._user  # noqa: SLF001
            chosen: Any = loader._current_context  # noqa: SLF001
            return replace(
                _with_plugin(_connection(found), loader),
                acting_as=_impersonated(user.value if user is not None else {}, where),
                namespace=str(chosen.value["context"].get("namespace") or "default"),
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


def _impersonated(user: Mapping[str, Any], where: str) -> Impersonation | None:
    """The impersonation that the kubeconfig's user asks for; None if there is none."""
    name, groups, extra = user.get("as"), user.get("as-groups") or [], user.get("as-user-extra") or {}
    listed = [groups, *(extra.values() if isinstance(extra, dict) else [None])]
    if not all(isinstance(each, list) for each in listed) or ((groups or extra) and not name):
        # With a part of it left out, requests would have other rights than intended.
        raise NoCredentials(f"{where} has an invalid `as-groups` or `as-user-extra`, or lacks `as`: correct it.")
    if not name:
        return None
    return Impersonation(
        user=str(name),
        groups=tuple(map(str, groups)),
        uid=str(user.get("as-uid") or ""),
        extra=tuple((str(key), tuple(map(str, values))) for key, values in extra.items()),
    )


def _current_of_first(files: list[str]) -> str | None:
    """The current context of the first file that names one, as in kubectl; the library would take that of the last.

    None for a single file, which the library reads as kubectl does.

    Raises:
        OSError, ValueError, yaml.YAMLError: a file cannot be read.
    """
    for name in files if len(files) > 1 else ():
        content = _content(name)
        if isinstance(content, dict) and content.get("current-context"):
            return str(content["current-context"])
    return None


def _unknown_context(files: list[str], context: str | None) -> str:
    """A sentence about a context that the kubeconfig lacks; empty if it has the context, or if none was named."""
    if context is None:
        return ""
    known = [name for name, _ in _entries(files, "contexts")]
    if context in known:
        return ""
    has = f"it has {', '.join(known)}" if known else "it has none"
    return f"The kubeconfig {' + '.join(files)} has no context {context}: {has}."


def contexts(kubeconfig: str | None) -> list[str]:
    """The names of the contexts in this kubeconfig, by default in those of $KUBECONFIG or in ~/.kube/config.

    Raises:
        NoCredentials, OSError, ValueError, yaml.YAMLError: there is no kubeconfig, or one cannot be read.
    """
    files = _existing(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    return [name for name, _ in _entries(files, "contexts")]


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


def _content(name: str) -> Any:  # noqa: ANN401 - anything that YAML can say
    """The content of this file. The library reads it without a limit to its nesting, so it is read here before.

    Raises:
        OSError, ValueError, yaml.YAMLError: it cannot be read.
    """
    return document(Path(name).read_text(encoding="utf-8"))


def _entries(files: list[str], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of the list `key` in these YAML files, each with its name."""
    for name in files:
        content = _content(name)
        listed = content.get(key) if isinstance(content, dict) else None
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict):
                yield str(entry.get("name")), entry


def _with_plugin(found: Connection, loader: kube_config.KubeConfigLoader) -> Connection:
    """The connection with the kubeconfig's exec plug-in, which the library calls only once, if it has one."""
    user: Any = loader._user  # noqa: SLF001 - as above
    if user is None or "exec" not in user:
        return found
    plugin = ExecPlugin(exec_provider.ExecProvider(user["exec"]).run, server=found.server, tls=found.tls)
    plugin.note(getattr(loader, "token", None), getattr(loader, "exec_plugin_expiry", None))
    return replace(found, authorization=plugin.authorization, plugin=plugin)


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
