"""Reads a trace in any known form; docs/replay.md describes the forms."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import replace

from gangsched.whatif.traces.job_logs import from_acme, from_helios
from gangsched.whatif.traces.openb import from_openb
from gangsched.whatif.traces.own_forms import from_csv, from_json
from gangsched.whatif.traces.pai import from_pai
from gangsched.whatif.traces.philly import from_philly
from gangsched.whatif.traces.swf import from_swf
from gangsched.whatif.traces.trace_values import Trace, TraceError

FORMS: Mapping[str, Callable[[str, str], Trace]] = {
    "csv": from_csv,
    "json": from_json,
    "swf": from_swf,
    "pai": from_pai,
    "openb": from_openb,
    "helios": from_helios,
    "acme": from_acme,
    "philly": from_philly,
}
"""The function that reads each form."""


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
        raise TraceError([f"{source}: has no gang: write at least one", *trace.remarks])
    first = min(gang.arrival_s for gang in trace.gangs)
    moved = [replace(gang, arrival_s=gang.arrival_s - first) for gang in trace.gangs]
    return Trace(sorted(moved, key=lambda gang: (gang.arrival_s, gang.namespace, gang.name)), trace.remarks)


def form_of(name: str) -> str:
    """The default form of a file of this name."""
    return next((form for form in ("json", "swf") if name.endswith(f".{form}")), "csv")
