"""Common mistakes: the input, the place where the message appears, and the message, which names the remedy.

tests/integration/test_mistakes.py plays each row, and docs/mistakes.md shows it.
"""

from __future__ import annotations

from documentation.mistakes.commands import charts, commands
from documentation.mistakes.groups import declared, refused
from documentation.mistakes.pods import made, placed
from documentation.mistakes.row import Mistake, Where

MISTAKES: dict[str, Mistake] = {
    what: mistake for rows in (declared, refused, made, placed, commands, charts) for what, mistake in rows()
}
"""All rows, by the description of the mistake."""
UNINSTALLED = Mistake(
    group="j",
    told={
        Where.EXPLAIN: "No operator leads: the Lease {namespace}/gangsched-of-mistakes has had no holder since …; "
        "look at the operator's pods and their logs, or install gangsched again if it was uninstalled.",
    },
)
"""gangsched is uninstalled while a group waits: the group's status stays as last written."""


def page() -> str:
    """docs/mistakes.md."""
    lines = [
        "# Common mistakes",
        "",
        "This page lists common mistakes and the message that reports each. Every row was tested on a real API server.",
        "`…` stands for any text, names in capitals for any name.",
        "",
        "| mistake | where the message appears | message |",
        "|---|---|---|",
    ]
    uninstalled = "gangsched uninstalled while a group waits, whose status stays"
    for what, row in (*MISTAKES.items(), (uninstalled, UNINSTALLED)):
        places: dict[str, list[str]] = {}
        for where, sentence in row.told.items():
            places.setdefault(_shown(sentence), []).append(where)
        lines += [f"| {what} | {', '.join(where)} | {sentence} |" for sentence, where in places.items()]
    return "\n".join([*lines, ""])


def _shown(sentence: str) -> str:
    for name, shown in (("{namespace}", "NAMESPACE"), ("{elsewhere}", "NAMESPACE")):
        sentence = sentence.replace(name, shown)
    return sentence.replace("|", "\\|")
