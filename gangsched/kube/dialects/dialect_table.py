"""The dialects of an installation, in order of precedence.

Every change of a pod is parsed, and most pods name no group. Everything possible is therefore prepared in advance, and
equal texts are parsed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from msgspec.structs import replace

from gangsched.config.dialects import DIALECTS, SCHEDULING_GROUP, DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import NATIVE, OWN_DIALECT, Declaration
from gangsched.kube.dialects.dialect import Dialect, Texts, quoted
from gangsched.kube.dialects.dialect_kind import Kind

_KEPT = 1024
_LONGEST_KEPT = 4096
"""Longest texts of a pod that are cached, in characters, so that longer ones cannot fill the memory."""

_TERMS = (
    ("min_member", "minimum", "minimum"),
    ("roles", "minimum", "list of roles"),
    ("max_schedule_time_s", "time", "longest wait in seconds"),
    ("role", "role", "role"),
)
"""Terms that two dialects on one pod may both declare: the declaration's field, its key, and its name in messages."""


class Dialects:
    """Parses declarations in several `dialects`. If a pod uses several, the first one is its source.

    `kinds` are the custom resources of the dialects that have one, by dialect; `annotations` the names of all
    annotations that are read.
    """

    def __init__(self, table: Iterable[Dialect]) -> None:
        self.dialects = tuple(table)
        self.kinds: dict[str, Kind[Any]] = {}
        self._readers: list[_Reader] = []
        self._labels: list[tuple[str, _Reader]] = []
        annotations: set[str] = set()
        terms: set[str] = set()
        for dialect in self.dialects:
            reader = _Reader(dialect)
            self._readers.append(reader)
            if dialect.kind is not None:
                self.kinds |= {dialect.row.name: dialect.kind, **dialect.further}
            terms |= {key.name for key in (*dialect.row.group, *dialect.terms) if not key.label}
            for mark in dialect.marks:
                if mark.label:
                    self._labels.append((mark.name, reader))
                else:
                    annotations.add(mark.name)
        self._annotation_names = frozenset(annotations)
        self.annotations = frozenset(annotations | terms)

    def declaration(
        self, labels: Texts, annotations: Texts, *, pod: str = "", owner: str = "", scheduling_group: str = ""
    ) -> Declaration | None:
        """The declaration of the pod with this name; None for a plain pod, which names no group.

        The declaration reports unreadable and contradictory texts. `owner` is the pod that created this one,
        `scheduling_group` the group that its spec names.
        """
        if scheduling_group:
            annotations = {**annotations, SCHEDULING_GROUP.name: scheduling_group}
        if annotations and not self._annotation_names.isdisjoint(annotations):
            return self._together(labels, annotations, pod=pod, owner=owner)
        only = None
        for name, reader in self._labels:
            if name in labels:
                if only is not None and only is not reader:
                    return self._together(labels, annotations, pod=pod, owner=owner)
                only = reader
        return None if only is None else only.read(labels, annotations, pod=pod, owner=owner)

    def _together(self, labels: Texts, annotations: Texts, *, pod: str, owner: str) -> Declaration | None:
        declarations = []
        for reader in self._readers:
            if reader.marked(labels, annotations):
                declaration = reader.read(labels, annotations, pod=pod, owner=owner)
                if declaration is not None:
                    declarations.append(declaration)
        if len(declarations) > 1:
            # A declaration without a name in another system's dialect does not count next to one with a name.
            declarations = [
                declaration for declaration in declarations if declaration.group or declaration.source == OWN_DIALECT
            ] or declarations
            return _merged(tuple(_without_native(declarations)))
        return declarations[0] if declarations else None


def _without_native(declarations: list[Declaration]) -> list[Declaration]:
    """The declarations without a native group if the pod names another one in any other dialect.

    The pod's owner chose that one, whereas Kubernetes' Job controller adds a native group to pods of every Job (of
    every Indexed Job in 1.36), and nobody can remove it.
    """
    native = next((declaration for declaration in declarations if declaration.source == NATIVE), None)
    others = [declaration for declaration in declarations if declaration is not native]
    if native is None or not others or others[0].group == native.group:
        return declarations
    return [replace(others[0], passed_over=native.group), *others[1:]]


