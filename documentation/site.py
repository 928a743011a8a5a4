"""The documentation as a site: `python -m documentation.site` (make site) builds build/site from the pages.

The site has the same pages as the code forge; none is written for the site alone. docs/README.md lists them, and its
headings and lists are the site's navigation. Sphinx reads the pages with MyST. Any warning fails the build, such as a
broken link or anchor, or a page in no list. The built site loads nothing from another host.

The module is also a Sphinx extension (`setup`).
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import docutils_namespace, patch_docutils

ROOT = Path(__file__).resolve().parent.parent
INDEX = "docs/README"
SETTINGS: dict[str, Any] = {
    "project": "gangsched",
    "extensions": ["myst_parser", "documentation.site"],
    "root_doc": INDEX,
    "include_patterns": ["docs/**", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"],
    "exclude_patterns": [".*", "build", "dist", "**/__pycache__", "**/.*"],
    "source_suffix": {".md": "markdown"},
    # The same anchors of headings as on the forge.
    "myst_heading_anchors": 6,
    # Shortened examples are not valid JSON.
    "suppress_warnings": ["misc.highlighting_failure"],
    "html_theme": "furo",
    "html_title": "gangsched",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_copyright": False,
    "html_use_index": False,
}
_WITHIN = "within-page"
_LOG = logging.getLogger(__name__)
_PAGE = re.compile(r"\[([^\]]*)\]\(([^)#\s]+\.md)\)")
_ARROW = re.compile(r" +(\S.*?) ?-?->>? ?([^:|]+)(?:: (.*))?$")
_IMAGE = re.compile(r"""<(?:img|source)\b[^>]*\ssrc(?:set)?=["']([^"':]+)["']""")
_START = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>gangsched</title>
<meta http-equiv="refresh" content="0; url={index}"><link rel="canonical" href="{index}"></head>
<body><a href="{index}">gangsched</a></body></html>
"""


class SiteError(Exception):
    """The site was not built; the message has one line for each reason."""


def build(root: Path, out: Path, *, theme: str = SETTINGS["html_theme"]) -> None:
    """Build the site of this checkout; another theme than its own takes less time.

    Raises:
        SiteError: something is wrong with a page.
    """
    if (out / ".buildinfo").exists():  # Sphinx does not delete pages that no longer exist
        shutil.rmtree(out)
    told = io.StringIO()
    with patch_docutils(), docutils_namespace(), warnings.catch_warnings():
        # MyST's use of deprecated parts of Sphinx is not ours to fix.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        app = Sphinx(
            root,
            None,
            out,
            out.parent / f"{out.name}-doctrees",
            "html",
            confoverrides=SETTINGS | {"html_theme": theme},
            status=None,
            warning=told,
            freshenv=True,
            warningiserror=True,
        )
        app.build(force_all=True)
    found = [line.replace(f"{root}/", "") for line in _lines(told.getvalue())]
    if found or app.statuscode:
        raise SiteError("\n".join(found or ["Sphinx failed and did not say why"]))
    missing = list(_bring_images(root, out))
    if missing:
        raise SiteError("\n".join(missing))
    (out / "index.html").write_text(_START.format(index=f"{INDEX}.html"), encoding="utf-8")


def _bring_images(root: Path, out: Path) -> Iterator[str]:
    """Copy the images in the pages' raw HTML, which Sphinx leaves unchanged; yields those that do not exist."""
    for page in sorted(out.rglob("*.html")):
        for name in dict.fromkeys(_IMAGE.findall(page.read_text(encoding="utf-8"))):
            shown = page.parent / name
            if shown.exists():
                continue
            source = root / page.parent.relative_to(out) / name
            if source.is_file():
                shown.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, shown)
            else:
                yield f"{page.relative_to(out).with_suffix('.md')}: WARNING: image file not readable: {name}"


def navigation(index: str) -> dict[str, dict[str, str]]:
    """The pages that an index lists under each second-level heading, once each, with their titles there."""
    sections: dict[str, dict[str, str]] = {}
    seen: set[str] = set()
    for line in index.splitlines():
        if line.startswith("## "):
            pages: dict[str, str] = {}
            sections[line.removeprefix("## ").strip()] = pages
        elif sections:
            pages |= {page: name for name, page in _PAGE.findall(line) if page not in seen}
            seen |= pages.keys()
    return sections


