"""What newcomers do wrong: what is given, where the answer appears, and the sentence, which names the remedy.

One table: tests/integration/test_mistakes.py plays each row, docs/mistakes.md shows it.
"""

from __future__ import annotations

from testbed.mistakes.commands import charts, commands
from testbed.mistakes.groups import declared, refused
from testbed.mistakes.pods import made, placed
from testbed.mistakes.row import Mistake, Where

MISTAKES: dict[str, Mistake] = {
    what: mistake for rows in (declared, refused, made, placed, commands, charts) for what, mistake in rows()
}
"""By what was done wrong."""
UNINSTALLED = Mistake(
    group="j",
    told={
        Where.EXPLAIN: "No operator leads: the Lease {namespace}/gangsched-of-mistakes has had no holder since …; "
        "look at the operator's pods and their logs, or install gangsched again if it was uninstalled.",
    },
)
"""Uninstalled while a group waits: its status stays as it was written last."""


def page() -> str:
    """docs/mistakes.md."""
    lines = [
        "# What newcomers do wrong, and what they are told",
        "",
        "Each row was played on a real API server. `…` stands for any text, capitals for names.",
        "",
        "| what was done | where it is told | what is told |",
        "|---|---|---|",
    ]
    for what, row in (*MISTAKES.items(), ("uninstalled while a group waits, whose status stays", UNINSTALLED)):
        places: dict[str, list[str]] = {}
        for where, sentence in row.told.items():
            places.setdefault(_shown(sentence), []).append(where)
        lines += [f"| {what} | {', '.join(where)} | {sentence} |" for sentence, where in places.items()]
    return "\n".join([*lines, ""])


def _shown(sentence: str) -> str:
    for name, shown in (("{namespace}", "NAMESPACE"), ("{elsewhere}", "NAMESPACE")):
        sentence = sentence.replace(name, shown)
    return sentence.replace("|", "\\|")