class _Reader:
    """One dialect with its keys prepared for parsing, and a cache of recent results."""

    def __init__(self, dialect: Dialect) -> None:
        keys = sorted(dialect.terms, key=lambda key: not key.label)
        self._group = [(key.label, key.name) for key in dialect.row.group]
        self._marks = [(key.label, key.name) for key in dialect.marks]
        self._in_labels = [key.name for key in keys if key.label]
        self._in_annotations = [key.name for key in keys if not key.label]
        self._unsaid = (None,) * len(self._in_annotations)
        self._nameless_group = dialect.nameless_group
        self._read = _read(dialect, keys)
        self._read_kept = lru_cache(_KEPT)(self._read)

    def marked(self, labels: Texts, annotations: Texts) -> bool:
        """Whether the pod uses this dialect."""
        for label, name in self._marks:  # noqa: SIM110 - half the cost of any()
            if name in (labels if label else annotations):
                return True
        return False

    def read(self, labels: Texts, annotations: Texts, *, pod: str, owner: str) -> Declaration | None:
        """The declaration of a pod that has one of the marks."""
        group = ""
        for label, name in self._group:
            group = (labels if label else annotations).get(name, "")
            if group:
                break
        else:
            group = self._nameless_group(labels, annotations, pod=pod, owner=owner)
        texts = tuple(map(labels.get, self._in_labels))
        if not annotations:
            return self._read_kept(group, texts + self._unsaid)
        texts += tuple(map(annotations.get, self._in_annotations))
        if len(group) + sum(map(len, filter(None, texts))) > _LONGEST_KEPT:
            return self._read(group, texts)
        return self._read_kept(group, texts)


def _read(dialect: Dialect, keys: Sequence[Key]) -> Callable[[str, tuple[str | None, ...]], Declaration | None]:
    def read(group: str, texts: tuple[str | None, ...]) -> Declaration | None:
        declared = {key: text for key, text in zip(keys, texts, strict=True) if text is not None}
        return dialect.declare(group, declared)

    return read


@lru_cache(_KEPT)
def _merged(declarations: tuple[Declaration, ...]) -> Declaration:
    """The combined declaration: each one may lack terms that another has, but they must not differ."""
    first = declarations[0]
    wrong = next((declaration.error for declaration in declarations if declaration.error), "")
    if wrong:
        return Declaration(group=first.group, role=first.role, error=wrong, source=first.source, keys=first.keys)
    stranger = next((declaration for declaration in declarations if declaration.group != first.group), None)
    if stranger is not None:
        return replace(
            first,
            contradiction=f"Its group is {quoted(first.group)} according to {first.keys.group}, but "
            f"{quoted(stranger.group)} according to {stranger.keys.group}: name the same group in both, or remove one "
            "of them.",
        )
    default_s = next(
        (declaration.default_time_s for declaration in declarations if declaration.default_time_s is not None), None
    )
    merged = replace(
        first,
        jitter_s=max(declaration.jitter_s for declaration in declarations),
        default_time_s=default_s,
        objects=tuple(dialect for declaration in declarations for dialect in declaration.objects),
        open_roles=any(declaration.open_roles for declaration in declarations),
        ignored=tuple(dict.fromkeys(key for declaration in declarations for key in declaration.ignored)),
        keys=replace(
            first.keys,
            kind=next((declaration.keys.kind for declaration in declarations if declaration.objects), first.keys.kind),
        ),
    )
    for field, key, term in _TERMS:
        saying = [declaration for declaration in declarations if getattr(declaration, field)]
        if not saying:
            continue
        value, source = getattr(saying[0], field), getattr(saying[0].keys, key)
        other = next((declaration for declaration in saying if getattr(declaration, field) != value), None)
        if other is not None:
            return replace(
                first,
                contradiction=f"Its {term} is {_shown(value)} according to {source}, but "
                f"{_shown(getattr(other, field))} according to {getattr(other.keys, key)}: make them equal, or remove "
                "one of them.",
            )
        merged = replace(merged, **{field: value}, keys=replace(merged.keys, **{key: source}))
    return merged


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return quoted(value) if isinstance(value, str) else str(value)


def chosen(settings: Settings) -> Dialects:
    """The dialects that the settings name, in the registry's order."""
    return Dialects(_dialect(row, settings) for row in DIALECTS.values() if row.name in settings.dialects)


def _dialect(row: DialectRow, settings: Settings) -> Dialect:
    """The dialect from the file with the row's name.

    The file is imported by name because the registry, which the configuration needs, must not depend on this package.
    """
    file = import_module(f"{__package__}.{row.name.replace('-', '_')}")
    dialect: Dialect = file.dialect(row, settings)
    return dialect


DEFAULT = chosen(Settings())
"""All dialects with the default configuration, for callers without a configuration."""
