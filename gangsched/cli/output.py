"""The output of commands: tables that fit the terminal, JSON, YAML, names and colours. Hostile text is escaped."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from gangsched.core.objects.wording import printable, shortened

JSON, YAML, WIDE, NAME = "json", "yaml", "wide", "name"
NARROWEST, USUAL, WIDEST = 60, 80, 120
UNWRAPPED = 1 << 20
"""The width of output that does not go to a terminal: each sentence stays on one line, where programs can find it."""

_HIDDEN = re.compile(r"[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON permits unescaped, but that a terminal obeys or that change the order of the text."""
_LEAST_OF_LAST, _LEAST_OF_OTHERS = 12, 4
_GREEN, _YELLOW, _RED, _PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
_COLOURS = {
    **dict.fromkeys(("Scheduled", "Running", "Succeeded"), _GREEN),
    **dict.fromkeys(("Pending", "Queued", "Reserved", "Binding", "TimedOut"), _YELLOW),
    **dict.fromkeys(("Degraded", "Failed"), _RED),
}


def add_output(parser: argparse.ArgumentParser, *forms: str, of_json: bool = True) -> None:
    """Add -o with these forms and, with `of_json`, its synonym --json."""
    parser.add_argument("-o", "--output", metavar="FORM", choices=forms, help=f"output format: {', '.join(forms)}")
    if of_json:
        parser.add_argument("--json", dest="output", action="store_const", const=JSON, help="the same as -o json")


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Add -w."""
    parser.add_argument("-w", "--watch", action="store_true", help="keep running and print changes until Ctrl-C")


def shown(text: str) -> str:
    """The text for a person: control characters and characters that change the writing direction are escaped."""
    return printable(text, limit=UNWRAPPED)


def structured(form: str, value: object, *, many: bool = False) -> str:
    """The value as JSON or YAML, without a line feed at its end; `many`: as one of several documents."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if form == YAML:
        import yaml  # noqa: PLC0415 - only this form needs it

        written = yaml.safe_dump(
            json.loads(text), sort_keys=False, allow_unicode=not _HIDDEN.search(text), explicit_start=many
        )
        return str(written).rstrip("\n")
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def columns(stream: TextIO | None = None) -> int:
    """The maximum width of lines on this stream, by default standard output."""
    if not (stream or sys.stdout).isatty():
        return UNWRAPPED
    return min(max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST), WIDEST)


def width_of(arguments: argparse.Namespace) -> int:
    """The maximum width of the lines of a command's output."""
    return UNWRAPPED if arguments.output == WIDE else columns()


def controllable(stream: TextIO | None = None) -> bool:
    """Whether this stream, by default standard output, is a terminal that understands control sequences."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def colourful(stream: TextIO | None = None) -> bool:
    """Whether this stream, by default standard output, is to have colours."""
    return controllable(stream) and not os.environ.get("NO_COLOR")


def painted(text: str, phase: str) -> str:
    """The text in the colour of the phase, if standard output is to have colours."""
    colour = _COLOURS.get(phase)
    return f"{colour}{text}{_PLAIN}" if colour is not None and colourful() else text


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    width: int = UNWRAPPED,
    phase: int | None = None,
    headed: bool = True,
) -> Iterator[str]:
    """The lines of a table that fit `width`: the last column is cut first, then the widest of the others.

    The column `phase` is coloured.
    """
    cells = [heads, *([shown(cell) for cell in row] for row in rows)]
    last = len(heads) - 1
    sizes = [max(len(row[column]) for row in cells) for column in range(last)]
    between = 3 * last
    while sizes and sum(sizes) + between + _LEAST_OF_LAST > width and max(sizes) > _LEAST_OF_OTHERS:
        sizes[sizes.index(max(sizes))] -= 1
    room = max(width - sum(sizes) - between, 1)
    for number, row in enumerate(cells if headed else cells[1:]):
        padded = [shortened(cell, size).ljust(size) for cell, size in zip(row, sizes, strict=False)]
        if phase is not None and (number or not headed):
            word = padded[phase].rstrip()
            padded[phase] = painted(word, row[phase]) + padded[phase][len(word) :]
        yield "   ".join([*padded, shortened(row[last], room)]).rstrip()


def wrapped(text: str, width: int, *, head: str) -> list[str]:
    """Lines of at most this width, unless a single word is longer. The first one begins with `head`."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=" " * (len(head) + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def ago(seconds: float) -> str:
    """A duration in at most two units, as kubectl shows an age."""
    left = max(0, round(seconds))
    for unit, size, finer, fine in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if left >= 2 * size or (unit == "d" and left >= size):
            more = left % size // fine
            exact = left < 10 * size and more
            return f"{left // size}{unit}{more}{finer}" if exact else f"{left // size}{unit}"
    return f"{left}s"
