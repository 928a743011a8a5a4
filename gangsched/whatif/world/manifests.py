"""Reads Kubernetes objects from YAML and JSON files and standard input, each with its place for error messages.

Files with several documents and lists (`kind: List`, `PodList`, …) are split. The order of the files and of their
contents is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from gangsched.config import yaml_documents

Source: TypeAlias = "str | Path | Mapping[str, Any] | Iterable[Source]"
"""Manifests: YAML or JSON as text, the path of such a file, one Kubernetes object, or several of these."""

STDIN = "-"
DEFAULT_NAMESPACE = "default"
_NAME_OF_FILE = re.compile(r"[^\n:{]+\.(ya?ml|json)")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class ManifestError(ValueError):
    """The files cannot be used. Each of `problems` is a sentence with file and document."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class NotAdmittedError(ValueError):
    """The API server refuses an object. Each of `reasons` is a clause that says why, and what to do."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(", and ".join(reasons))
        self.reasons = tuple(reasons)


@contextmanager
def admitted_as(title: object) -> Iterator[None]:
    """What is not admitted here makes the files unusable; `title` names the object.

    Raises:
        ManifestError: the API server would refuse the object.
    """
    try:
        yield
    except NotAdmittedError as error:
        raise ManifestError(
            [f"{title}: the API server would refuse it, because {why}" for why in error.reasons]
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object, its place (`pods.yaml, document 2`) and its namespace if it names none."""

    where: str
    default_namespace: str = DEFAULT_NAMESPACE
    api_version: str
    kind: str
    body: Mapping[str, Any]

    @property
    def gvk(self) -> tuple[str, str]:
        """The apiVersion and kind."""
        return self.api_version, self.kind

    @property
    def group(self) -> str:
        """The API group; empty for that of Kubernetes' core."""
        return group_of(self.api_version)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """`metadata`; empty if the object has none."""
        return mapping(self.body.get("metadata"))

    @property
    def labels(self) -> Mapping[str, Any]:
        """`metadata.labels`; empty if the object has none."""
        return mapping(self.body, "metadata", "labels")

    @property
    def annotations(self) -> Mapping[str, Any]:
        """`metadata.annotations`; empty if the object has none."""
        return mapping(self.body, "metadata", "annotations")

    @property
    def spec(self) -> Mapping[str, Any]:
        """`spec`; empty if the object has none."""
        return mapping(self.body.get("spec"))

    @property
    def status(self) -> Mapping[str, Any]:
        """`status`; empty if the object has none."""
        return mapping(self.body.get("status"))

    @property
    def name(self) -> str:
        """`metadata.name`; empty if the object has none."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, else the default one, as with kubectl."""
        return str(self.metadata.get("namespace") or self.default_namespace)

    @property
    def uid(self) -> str:
        """`metadata.uid`, else one that no other object has."""
        return str(self.metadata.get("uid") or f"{self.kind}/{self.namespace}/{self.name}")

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} {self.name}".rstrip()


def group_of(api_version: object) -> str:
    """The API group of an apiVersion; empty for that of Kubernetes' core."""
    return str(api_version or "").rpartition("/")[0]


def mapping(value: object, *fields: str) -> Mapping[str, Any]:
    """The value itself, or what it has below these fields, if that is a mapping; else an empty one."""
    for field in fields:
        value = value.get(field) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list, such as the items of a field; empty if it is not a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def read(files: Sequence[str], *, namespace: str = DEFAULT_NAMESPACE) -> list[Manifest]:
    """All objects of the files, in order. `-` is standard input; `namespace` is for objects without one.

    Raises:
        ManifestError: a file is unreadable, neither YAML nor JSON, or contains something that is not an object.
    """
    manifests: list[Manifest] = []
    problems: list[str] = []
    for file in files:
        try:
            manifests += _objects(file, namespace)
        except ManifestError as error:
            problems += error.problems
    if problems:
        raise ManifestError(problems)
    return manifests


