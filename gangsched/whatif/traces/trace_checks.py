"""What the readers of traces share: numbers, times and tables, and the mistakes in them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Self

from gangsched.core.objects.quantity import InvalidQuantity, amount
from gangsched.core.objects.shape import Amounts
from gangsched.whatif.traces.trace_values import TraceError, TraceRole

MOST_SECONDS = 1e12
MOST_MEMBERS = 100_000
MOST_UNITS = 1e9
"""The limit of amounts in a public trace: of CPUs, GPUs and memory in its own units."""
_SHOWN = 20
_ABSENT = frozenset(("", "none", "nan", "nat"))


class Problems:
    """Collects the mistakes in the parts of a trace, so that all are reported at once."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._where = ""

    def at(self, place: str) -> Self:
        """The place of the mistakes in the following block."""
        self._where = place
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, ValueError):
            self._problems.append(f"{self._where}: {error}")
            return True
        return False

    def end(self) -> None:
        """Raise the mistakes, if there are any."""
        if self._problems:
            more = len(self._problems) - _SHOWN
            raise TraceError([*self._problems[:_SHOWN], *([f"and {more} more mistakes"] if more > 0 else [])])


def distinct(parts: Iterable[TraceRole]) -> tuple[TraceRole, ...]:
    """The parts of a gang.

    Raises:
        ValueError: there are several, and not each has a role of its own.
    """
    roles = tuple(parts)
    if len(roles) > 1 and len({part.role for part in roles}) < len(roles):
        raise ValueError("its parts have no role or the same role: give each a role of its own")
    return roles


def amounts(requests: Mapping[str, str | int | float]) -> Amounts:
    """The requests that are not 0.

    Raises:
        ValueError: one is no quantity, or negative.
    """
    pairs = ((name, _amount(name, text)) for name, text in requests.items())
    return tuple(sorted((name, size) for name, size in pairs if size))


def _amount(resource: str, text: str | float) -> int:
    try:
        size = amount(resource, text)
    except InvalidQuantity as error:
        raise ValueError(f"{resource}: {error}") from None
    if size < 0:
        raise ValueError(f"{resource} is {text!r}: write a quantity of at least 0")
    return size


def is_absent(text: str | None) -> bool:
    """Whether a value is missing in a table: it is empty, or what pandas and Python write for that."""
    return text is None or text.strip().lower() in _ABSENT


def number_within(text: str, name: str, most: float, *, least: float = 0) -> float:
    """The number, 0 if the text is empty; `name` is that of its column.

    Raises:
        ValueError: it is no number from `least` to `most`, which neither infinity nor `nan` is.
    """
    try:
        value = float(text or 0)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise ValueError(f"{name} is {text!r}: write a number from {least:.0f} to {most:.0f}")
    return value


def cell(row: Mapping[str, str], column: str, most: float) -> float:
    """The number in this column of a table; 0 if it is missing. Raises the same error as `number_within`."""
    return 0.0 if is_absent(row[column]) else number_within(row[column], column, most)


def moment(text: str, name: str) -> float:
    """The date and time in epoch seconds; without a zone it counts as UTC.

    Raises:
        ValueError: it is no date and time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}: write a date and time, such as 2020-06-09 18:41:01") from None
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def table(text: str, source: str, needed: Sequence[str]) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The rows of a CSV table whose first line names the columns, each with its place.

    A row with too few values has None for some of them, which `complete` refuses.

    Raises:
        TraceError: a needed column is missing.
    """
    rows = csv.DictReader(StringIO(text))
    if missing := [name for name in needed if name not in (rows.fieldnames or ())]:
        raise TraceError([f"{source}: its first line lacks the columns {', '.join(missing)}: give the original table"])
    for number, row in enumerate(rows, start=2):
        yield f"{source}, line {number}", row


def complete(row: Mapping[str, str]) -> Mapping[str, str]:
    """The row.

    Raises:
        ValueError: it has more or fewer values than there are columns.
    """
    if None in row or None in row.values():
        raise ValueError("does not have as many values as the first line: write one for each column")
    return row


def remark(source: str, number: int, clause: str) -> list[str]:
    """A remark that says how many of the source are meant, none if there are none."""
    return [f"{source}: {number} {clause}"] if number else []
