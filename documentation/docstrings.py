"""Reads the strings that describe the names in a class body or a module, for the pages that list them."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator, Sequence
from enum import StrEnum
from types import ModuleType


def members(kind: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """The value of each member of the enumeration, and its description."""
    texts = dict(documented(kind))
    for member in kind:
        yield member.value, texts[member.name]


def documented(kind: type) -> Iterator[tuple[str, str]]:
    """The names assigned or annotated in a class body, each with the string that follows it."""
    [body] = [node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef)]
    return _described(body)


def constants(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The names assigned or annotated in a module, each with the string that follows it."""
    return _described(ast.parse(inspect.getsource(module)).body)


def _described(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, after in itertools.pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield name, " ".join(inspect.cleandoc(str(after.value.value)).split())
