"""Log lines: one line per record, as text or JSON. Input from the cluster cannot forge a line.

A record is a fixed sentence followed by the values of `extra={...}` as key=value. Names, messages of the API server and
other input may contain line breaks, terminal control characters or right-to-left marks. Every character that is not
printable is therefore escaped.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, TextIO

from gangsched.core.objects.wording import escaped

LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

_OWN = "gangsched"
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def quote(value: object) -> str:
    """A value as written after `key=`: bare if that is unambiguous, otherwise in double quotes with escapes."""
    text = str(value)
    if text and not any(char in ' "=\\' for char in text) and text.isprintable():
        return text
    return '"' + escaped(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _values(record: logging.LogRecord) -> dict[str, object]:
    # Only for our own records: libraries put internal objects into `extra`.
    if record.name.partition(".")[0] != _OWN:
        return {}
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class TextFormatter(logging.Formatter):
    """`TIME LEVEL logger: sentence key=value …`; a traceback is indented, so that it never looks like a record."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, plus indented lines for a traceback."""
        values = "".join(f" {key}={quote(value)}" for key, value in _values(record).items())
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {escaped(record.getMessage())}{values}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {escaped(part)}" for part in trace.splitlines())
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, the values, and the exception if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; JSON itself escapes characters outside ASCII."""
        entry = _values(record) | {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure(log_format: LogFormat, *, level: LogLevel = "info", stream: TextIO | None = None) -> None:
    """Send the process's records from this level on to `stream` (standard error by default) in the given format."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    own = level.upper()
    root.setLevel("ERROR" if own == "ERROR" else "WARNING")
    logging.getLogger(_OWN).setLevel(own)
