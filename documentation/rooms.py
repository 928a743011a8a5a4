"""The page docs/rooms.md: the rooms of the core and of kube, their laws and modules, and drawings of their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent / "gangsched"


def page() -> str:
    """The page, generated from the docstrings and imports of the modules."""
    lines = ["# The rooms of the core and of kube", ""]
    lines += ["An arrow leads to an imported package; imports that follow from other arrows are left out."]
    for house in ("core", "kube"):
        lines += ["", *_of(_ROOT / house)]
    return "\n".join([*lines, ""])


def _of(house: Path) -> Iterator[str]:
    """The lines about one package."""
    rooms = [*_rooms(house)]
    yield from (f"## gangsched/{house.name}", "", _doc(house / "__init__.py"), "", "```mermaid", "flowchart BT")
    direct = _direct({room: _imports(house, room) for room in rooms})
    yield from (f"    {room} --> {other}" for room in rooms for other in sorted(direct[room]))
    yield "```"
    for room in rooms:
        path = house / room
        if not path.is_dir():
            yield from ("", f"### {room}.py", "", _doc(path.with_suffix(".py")))
            continue
        yield from ("", f"### {room}/", "", _doc(path / "__init__.py"), "", "| module | contents |", "|---|---|")
        modules = (module for module in sorted(path.glob("*.py")) if module.stem != "__init__")
        yield from (f"| `{module.name}` | {_doc(module).split(chr(10), 1)[0]} |" for module in modules)


def _rooms(house: Path) -> Iterator[str]:
    """The packages and modules directly in this one, by name."""
    for path in sorted(house.iterdir()):
        if path.is_dir() and (path / "__init__.py").exists():
            yield path.name
        elif path.suffix == ".py" and path.stem != "__init__":
            yield path.stem


def _imports(house: Path, room: str) -> set[str]:
    """The other rooms of the package that this one imports."""
    path, package = house / room, f"gangsched.{house.name}"
    files = path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    found: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if module == package and isinstance(node, ast.ImportFrom):
                found.update(alias.name for alias in node.names)
            elif module is not None and module.startswith(f"{package}."):
                found.add(module.removeprefix(f"{package}.").partition(".")[0])
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
