"""The documentation site builds without a network, and a mistake in a page fails the build."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from documentation import site
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


def of_other_hosts(out: Path) -> set[str]:
    """What pages and style sheets load from elsewhere."""
    loaded = r"""<(?:script|img|iframe|source|link)\b[^>]*(?:src|href)=["'](?:https?:)?//[^"']*"""
    found = {each for page in out.rglob("*.html") for each in re.findall(loaded, page.read_text())}
    elsewhere = re.compile(r"@import|url\(['\"]?(?:https?:)?//")
    return found | {each for sheet in out.rglob("*.css") for each in elsewhere.findall(sheet.read_text())}


@pytest.mark.slow
def test_the_site_builds_and_nothing_in_it_comes_from_another_host(tmp_path: Path) -> None:
    """In a plain theme: that of the site spends most of the time on the navigation, which the next test has."""
    out = tmp_path / "site"
    build(ROOT, out, theme="basic")

    pages = list(out.rglob("*.html"))
    assert len(pages) > 80
    assert of_other_hosts(out) == set()
    # Diagrams are tables, and no page shows a diagram's source.
    assert [page.name for page in pages if "language-mermaid" in page.read_text()] == []
    assert "<td><p>Running</p></td>\n<td><p>Degraded</p></td>\n<td><p>degraded</p></td>" in (out / STATES).read_text()


@pytest.mark.slow
def test_the_index_is_the_navigation_and_the_theme_needs_no_other_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["site", "--out", str(tmp_path / "build" / "site")])
    monkeypatch.setattr(site, "build", lambda root, out: made(root) == out or pytest.fail("another folder"))

    assert site.main() == 0
    out = tmp_path / "build" / "site"
    assert of_other_hosts(out) == set()
    shown = (out / "docs" / "one.html").read_text()
    assert re.findall(r'caption-text">(\w+)', shown) == ["Start"]
    assert re.search(r'href="two.html">Two</a>', shown)


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
