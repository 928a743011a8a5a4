"""The appendix docs/evidence.md: which tests prove what the pages say, from documentation/evidence.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import yaml

PAGE = Path("docs/evidence.md")
SOURCE = Path("documentation/evidence.yaml")

Tests: TypeAlias = Sequence[str]
Statements: TypeAlias = Mapping[str, Tests | Mapping[str, Tests]]


def read(root: Path) -> Mapping[str, Statements]:
    """The tests by page of docs/ and statement; those of the table of faults also by stage."""
    found: Mapping[str, Statements] = yaml.safe_load((root / SOURCE).read_text(encoding="utf-8"))
    return found


def page(root: Path) -> str:
    """docs/evidence.md."""
    lines = [
        f"<!-- Generated from {SOURCE} by make docs: change that, not this page. -->",
        "",
        "# Tests that prove the pages",
        "",
        "This appendix names the tests that prove what other pages say, by page and by statement or row of a table,",
        "and for the table of faults also by the stage that the group has reached. Where only a file is named, all of",
        "its tests are meant. [How gangsched is tested](testing.md) says how to run them.",
    ]
    for name, statements in read(root).items():
        title = (root / PAGE.parent / name).read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]
        lines += ["", f"## [{title}]({name})", ""]
        for statement, tests in statements.items():
            if isinstance(tests, Mapping):
                lines.append(f"- {statement}")
                lines += [f"  - {stage}: {_shown(of_stage)}" for stage, of_stage in tests.items()]
            else:
                lines.append(f"- {statement}: {_shown(tests)}")
    return "\n".join([*lines, ""])


def _shown(tests: Tests) -> str:
    return ", ".join(f"`{test}`" for test in tests)