def _lines(told: str) -> Iterator[str]:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", told)
    yield from (line for line in plain.splitlines() if line.strip())


def _with_navigation(_app: Sphinx, name: str, source: list[str]) -> None:
    """Append the toctrees, Sphinx's source of the navigation, to the pages that list others."""
    if name == INDEX:
        for caption, pages in navigation(source[0]).items():
            entries = [f"{title} <{page}>" for page, title in pages.items()]
            source[0] += _toctree([f":caption: {caption}"], entries)
    elif name.endswith("/README"):
        beside = dict.fromkeys(page for _, page in _PAGE.findall(source[0]) if "/" not in page)
        source[0] += _toctree([], list(beside))


def _toctree(options: Sequence[str], entries: Sequence[str]) -> str:
    return "\n\n" + "\n".join(["```{toctree}", ":hidden:", *options, "", *entries, "```"]) + "\n"


class _Diagrams(SphinxTransform):
    """Replaces a diagram, which a forge draws, with a table of its arrows: drawing it here would need the network."""

    default_priority = 500
    _HEADS: ClassVar[dict[str, str]] = {"sequenceDiagram": "calls", "flowchart": "imports", "stateDiagram-v2": "when"}

    def apply(self, **_: object) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") == "mermaid":
                block.replace_self(self._table(block.astext().splitlines()))

    def _table(self, lines: Sequence[str]) -> nodes.table:
        kind = lines[0].split()[0]
        arrows = [found.groups() for found in map(_ARROW.match, lines) if found]
        groups = re.findall(r"^    state (\w+) \{\n((?: {8}\w+\n)+)", "\n".join(lines), flags=re.MULTILINE)
        rows = [(start.replace("[*]", "start"), then, what or "") for start, then, what in arrows]
        rows += [(name, "is any of", ", ".join(members.split())) for name, members in groups]
        if not rows or len(arrows) != sum("->" in line for line in lines):
            raise ValueError(f"{self.env.docname} has a diagram that cannot be shown as a table: {kind}")
        return _table(["from", "to", self._HEADS[kind]], rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> nodes.table:
    used = [number for number in range(len(head)) if any(row[number] for row in rows)]
    group = nodes.tgroup(cols=len(used))
    group += [nodes.colspec(colwidth=1) for _ in used]
    group += nodes.thead("", _row([head[number] for number in used]))
    group += nodes.tbody("", *(_row([row[number] for number in used]) for row in rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


class _Anchors(SphinxTransform):
    """Marks links within their page, so that an unresolved one is not mistaken for a path later."""

    default_priority = 870  # before MyST resolves them

    def apply(self, **_: object) -> None:
        for link in self.document.findall(nodes.reference):
            if link.get("id_link"):
                link["classes"].append(_WITHIN)


class _Unresolved(SphinxPostTransform):
    """Handles links for which MyST finds no page or file: a folder keeps only its name, anything else is an error.

    MyST would otherwise search for anything of that name, and resolve `#two` to the page two.md.
    """

    default_priority = 5  # before MyST does

    def run(self, **_: object) -> None:
        for link in list(self.document.findall(pending_xref)):
            if link.get("reftype") == "myst" and not link.get("refdomain"):
                target, [shown] = link["reftarget"], link.children
                within = isinstance(shown, nodes.Element) and _WITHIN in shown["classes"]
                path = Path(self.env.relfn2path(target, self.env.docname)[1])
                if within or not path.is_dir():
                    _LOG.warning("a link leads nowhere: %s", f"#{target}" if within else target, location=link)
                link.replace_self(shown)


def setup(app: Sphinx) -> dict[str, bool]:
    """The entry point that Sphinx calls."""
    app.connect("source-read", _with_navigation)
    app.add_transform(_Diagrams)
    app.add_transform(_Anchors)
    app.add_post_transform(_Unresolved)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main() -> int:
    """The command line; prints each problem on standard error, one per line."""
    parser = argparse.ArgumentParser(
        prog="python -m documentation.site", description="Build the documentation as a site."
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="the folder (default: build/site)")
    out: Path = parser.parse_args().out.resolve()
    try:
        build(ROOT, out)
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    print(out / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
