"""The files in which the kernel publishes a container's memory limit and usage."""

from __future__ import annotations

from pathlib import Path


def limited(folder: Path, limit: str, used: int, inactive: int = 0) -> Path:
    """The folder, with the files of a control group v2 with this limit and usage, in bytes."""
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {inactive}\n")
    return folder
