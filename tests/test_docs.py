import re
from collections.abc import Iterable, Mapping

import pytest

from documentation import evidence
from documentation.generate import ROOT, pages
from documentation.pictures import STEPS
from documentation.walk import counted


def missing_tests(named: Iterable[str]) -> list[str]:
    """Which of these tests, each `FILE::NAME`, do not exist."""
    return [
        test
        for test in named
        for path, _, name in [test.partition("::")]
        if not re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    ]


@pytest.mark.slow
def test_what_is_generated_is_current() -> None:
    stale = [str(path) for path, text in pages().items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert not stale, "stale: run make docs"


def test_every_test_that_a_page_names_exists() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    named = set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", text))

    assert len(named) > 100
    assert [name for name in sorted(named) if not (ROOT / name.partition("::")[0]).is_file()] == []
    assert missing_tests(name for name in sorted(named) if "::" in name) == []


def test_every_module_that_a_page_or_a_docstring_names_exists() -> None:
    """Pages name a module by the end of its path, such as `gang/clock.py`."""
    modules = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
    pages += (ROOT / "gangsched").rglob("*.py")
    named = {name for page in pages for name in re.findall(r"`((?:\w+/)*\w+\.py)`", page.read_text(encoding="utf-8"))}

    assert len(named) > 100
    assert [name for name in sorted(named) if not any(f"/{path}".endswith(f"/{name}") for path in modules)] == []


def test_each_arrow_of_the_picture_of_phases_is_explained() -> None:
    page = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    section = page.partition("## Phases")[2].partition("\n## ")[0]

    explained = re.findall(r"^(\d+)\. ", section, flags=re.MULTILINE)
    assert explained == [str(number) for number in range(1, len(STEPS) + 1)]


def test_every_statement_of_the_appendix_is_in_its_page() -> None:
    found = evidence.read(ROOT)

    assert len(found) > 5
    for page, statements in found.items():
        text = _on_one_line((ROOT / "docs" / page).read_text(encoding="utf-8"))
        assert statements
        assert [said for said in statements if _on_one_line(said) not in text] == [], page


def test_every_cell_of_the_fault_matrix_that_claims_something_has_a_test() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    table = page[page.index("| What fails |") :].partition("\n\n")[0].splitlines()
    stages = cells_of(table[0])[1:]
    claimed = {
        (cells_of(row)[0], stage)
        for row in table[2:]
        for stage, cell in zip(stages, cells_of(row)[1:], strict=True)
        if cell != "—"
    }
    proved = {
        (row, stage)
        for row, tests in evidence.read(ROOT)["reliability.md"].items()
        if isinstance(tests, Mapping)
        for stage, of_stage in tests.items()
        if of_stage
    }

    assert len(table) > 20
    assert claimed == proved


def cells_of(row: str) -> list[str]:
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_every_feature_that_is_there_has_a_test_and_all_are_listed() -> None:
    page = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    rows = [cells_of(line) for line in re.findall(r"^\| \d+ \|.*\|$", page, flags=re.MULTILINE)]

    assert [int(number) for number, *_ in rows] == list(range(1, 48))
    there = {name for _, name, provided in rows if provided != "not yet"}
    assert there == evidence.read(ROOT)["features.md"].keys()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_gang_is_reconciled_once_for_an_event() -> None:
    calls, modules, reconciles = counted()
    assert reconciles == 1
    assert calls > modules > 50
