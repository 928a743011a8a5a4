"""Writes the generated files: pages of docs/, the CRD, parts of the chart, and manifests/ from the chart.

`python -m documentation.generate` (make docs) writes them. A test compares them with the code.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic.fields import FieldInfo

from documentation import (
    chart,
    comparison,
    dialects,
    evidence,
    fidelity,
    gangs,
    inclusions,
    limits,
    manifests,
    matrix,
    monitoring,
    pictures,
    podgroup,
    reasons,
    rooms,
    security,
    simulated,
    sizing,
    tested,
    walk,
)
from documentation.docstrings import documented, members
from documentation.mistakes import table as mistakes
from gangsched.api.custom_resource import crd_yaml
from gangsched.cli import make_parser
from gangsched.config.part import SettingsPart, part_of
from gangsched.config.settings import Settings
from gangsched.core.gang import life, states
from gangsched.core.objects.record import Phase
from gangsched.runtime.metrics import describe

ROOT = Path(__file__).resolve().parent.parent
_GROUPED = {"Waiting": states.WAITING, "Placed": states.PLACED}
_FILLED: dict[Path, Callable[[str], str]] = {
    Path("charts/gangsched/values.yaml"): lambda values: gangs.with_default(dialects.with_default(values)),
    Path("docs/architecture.md"): walk.with_drawings,
    Path("docs/dialects.md"): dialects.with_tables,
    Path("docs/gangs.md"): gangs.with_table,
    Path("docs/migrate/palantir.md"): dialects.with_all_named,
    Path("docs/security.md"): security.with_tables,
    **dict.fromkeys(simulated.PAGES, lambda text: simulated.with_examples(ROOT, text)),
    reasons.PAGE: lambda text: reasons.with_tables(ROOT, text),
    matrix.PAGE: lambda text: matrix.page(ROOT, text),
    sizing.PAGE: lambda text: sizing.with_tables(ROOT, text),
    comparison.PAGE: lambda text: comparison.with_all(ROOT, text),
    comparison.README: lambda text: comparison.with_some(ROOT, text),
    tested.PAGE: lambda text: tested.with_table(ROOT, text),
}
"""Files that are only partly generated; the rest is written by hand."""
_NOTE = "<!-- Generated from the code by make docs: change the code, not this page. -->\n\n"


def pages() -> dict[Path, str]:
    """The path, relative to the repository, and the content of every file with generated parts."""
    return {
        Path("crds/gangsched.io_podgroups.yaml"): crd_yaml(),
        Path("charts/gangsched/files/gangsched.io_podgroups.yaml"): crd_yaml(),
        Path("charts/gangsched/values.schema.json"): chart.values_schema(),
        Path("charts/gangsched/files/dialects.yaml"): dialects.rights(),
        Path("charts/gangsched/files/workloads.yaml"): gangs.rights(),
        Path("charts/gangsched/files/alerts.yaml"): monitoring.alerts(),
        Path("charts/gangsched/files/dashboard.json"): monitoring.dashboard(),
        tested.NOTES: tested.notes(ROOT),
        Path(monitoring.RUNBOOK): _NOTE + monitoring.runbook(),
        Path("docs/states.md"): _NOTE + _states(),
        Path("docs/metrics.md"): _NOTE + _metrics(),
        Path("docs/configuration.md"): _NOTE + _configuration(),
        Path("docs/cli.md"): _NOTE + _cli(),
        Path("docs/podgroup.md"): _NOTE + podgroup.page(),
        Path("docs/limits.md"): _NOTE + limits.page(),
        Path("docs/rooms.md"): _NOTE + rooms.page(),
        evidence.PAGE: evidence.page(ROOT),
        Path("docs/fidelity.md"): _NOTE + fidelity.page(ROOT),
        Path("docs/mistakes.md"): _NOTE + mistakes.page(),
        Path("docs/adr/README.md"): _decisions(),
        **pictures.pages(),
        **{
            path: fill((ROOT / path).read_text(encoding="utf-8"))
            for path, fill in (*inclusions.pages(ROOT), *_FILLED.items())
        },
    }


def main() -> None:
    """Write all pages, then the manifests that helm renders; helm validates against the newly written schema."""
    for made in (pages, manifests.pages):
        for path, text in made().items():
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text, encoding="utf-8")
            print(path)


def _states() -> str:
    lines = [
        "# The life cycle of a group",
        "",
        "This page lists the phases of a PodGroup (`status.phase`):",
        "",
    ]
    lines += [f"- **{phase}**: {text}" for phase, text in members(Phase)]
    lines += ["", "The conditions of the transitions, derived from the state of the cluster after every event:", ""]
    lines += [f"- **{name}**: {text}" for name, text in documented(states.Facts)]
    lines += ["", "```mermaid", "stateDiagram-v2", "    [*] --> Pending"]
    for name, phases in _GROUPED.items():
        lines += [f"    state {name} {{", *(f"        {phase}" for phase in phases), "    }"]
    steps: dict[tuple[str, str], list[str]] = {}
    for row in states.TABLE:
        fact = f"not {row.fact}" if row.unless else row.fact
        for start in _together(row.starts):
            steps.setdefault((start, row.then.value), []).append(fact)
    steps["Failed", "Pending"] = ["neither failed_for_good nor ended_badly"]
    lines += [f"    {start} --> {then}: {' or '.join(facts)}" for (start, then), facts in steps.items()]
    lines += [
        "```",
        "",
        "These conditions follow from the members, the bindings and the record of the group, which is `status.record`",
        "and the fields beside it. At each turn of a group the rows below are looked at from the top, and the step of",
        "each row is taken whose fact is true. That is repeated until none is. A row is for groups whose quorum is not",
        "bound yet (waiting), was bound (scheduled), or both.",
        "",
        "| fact | groups | true if | step |",
        "|---|---|---|---|",
    ]
    for about, _, rows in life.TABLE:
        lines.append(f"| **{about}** | | | |")
        lines += [f"| {name} | {stage} | {_told(fact)} | {_told(step)} |" for name, fact, step, stage, _ in rows]
    return "\n".join([*lines, ""])


def _told(function: Callable[..., object]) -> str:
    """The first line of the function's docstring, without its full stop."""
    said = (inspect.getdoc(function) or "").splitlines()[0].removesuffix(".")
    return said.removeprefix("Whether ")


