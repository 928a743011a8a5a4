"""Traces of gangs, each with its arrival and run time. They are read from CSV, JSON or a public trace.

docs/replay.md describes the forms.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Annotated, Self

import msgspec
from msgspec import Meta, Struct

from gangsched.core.objects.quantity import InvalidQuantity, amount
from gangsched.core.objects.shape import Amounts

GPU = "nvidia.com/gpu"
_COLUMNS = ("gang", "arrival", "run", "members", "cpu", "memory", "gpu", "priority", "namespace", "role")
_NEEDED = ("gang", "arrival", "run", "members")
_RESOURCES = {"cpu": "cpu", "memory": "memory", "gpu": GPU}
_OTHERS = {name for name in _COLUMNS if name not in _RESOURCES}
_SHOWN = 20
_PAI = (
    *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
    *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
)


class TraceError(ValueError):
    """The trace cannot be used. Each of `problems` is a sentence with its place."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class TraceRole:
    """`members` identical members of a gang, the requests of each, and their role, empty if they have none."""

    members: int
    requests: Amounts
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A gang of the trace: it arrives complete, `arrival_s` after the start, and ends `run_s` after it was bound."""

    name: str
    namespace: str = "default"
    arrival_s: float
    run_s: float
    parts: tuple[TraceRole, ...]
    priority: int = 0

    @property
    def members(self) -> int:
        """The number of members."""
        return sum(part.members for part in self.parts)


@dataclass(frozen=True, slots=True)
class Trace:
    """The gangs in order of arrival; `remarks` say which parts of the source were left out or changed."""

    gangs: Sequence[Gang]
    remarks: Sequence[str] = ()


def read(text: str, source: str, form: str) -> Trace:
    """The trace in this text; `form` is one of `FORMS`, and `source` names the text in messages.

    Raises:
        TraceError: the text has another form, or impossible values.
    """
    try:
        trace = FORMS[form](text, source)
    except (csv.Error, RecursionError) as error:
        raise TraceError([f"{source}: cannot be read ({error}): docs/replay.md describes the forms"]) from None
    if not trace.gangs:
        raise TraceError([f"{source}: has no gang: write at least one"])
    first = min(gang.arrival_s for gang in trace.gangs)
    moved = [
        Gang(
            name=gang.name,
            namespace=gang.namespace,
            arrival_s=gang.arrival_s - first,
            run_s=gang.run_s,
            parts=gang.parts,
            priority=gang.priority,
        )
        for gang in trace.gangs
    ]
    return Trace(sorted(moved, key=lambda gang: (gang.arrival_s, gang.namespace, gang.name)), trace.remarks)


def form_of(name: str) -> str:
    """The default form of a file of this name."""
    return "json" if name.endswith(".json") else "csv"


# CSV and JSON


_Seconds = Annotated[float, Meta(ge=0, le=1e12)]
_MOST_MEMBERS = 100_000
_Count = Annotated[int, Meta(ge=1, le=_MOST_MEMBERS)]
_Name = Annotated[str, Meta(min_length=1)]


class _Members(Struct, forbid_unknown_fields=True):
    count: _Count
    requests: dict[str, str | int | float] = {}
    role: str = ""

    def part(self) -> TraceRole:
        return TraceRole(self.count, _amounts(self.requests), self.role)


class _Gang(Struct, forbid_unknown_fields=True):
    name: _Name
    arrival: _Seconds
    run: _Seconds
    members: Annotated[list[_Members], Meta(min_length=1)]
    namespace: _Name = "default"
    priority: int = 0

    def gang(self) -> Gang:
        return Gang(
            name=self.name,
            namespace=self.namespace,
            arrival_s=self.arrival,
            run_s=self.run,
            parts=_distinct(member.part() for member in self.members),
            priority=self.priority,
        )


class _Trace(Struct, forbid_unknown_fields=True):
    gangs: list[_Gang]


def _from_json(text: str, source: str) -> Trace:
    try:
        document = msgspec.json.decode(text, type=_Trace)
    except msgspec.DecodeError as error:
        raise TraceError([f"{source}: {error}: docs/replay.md describes the form"]) from None
    gangs = []
    problems = _Problems()
    for number, entry in enumerate(document.gangs):
        with problems.at(f"{source}: gangs[{number}]"):
            gangs.append(entry.gang())
    problems.end()
    return Trace(gangs)


def _from_csv(text: str, source: str) -> Trace:
    """Each line is a part of a gang; lines of the same name and namespace form one gang."""
    rows = csv.DictReader(StringIO(text))
    columns = rows.fieldnames or ()
    missing = [name for name in _NEEDED if name not in columns]
    unknown = [name for name in columns if name not in _COLUMNS and "/" not in name]
    if missing or unknown:
        faults = [f"lacks the columns {', '.join(missing)}"] if missing else []
        faults += [f"has the unknown columns {', '.join(unknown)}"] if unknown else []
        allowed = f"the columns are {', '.join(_COLUMNS)} and names of resources, which contain a slash"
        raise TraceError([f"{source}: its first line {' and '.join(faults)}: {allowed}"])
    gangs: dict[tuple[str, str], _Gang] = {}
    problems = _Problems()
    for number, row in enumerate(rows, start=2):
        with problems.at(f"{source}, line {number}"):
            if None in row or None in row.values():
                raise ValueError(f"does not have {len(columns)} values like the first line: write one for each column")
            line = _read_line(row)
            gang = gangs.setdefault((line.namespace, line.name), line)
            if gang is not line:
                if (gang.arrival, gang.run, gang.priority) != (line.arrival, line.run, line.priority):
                    raise ValueError("differs from the gang's first line in arrival, run or priority: write the same")
                gang.members += line.members
    parsed = []
    for gang in gangs.values():
        with problems.at(f"{source}: gang {gang.namespace}/{gang.name}"):
            parsed.append(gang.gang())
    problems.end()
    return Trace(parsed)


def _read_line(row: Mapping[str, str]) -> _Gang:
    values = {name: text for name, text in row.items() if text}
    requests = {_RESOURCES.get(name, name): values.pop(name) for name in row if name in values and name not in _OTHERS}
    part = {"count": values.pop("members", ""), "role": values.pop("role", ""), "requests": requests}
    body = {**values, "name": values.pop("gang", ""), "members": [part]}
    body.pop("gang", None)
    try:
        return msgspec.convert(body, _Gang, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}: docs/replay.md describes the columns") from None


# Alibaba


def _from_pai(text: str, source: str) -> Trace:
    """The table of tasks of Alibaba's cluster-trace-gpu-v2020: a job is a gang, and each of its tasks a role.

    The table has no header. CPUs and GPUs are in percent, memory in GB. A gang arrives when its first task was started,
    because the table does not say when it was submitted, and runs until its last task ended. A fraction of a GPU counts
    as a whole one. Source: the README of that trace in the repository alibaba/clusterdata, which describes the columns.
    """
    jobs: dict[str, list[Mapping[str, str]]] = {}
    problems = _Problems()
    for number, row in enumerate(csv.reader(StringIO(text)), start=1):
        with problems.at(f"{source}, line {number}"):
            if len(row) != len(_PAI):
                raise ValueError(f"has {len(row)} values, and pai_task_table has {len(_PAI)}: give that table")
            if row[0] != _PAI[0]:
                jobs.setdefault(row[0], []).append(dict(zip(_PAI, row, strict=True)))
    problems.end()
    gangs, unfinished, shared = [], 0, 0
    for name, tasks in jobs.items():
        with problems.at(f"{source}: job {name}"):
            if any(not (task["start_time"] and task["end_time"] and task["inst_num"]) for task in tasks):
                unfinished += 1
                continue
            began = min(_within(task, "start_time", 1e12) for task in tasks)
            ended = max(_within(task, "end_time", 1e12) for task in tasks)
            shared += any(_within(task, "plan_gpu", 1e9) % 100 for task in tasks)
            parts = _distinct(_pai_part(task) for task in tasks)
            gangs.append(Gang(name=name, arrival_s=began, run_s=max(ended - began, 0.0), parts=parts))
    problems.end()
    remarks = [f"{source}: {unfinished} jobs without a start, an end or instances are left out"] if unfinished else []
    remarks += [f"{source}: {shared} jobs request a fraction of a GPU, and get a whole one here"] if shared else []
    return Trace(gangs, remarks)


def _pai_part(task: Mapping[str, str]) -> TraceRole:
    requests: dict[str, str | int | float] = {
        "cpu": f"{_within(task, 'plan_cpu', 1e9) * 10:.0f}m",
        "memory": f"{_within(task, 'plan_mem', 1e9) * 10**9:.0f}",
        GPU: math.ceil(_within(task, "plan_gpu", 1e9) / 100),
    }
    members = max(1, round(_within(task, "inst_num", _MOST_MEMBERS)))
    return TraceRole(members, _amounts(requests), task["task_name"].lower())


def _within(task: Mapping[str, str], column: str, most: float) -> float:
    """The number in that column, 0 if it is empty.

    Raises:
        ValueError: it is no number from 0 to `most`, which neither infinity nor `nan` is.
    """
    value = float(task[column] or 0)
    if not 0 <= value <= most:
        raise ValueError(f"{column} is {task[column]!r}: write a number from 0 to {most:.0f}")
    return value


FORMS: Mapping[str, Callable[[str, str], Trace]] = {"csv": _from_csv, "json": _from_json, "pai": _from_pai}
"""The function that reads each form."""


# Values


class _Problems:
    """Collects the mistakes in the parts of a trace, so that all are reported at once."""

    def __init__(self) -> None:
        self._problems: list[str] = []
        self._where = ""

    def at(self, place: str) -> Self:
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
        if self._problems:
            more = len(self._problems) - _SHOWN
            raise TraceError([*self._problems[:_SHOWN], *([f"and {more} more mistakes"] if more > 0 else [])])


def _distinct(parts: Iterable[TraceRole]) -> tuple[TraceRole, ...]:
    roles = tuple(parts)
    if len(roles) > 1 and len({part.role for part in roles}) < len(roles):
        raise ValueError("its parts have no role or the same role: give each a role of its own")
    return roles


def _amounts(requests: Mapping[str, str | int | float]) -> Amounts:
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
