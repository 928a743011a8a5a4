"""Manifests of docs/workloads, which live in examples/workloads and stand in the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

_PAGES = Path("docs", "workloads")
_INCLUDED = re.compile(r"(<!-- (examples/\S+\.yaml) -->\n```yaml\n).*?(```)", re.DOTALL)


def pages(root: Path) -> Iterator[tuple[Path, Callable[[str], str]]]:
    """Each page that includes manifests, relative to the repository, and the function that fills them in."""
    for path in sorted((root / _PAGES).glob("*.md")):
        if _INCLUDED.search(path.read_text(encoding="utf-8")):
            yield path.relative_to(root), lambda text: _filled(root, text)


def _filled(root: Path, text: str) -> str:
    """The page with the present content of the files that its comments name.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return _INCLUDED.sub(lambda found: found[1] + (root / found[2]).read_text(encoding="utf-8") + found[3], text)