def manifests_of(source: Source, shown: str, *, namespace: str = DEFAULT_NAMESPACE) -> list[Manifest]:
    """All objects of the source, in order; `shown` is its name in messages.

    Raises:
        ManifestError: as `read`, or the source is of another type.
    """
    if isinstance(source, Path):
        return read([str(source)], namespace=namespace)
    if isinstance(source, str):
        if _NAME_OF_FILE.fullmatch(source):
            raise ManifestError([f"{shown}: is {source!r}, the name of a file: write pathlib.Path({source!r})"])
        return _documents(source, shown, namespace)
    if isinstance(source, Mapping):
        return _placed(source, shown, namespace)
    if not isinstance(source, Iterable):
        raise ManifestError([f"{shown}: is {source!r}: give objects as dicts, YAML as text, or a Path"])
    return [
        manifest
        for number, item in enumerate(source, start=1)
        for manifest in manifests_of(item, f"{shown}, item {number}", namespace=namespace)
    ]


def _objects(file: str, namespace: str) -> list[Manifest]:
    shown = "standard input" if file == STDIN else file
    return _documents(_text(file, shown), shown, namespace)


def _documents(text: str, shown: str, namespace: str) -> list[Manifest]:
    try:
        json_documents = _json_documents(text) if text.lstrip().startswith("{") else None
    except yaml_documents.Unfollowable as error:
        raise ManifestError([f"{shown}: is {error}, as no Kubernetes object is"]) from None
    documents = _yaml_documents(text, shown) if json_documents is None else json_documents
    manifests: list[Manifest] = []
    for number, document in documents:
        if document is not None:
            manifests += _placed(document, f"{shown}, document {number}", namespace)
    return manifests


def _placed(document: object, where: str, namespace: str) -> list[Manifest]:
    return [replace(manifest, default_namespace=namespace) for manifest in _unfold(document, where)]


def _text(file: str, shown: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise ManifestError([f"{shown}: cannot be read ({error.strerror}): name a file with manifests"]) from None
    except UnicodeDecodeError:
        raise ManifestError([f"{shown}: is not UTF-8 text: name a file with YAML or JSON manifests"]) from None


def _json_documents(text: str) -> list[tuple[int, object]] | None:
    """The JSON documents of the text, in order; None if it is not JSON, such as YAML in braces."""
    yaml_documents.check_depth(text)
    decoder = json.JSONDecoder()
    documents: list[tuple[int, object]] = []
    position = 0
    while rest := text[position:].lstrip():
        try:
            document, length = decoder.raw_decode(rest)
        except ValueError:  # also for a number of more digits than Python reads
            return None
        documents.append((len(documents) + 1, document))
        position = len(text) - len(rest) + length
    return documents


def _yaml_documents(text: str, shown: str) -> Iterator[tuple[int, object]]:
    number = 0
    try:
        for number, document in enumerate(yaml_documents.documents(text, _Loader), start=1):
            yield number, document
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise ManifestError([f"{shown}, document {number + 1}{line}: is not YAML: {error.problem}"]) from None
    except yaml_documents.Unfollowable as error:
        raise ManifestError([f"{shown}, document {number + 1}: is {error}, as no Kubernetes object is"]) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ManifestError([f"{shown}, document {number + 1}: is not YAML: {' '.join(str(error).split())}"]) from None


class _Loader(yaml_documents.Loader):
    """Keeps timestamps as text, in the form that the API expects."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - pyyaml requires this attribute
        first: [(tag, form) for tag, form in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _unfold(document: object, where: str, *, api_version: str = "", kind: str = "") -> Iterator[Manifest]:
    """The object, or the objects of a list. The items of a list such as `PodList` need no kind of their own."""
    if not isinstance(document, Mapping):
        raise ManifestError([f"{where}: is not a Kubernetes object: write apiVersion, kind and metadata"])
    api_version = _named(document, "apiVersion", where) or api_version
    kind = _named(document, "kind", where) or kind
    if not api_version or not kind:
        missing = "apiVersion" if not api_version else "kind"
        raise ManifestError([f"{where}: {missing} is missing: write it, as in every Kubernetes object"])
    items = document.get("items")
    if kind.endswith("List") and (isinstance(items, list) or "items" not in document or items is None):
        item_kind = kind.removesuffix("List")
        for number, item in enumerate(items or (), start=1):
            inner = f"{where}, item {number}"
            yield from _unfold(item, inner, api_version=api_version if item_kind else "", kind=item_kind)
        return
    yield Manifest(where=where, api_version=api_version, kind=kind, body=document)


def _named(document: Mapping[str, Any], field: str, where: str) -> str:
    value = document.get(field)
    if value is not None and not isinstance(value, str):
        raise ManifestError([f"{where}: {field} is {value!r}: it must be a string"])
    return value or ""
