"""Files of figures that runs leave for the pages: one JSON document a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

Figure = TypeVar("Figure")


def read(file: Path, form: type[Figure]) -> list[Figure]:
    """The figures of the file, in order."""
    return [msgspec.json.decode(line, type=form) for line in file.read_text(encoding="utf-8").splitlines()]


def write(file: Path, found: Iterable[object]) -> None:
    """Replace the content of the file by these figures."""
    file.write_text("".join(f"{msgspec.json.encode(each).decode()}\n" for each in found), encoding="utf-8")