def _decisions() -> str:
    note = "<!-- Generated from the titles of these pages by make docs. -->"
    lines = [
        note,
        "",
        "# Decisions",
        "",
        "Design decisions, each on half a page. A page begins with the problem, the decision and its price, a sentence",
        "each, and with the decision that supersedes it, if any; the details follow.",
        "",
    ]
    for page in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md")):
        text = page.read_text(encoding="utf-8")
        number, _, title = text.partition("\n")[0].removeprefix("# ").partition(". ")
        later = re.search(r"^\*Superseded by \[ADR (\d+)\]", text, flags=re.MULTILINE)
        lines.append(f"- {number}: [{title}]({page.name}){f', superseded by {later.group(1)}' if later else ''}")
    return "\n".join([*lines, ""])


def _together(starts: Sequence[Phase]) -> Iterator[str]:
    """The start phases of a step; a complete group of phases is replaced by its name."""
    left = list(starts)
    for name, phases in _GROUPED.items():
        if set(phases) <= set(left):
            left = [phase for phase in left if phase not in phases]
            yield name
    yield from left


def _metrics() -> str:
    lines = [
        "# Metrics",
        "",
        "This page lists all metrics. The operator serves them on `/metrics` of the address in `--listen`.",
        "",
        "| metric | type | labels | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{metric.name}` | {metric.type} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
        for metric in describe()
    ]
    return "\n".join([*lines, ""])


def _configuration() -> str:
    lines = [
        "# Configuration",
        "",
        "This page lists the keys of the YAML file for `gangsched run --config`. Command-line options override it;",
        "an unknown key is an error. The chart's value `config` takes the same keys except `listen`, `logFormat`,",
        "`dialects` and `workloads`. helm rejects unknown keys and most invalid values there; the operator rejects the",
        "others when it starts, such as a duration above 168h or values that contradict each other.",
        "",
        "| key | default | meaning |",
        "|---|---|---|",
        *_fields(Settings),
    ]
    return "\n".join([*lines, ""])


def _fields(part: type[SettingsPart], prefix: str = "") -> Iterator[str]:
    for name, field in part.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = part_of(field.annotation)
        if inner is None or field.annotation is not inner:
            yield f"| `{key}` |{_default(field)}| {field.description} |"
        if inner is not None:
            yield from _fields(inner, f"{key}.")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return " required "
    default = field.get_default(call_default_factory=True, validated_data={})
    shown = ", ".join(default) if isinstance(default, tuple) else default
    return " " if shown in ("", None) else f" `{shown}` "


def _cli() -> str:
    parser = make_parser()
    intro = "This page shows the help of every command."
    parts = ["# The command line", "", intro, "", _block(parser)]
    for action in parser._actions:  # noqa: SLF001 - argparse has no public list of sub-commands
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, command in action.choices.items():
                parts += [f"## gangsched {name}", "", _block(command)]
    return "\n".join(parts)


def _block(parser: argparse.ArgumentParser) -> str:
    # The committed text must not depend on the terminal's width and colours.
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=100)
    return f"```\n{parser.format_help()}```\n"


if __name__ == "__main__":
    main()
