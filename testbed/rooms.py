"""The page docs/rooms.md: the rooms of the core, their laws and modules, and a drawing of their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

CORE = Path(__file__).resolve().parent.parent / "gangsched" / "core"
_PACKAGE = "gangsched.core"


def page() -> str:
    """The page, generated from the docstrings and imports of the modules."""
    rooms = [*_rooms()]
    lines = ["# The packages of the core", "", _doc(CORE / "__init__.py"), "", "```mermaid", "flowchart BT"]
    direct = _direct({room: _imports(room) for room in rooms})
    lines += [f"    {room} --> {other}" for room in rooms for other in sorted(direct[room])]
    lines += ["```", "", "An arrow leads to an imported package; imports that follow from other arrows are left out."]
    for room in rooms:
        path = CORE / room
        if not path.is_dir():
            lines += ["", f"## {room}.py", "", _doc(path.with_suffix(".py"))]
            continue
        lines += ["", f"## {room}/", "", _doc(path / "__init__.py"), "", "| module | contents |", "|---|---|"]
        modules = (module for module in sorted(path.glob("*.py")) if module.stem != "__init__")
        lines += [f"| `{module.name}` | {_doc(module).split(chr(10), 1)[0]} |" for module in modules]
    return "\n".join([*lines, ""])


def _rooms() -> Iterator[str]:
    """The packages and modules directly in the core, by name."""
    for path in sorted(CORE.iterdir()):
        if path.is_dir() and (path / "__init__.py").exists():
            yield path.name
        elif path.suffix == ".py" and path.stem != "__init__":
            yield path.stem


def _imports(room: str) -> set[str]:
    """The other rooms that this one imports."""
    path = CORE / room
    files = path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    found: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module is not None and module.startswith(f"{_PACKAGE}."):
                found.add(module.removeprefix(f"{_PACKAGE}.").partition(".")[0])
    return found - {room}


def _direct(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The imports without those that others imply transitively."""

    def reached(room: str) -> set[str]:
        return imports[room].union(*map(reached, imports[room]))

    return {
        room: {other for other in others if not any(other in reached(each) for each in others - {other})}
        for room, others in imports.items()
    }


def _doc(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
