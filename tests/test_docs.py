from pathlib import Path

import pytest

from testbed.docs import ROOT, pages


@pytest.mark.parametrize(("path", "text"), pages().items(), ids=[str(path) for path in pages()])
def test_what_is_generated_is_current(path: Path, text: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is stale: run make docs"


def test_every_page_of_docs_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")

    missing = [
        str(page.relative_to(ROOT / "docs"))
        for page in (ROOT / "docs").rglob("*.md")
        if page.name != "README.md" and f"({page.relative_to(ROOT / 'docs')})" not in index
    ]

    assert missing == []
