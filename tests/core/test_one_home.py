"""House rules checked against the source: each attribute of the core is changed in one place, and modules are small."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "gangsched"
CORE = PACKAGE / "core"
MOST_LINES, MOST_LINES_OF_CODE_IN_CORE = 400, 250
MOST_LINES_OF_DECISIONS = 9434
MUTATING = {
    *("add", "append", "appendleft", "extend", "insert", "setdefault", "sort", "update"),
    *("clear", "discard", "pop", "popitem", "popleft", "remove", "subtract"),
    *("difference_update", "intersection_update", "symmetric_difference_update"),
}
FUNCTIONS = {
    *("heapify", "heappop", "heappush", "heapreplace", "insort"),
    *("count", "drop", "drop_oldest", "enter", "uncount"),  # of core/objects/indexes.py
    *("add_share", "count_devices"),
}
"""Functions that change their first argument."""


def test_each_attribute_is_changed_in_one_module_only():
    homes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in sorted(CORE.rglob("*.py")):
        for changed in changes(ast.parse(path.read_text(encoding="utf-8"))):
            homes[changed].add(str(path.relative_to(CORE)))
    scattered = {f"{owner}.{name}": sorted(modules) for (owner, name), modules in homes.items() if len(modules) > 1}
    assert scattered == {}


def test_a_module_is_found_by_its_name_alone():
    """The modules of the command line have the names of their commands."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.stem.startswith("__") and path.parent.name != "cli":
            homes[path.stem].append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_modules_are_short_enough_to_be_read_at_once():
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if CORE in path.parents:
            assert lines_of_code(text) <= MOST_LINES_OF_CODE_IN_CORE, path
        else:
            assert len(text.splitlines()) <= MOST_LINES, path


def test_what_decides_about_gangs_does_not_grow():
    """All but planning, constraints, declarations and values: moving code from one such room to another is no gain."""
    rooms = [CORE, *(CORE / name for name in ("gang", "membership", "queueing", "status"))]
    paths = [path for room in rooms for path in room.glob("*.py")]
    assert sum(lines_of_code(path.read_text(encoding="utf-8")) for path in paths) <= MOST_LINES_OF_DECISIONS


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("", 0),
        ('"""What."""\n\nx = 1  # why\n# why\n', 1),
        ('def f():\n    """What."""\n    return (\n        1\n    )', 4),
    ],
)
def test_a_line_of_code_is_neither_blank_nor_comment_nor_docstring(source, lines):
    assert lines_of_code(source) == lines


@pytest.mark.parametrize(
    "change",
    [
        "gang.written = 1",
        "gang.written += 1",
        "gang.written: int = 1",
        "del gang.written",
        "other, gang.written = 1, 2",
        "gang.written[0] = 1",
        "del gang.written[0][1]",
        "gang.written.append(1)",
        "gang.written[0].setdefault(1, 2)",
        "heappush(gang.written, 1)",
        "insort(gang.written[0], 1)",
        "self._gang.written = 1",
        "gangs[key].gang.written = 1",
        "class Gang:\n    def note(self):\n        self.written = 1",
    ],
)
def test_a_change_is_seen_whatever_its_form(change):
    assert ("Gang", "written") in set(changes(ast.parse(change)))


def test_reading_is_no_change():
    assert not set(changes(ast.parse("x = gang.written\nx = gang.written[0]\ngang.written.get(1)\ngang.written: int")))


def changes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(class, attribute) of each change. An object's name implies its class: `gang` and `self._gang` are a Gang."""
    unread = [(tree, "")]
    while unread:
        node, owner = unread.pop()
        for target in map(_container, _targets(node)):
            if isinstance(target, ast.Attribute):
                yield _class_of(target.value, owner), target.attr
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        unread += [(child, inside) for child in ast.iter_child_nodes(node)]


@cache
def lines_of_code(source: str) -> int:
    """The number of lines that are neither blank nor comment nor docstring."""
    told = {
        line
        for node in statements(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(map(str.strip, source.splitlines()), start=1)
    return sum(bool(line) and not line.startswith("#") and number not in told for number, line in lines)


def statements(tree: ast.Module | ast.stmt | ast.ExceptHandler | ast.match_case) -> Iterator[ast.stmt]:
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(tree, field, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from statements(child)


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return [part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
        case ast.AugAssign(target=target):
            return [target]
        case ast.AnnAssign(target=target, value=value) if value is not None:
            return [target]
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in MUTATING:
            return [value]
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in FUNCTIONS:
            return [first]
    return []


def _container(node: ast.expr) -> ast.expr:
    """The container of a subscript, or the expression itself."""
    return _container(node.value) if isinstance(node, ast.Subscript) else node


def _class_of(value: ast.expr, owner: str) -> str:
    node = _container(value)
    match node:
        case ast.Name(id="self"):
            return owner
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "".join(part.title() for part in name.split("_"))
    return ast.unparse(node)
