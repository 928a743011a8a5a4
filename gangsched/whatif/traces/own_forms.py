"""Traces in gangsched's own forms, CSV and JSON; docs/replay.md describes them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from gangsched.whatif.traces.trace_checks import MOST_MEMBERS, MOST_SECONDS, Problems, amounts, distinct
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceError, TraceRole

_NEEDED = ("gang", "arrival", "run", "members")
COLUMNS = (*_NEEDED, "cpu", "memory", "gpu", "priority", "namespace", "role", "limit", "expected")
_RESOURCES = {"cpu": "cpu", "memory": "memory", "gpu": GPU}
_OTHERS = {name for name in COLUMNS if name not in _RESOURCES}
_REPEATED = ("arrival", "run", "priority", "limit", "expected")
_Seconds = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]
_Limit = Annotated[int, Meta(ge=1, le=int(MOST_SECONDS))]
_Count = Annotated[int, Meta(ge=1, le=MOST_MEMBERS)]
_Name = Annotated[str, Meta(min_length=1)]


class _Members(Struct, forbid_unknown_fields=True):
    count: _Count
    requests: dict[str, str | int | float] = {}
    role: str = ""

    def part(self) -> TraceRole:
        return TraceRole(self.count, amounts(self.requests), self.role)


class _Gang(Struct, forbid_unknown_fields=True):
    name: _Name
    arrival: _Seconds
    run: _Seconds
    members: Annotated[list[_Members], Meta(min_length=1)]
    namespace: _Name = "default"
    priority: int = 0
    limit: _Limit | None = None
    expected: _Seconds | None = None

    def gang(self) -> Gang:
        return Gang(
            name=self.name,
            namespace=self.namespace,
            arrival_s=self.arrival,
            run_s=self.run,
            parts=distinct(member.part() for member in self.members),
            priority=self.priority,
            limit_s=self.limit,
            expected_s=self.expected,
        )


class _Trace(Struct, forbid_unknown_fields=True):
    gangs: list[_Gang]


def from_json(text: str, source: str) -> Trace:
    """The trace in this JSON document."""
    try:
        document = msgspec.json.decode(text, type=_Trace)
    except msgspec.DecodeError as error:
        raise TraceError([f"{source}: {error}: docs/replay.md describes the form"]) from None
    gangs = []
    problems = Problems()
    for number, entry in enumerate(document.gangs):
        with problems.at(f"{source}: gangs[{number}]"):
            gangs.append(entry.gang())
    problems.end()
    return Trace(gangs)


def from_csv(text: str, source: str) -> Trace:
    """The trace in this table: each line is a part of a gang; lines of the same name and namespace form one gang."""
    rows = csv.DictReader(StringIO(text))
    columns = rows.fieldnames or ()
    missing = [name for name in _NEEDED if name not in columns]
    unknown = [name for name in columns if name not in COLUMNS and "/" not in name]
    if missing or unknown:
        faults = [f"lacks the columns {', '.join(missing)}"] if missing else []
        faults += [f"has the unknown columns {', '.join(unknown)}"] if unknown else []
        allowed = f"the columns are {', '.join(COLUMNS)} and names of resources, which contain a slash"
        raise TraceError([f"{source}: its first line {' and '.join(faults)}: {allowed}"])
    gangs: dict[tuple[str, str], _Gang] = {}
    problems = Problems()
    for number, row in enumerate(rows, start=2):
        with problems.at(f"{source}, line {number}"):
            if None in row or None in row.values():
                raise ValueError(f"does not have {len(columns)} values like the first line: write one for each column")
            line = _read_line(row)
            gang = gangs.setdefault((line.namespace, line.name), line)
            if gang is not line:
                if differing := [name for name in _REPEATED if getattr(gang, name) != getattr(line, name)]:
                    raise ValueError(f"differs from the gang's first line in {', '.join(differing)}: write the same")
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
