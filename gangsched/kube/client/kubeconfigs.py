"""Reads kubeconfigs: the clusters, users and contexts of several files, merged as kubectl merges them."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from gangsched.config.yaml_documents import document


class InvalidKubeconfig(ValueError):  # noqa: N818 - it says what is the matter
    """A kubeconfig lacks something or contradicts itself; the message says what."""


class Cluster(Struct, rename="kebab"):
    """How to reach a cluster. Paths are absolute once it is read."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] = []

    def authority(self) -> str | None:
        """The certificates of its authority in PEM; None if the system's are to be trusted.

        Raises:
            OSError, ValueError: they cannot be read.
        """
        return _data_or_file(self.certificate_authority_data, self.certificate_authority)


class Variable(Struct):
    """A variable of the environment of an exec plug-in."""

    name: str
    value: str = ""


class Exec(Struct, rename="camel"):
    """A program that gives credentials, as in client.authentication.k8s.io/v1."""

    command: str
    api_version: str
    args: list[str] = []
    env: list[Variable] = []
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class User(Struct, rename="kebab"):
    """The credentials of a user, and whom it impersonates. Paths are absolute once it is read."""

    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}

    def certificate(self) -> tuple[str, str] | None:
        """The client certificate and its key in PEM; None if the user has none.

        Raises:
            OSError, ValueError: they cannot be read.
        """
        certificate = _data_or_file(self.client_certificate_data, self.client_certificate)
        key = _data_or_file(self.client_key_data, self.client_key)
        return None if certificate is None else (certificate, certificate if key is None else key)


class Context(Struct):
    """The names of a cluster and of a user, and the namespace to use if none is named."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Entry(Struct):
    name: str
    cluster: Cluster | None = None
    context: Context | None = None
    user: User | None = None


class _File(Struct, rename="kebab"):
    current_context: str = ""
    clusters: list[_Entry] = []
    contexts: list[_Entry] = []
    users: list[_Entry] = []


class Kubeconfig(Struct):
    """The entries of the files by name. The first file that has an entry or a current context decides it."""

    current_context: str = ""
    clusters: dict[str, Cluster] = {}
    contexts: dict[str, Context] = {}
    users: dict[str, User] = {}

    def chosen(self, context: str | None) -> tuple[Context, Cluster, User]:
        """The context of this name, or the current one, with its cluster and its user.

        Raises:
            InvalidKubeconfig: one of them is missing.
        """
        name = context or self.current_context
        if not name:
            raise InvalidKubeconfig("it has no current-context: set one, or name a context with --context")
        chosen = self.contexts.get(name)
        if chosen is None:
            raise InvalidKubeconfig(f"it has no context {name}")
        cluster = self.clusters.get(chosen.cluster)
        if cluster is None or not cluster.server:
            raise InvalidKubeconfig(f"its context {name} names no cluster that has a server")
        user = self.users.get(chosen.user) if chosen.user else User()
        if user is None:
            raise InvalidKubeconfig(f"it lacks the user {chosen.user} of the context {name}")
        return chosen, cluster, user


def read_kubeconfig(files: Iterable[str]) -> Kubeconfig:
    """The merged content of these files.

    Raises:
        OSError, ValueError, yaml.YAMLError: a file cannot be read, or is no kubeconfig.
    """
    merged = Kubeconfig()
    for file_name in files:
        path = Path(file_name)
        content = document(path.read_text(encoding="utf-8"))
        if content is None:
            continue  # an empty file has no entries, for kubectl too
        if not isinstance(content, dict):
            raise InvalidKubeconfig(f"{path} is another kind of file; write a kubeconfig, or name another file")
        file = msgspec.convert(_without_nulls(content), _File)
        merged.current_context = merged.current_context or file.current_context
        folder = path.absolute().parent
        for name, cluster in _named(file.clusters, "cluster"):
            merged.clusters.setdefault(name, _cluster_in(folder, cluster or Cluster()))
        for name, context in _named(file.contexts, "context"):
            merged.contexts.setdefault(name, context or Context())
        for name, user in _named(file.users, "user"):
            merged.users.setdefault(name, _user_in(folder, user or User()))
    return merged


def _named(entries: list[_Entry], kind: str) -> Iterator[tuple[str, Any]]:
    """The names and values of entries of this kind, none of which may occur twice in a file."""
    names = set()
    for entry in entries:
        if entry.name in names:
            raise InvalidKubeconfig(f"it has the {kind} {entry.name} twice")
        names.add(entry.name)
        yield entry.name, getattr(entry, kind)


def _cluster_in(folder: Path, cluster: Cluster) -> Cluster:
    cluster.certificate_authority = _absolute(folder, cluster.certificate_authority)
    return cluster


def _user_in(folder: Path, user: User) -> User:
    user.token_file = _absolute(folder, user.token_file)
    user.client_certificate = _absolute(folder, user.client_certificate)
    user.client_key = _absolute(folder, user.client_key)
    if user.exec is not None and os.sep in user.exec.command:
        # A bare name is looked up on the PATH.
        user.exec.command = _absolute(folder, user.exec.command)
    return user


def _absolute(folder: Path, path: str) -> str:
    return str(folder / path) if path else ""


def _without_nulls(value: object) -> object:
    """The value without the keys that have no value, which mean the same as missing ones."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _data_or_file(data: str, file: str) -> str | None:
    if data:
        return base64.b64decode(data).decode("utf-8")
    return Path(file).read_text(encoding="utf-8") if file else None
