"""The tables of docs/reasons.md: each reason, its meaning, what to do about it, and an example of the gallery."""

from __future__ import annotations

import re
from pathlib import Path

from documentation.docstrings import members
from documentation.filling import put
from documentation.waiting import KINDS
from gangsched.core.objects.reasons import NodeReason, Reason

PAGE = Path("docs/reasons.md")
GALLERY = Path("docs/why-pending.md")
_SOURCE = "gangsched/core/objects/reasons.py"


def with_tables(root: Path, page: str) -> str:
    """The page with its two tables, each after a comment that names it.

    Raises:
        ValueError: a reason does not say what to do about it.
    """
    gallery = (root / GALLERY).read_text(encoding="utf-8")
    of_groups = [
        f"<!-- Table of reasons, made by make docs from {_SOURCE} -->",
        "",
        "| Reason | What it means | What to do | Examples |",
        "|---|---|---|---|",
    ]
    for reason, text in members(Reason):
        meaning, _, action = text.partition(" Do: ")
        if not action:
            raise ValueError(f"{reason} does not say what to do: add a paragraph to its docstring that begins with Do:")
        titles = [kind.title for kind in KINDS if kind.reason == reason]
        of_groups.append(f"| `{reason}` | {_linked(meaning)} | {_linked(action)} | {_examples(titles)} |")
    of_nodes = [
        f"<!-- Table of reasons of nodes, made by make docs from {_SOURCE} -->",
        "",
        "| Reason | What it means | Examples |",
        "|---|---|---|",
    ]
    for reason, text in members(NodeReason):
        titles = [title for title, shown in _explained(gallery).items() if re.search(rf"\b{reason}\b", shown)]
        of_nodes.append(f"| `{reason}` | {_linked(text)} | {_examples(titles)} |")
    page = put(r"<!-- Table of reasons, .*\n\n(\|.*\n)*", "\n".join([*of_groups, ""]), page)
    return put(r"<!-- Table of reasons of nodes, .*\n\n(\|.*\n)*", "\n".join([*of_nodes, ""]), page)


def _explained(gallery: str) -> dict[str, str]:
    """What `gangsched explain` prints of the nodes in each example of the gallery, by the example's title."""
    sections = (section.partition("\n") for section in gallery.split("\n## ")[1:])
    return {title: "\n".join(re.findall(r"^ +nodes .*", shown, flags=re.MULTILINE)) for title, _, shown in sections}


def _examples(titles: list[str]) -> str:
    return ", ".join(f"[{title}]({GALLERY.name}#{title.lower().replace(' ', '-')})" for title in titles)


def _linked(text: str) -> str:
    """The text with a link for each page of docs/ that it names."""
    return re.sub(r"\bdocs/([\w/-]+\.md(?:#[\w-]+)?)", r"[docs/\1](\1)", text)
