"""The documentation site builds without a network, and a mistake in a page fails the build."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from documentation.site import ROOT, SiteError, build

STATES = "docs/states.html"


def made(root: Path, **pages: str) -> Path:
    """A site whose index lists two pages with these texts; a third page is in no list."""
    texts = {
        "README": "# Index\n\n## Start\n\n- [One](one.md)\n- [Two](two.md)",
        "one": "# One",
        "two": "# Two\n\n## End",
    }
    (root / "docs").mkdir(exist_ok=True)
    for name, text in (texts | pages).items():
        (root / "docs" / f"{name}.md").write_text(f"{text}\n")
    build(root, root / "build" / "site")
    return root / "build" / "site"


@pytest.mark.slow
def test_the_site_builds_and_nothing_in_it_comes_from_another_host(tmp_path: Path) -> None:
    out = tmp_path / "site"
    command = [sys.executable, "-m", "documentation.site", "--out", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    pages = list(out.rglob("*.html"))
    assert len(pages) > 80
    loaded = r"""<(?:script|img|iframe|source|link)\b[^>]*(?:src|href)=["'](?:https?:)?//[^"']*"""
    assert {found for page in pages for found in re.findall(loaded, page.read_text())} == set()
    elsewhere = re.compile(r"@import|url\(['\"]?(?:https?:)?//")
    assert {found for sheet in out.rglob("*.css") for found in elsewhere.findall(sheet.read_text())} == set()
    # Diagrams are tables, and no page shows a diagram's source.
    assert [page.name for page in pages if "language-mermaid" in page.read_text()] == []
    assert "<td><p>Running</p></td>\n<td><p>Degraded</p></td>\n<td><p>degraded</p></td>" in (out / STATES).read_text()


@pytest.mark.slow
def test_a_link_that_leads_nowhere_and_a_page_in_no_list_fail_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs/charts").mkdir(parents=True)
    links = "[a](three.md) [a](two.md#start) [a](#two) [a](../LICENSE) [a](../charts/) [a](#charts) ![a](none.svg)"
    with pytest.raises(SiteError) as error:
        made(tmp_path, one=f"# One\n\n{links}", four="# Four")

    said = str(error.value)
    for link in ("three.md", "#two", "../LICENSE", "../charts/", "#charts"):
        assert f"docs/one.md:3: WARNING: a link leads nowhere: {link}\n" in f"{said}\n"
    assert "docs/one.md:3: WARNING: local id not found in doc 'docs/two': 'start'" in said
    assert "docs/one.md:3: WARNING: image file not readable: docs/none.svg" in said
    assert "docs/four.md: WARNING: document isn't included in any toctree" in said


@pytest.mark.slow
def test_a_diagram_of_which_an_arrow_is_not_understood_fails_the_build(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="docs/one has a diagram that cannot be shown as a table"):
        made(tmp_path, one="# One\n\n```mermaid\nflowchart BT\n    a --> b\n    a -->|why| c\n```")
