from __future__ import annotations

import io
import json
import logging

import pytest

from gangsched.runtime import logs

FORGERY = "pod\n2026-01-01T00:00:00.000Z INFO    gangsched: all is well"


@pytest.fixture
def restored_logging():
    root, own = logging.getLogger(), logging.getLogger("gangsched")
    before = (list(root.handlers), root.level, own.level)
    yield
    root.handlers[:], root.level, own.level = before[0], before[1], before[2]


def _lines(
    log_format: logs.LogFormat, name: str, message: str, *, failure: Exception | None = None, **extra: object
) -> list[str]:
    stream = io.StringIO()
    logs.configure(log_format, stream=stream)
    logging.getLogger(name).error(message, extra=extra, exc_info=failure)
    return stream.getvalue().splitlines()


@pytest.mark.usefixtures("restored_logging")
@pytest.mark.parametrize(
    ("level", "written"),
    [
        ("debug", ["own debug", "own info", "own warning", "own error", "library warning", "library error"]),
        ("info", ["own info", "own warning", "own error", "library warning", "library error"]),
        ("warning", ["own warning", "own error", "library warning", "library error"]),
        ("error", ["own error", "library error"]),
    ],
)
def test_lines_below_the_level_are_not_written(level: logs.LogLevel, written: list[str]) -> None:
    stream = io.StringIO()
    logs.configure("text", level=level, stream=stream)
    for name, whose in (("gangsched.x", "own"), ("library", "library")):
        for severity in ("debug", "info", "warning", "error"):
            logging.getLogger(name).log(getattr(logging, severity.upper()), "%s %s", whose, severity)
    assert [line.rpartition(": ")[2] for line in stream.getvalue().splitlines()] == written


@pytest.mark.usefixtures("restored_logging")
class TestForgery:
    @pytest.mark.parametrize("hostile", ["\n", "\r", "\x1b[2J", "\x85", "\u2028", "\u202e", "\x00", "\x9b", "\x0b"])
    @pytest.mark.parametrize("log_format", ["text", "json"])
    def test_one_record_is_one_line_and_holds_no_control_character(self, log_format, hostile):
        lines = _lines(log_format, "gangsched.x", f"a{hostile}b", pod=f"c{hostile}d")
        assert len(lines) == 1
        assert lines[0].isprintable()
        assert hostile not in lines[0]

    def test_a_name_with_a_line_break_stays_inside_its_own_line(self):
        (line,) = _lines("text", "gangsched.x", "binding", pod=FORGERY)
        assert line.endswith(r'pod="pod\n2026-01-01T00:00:00.000Z INFO    gangsched: all is well"')

    def test_a_traceback_is_indented_so_that_no_line_of_it_starts_like_a_record(self):
        first, *rest = _lines("text", "gangsched.x", "failed", failure=ValueError(f"{FORGERY}\x1b[2J"))
        assert first.endswith("gangsched.x: failed")
        assert rest
        assert all(line.startswith("    ") and line.isprintable() for line in rest)

    def test_a_value_cannot_replace_the_fields_of_a_json_record(self):
        (line,) = _lines("json", "gangsched.x", "real", level="debug", logger="other")
        record = json.loads(line)
        assert (record["level"], record["logger"], record["message"]) == ("error", "gangsched.x", "real")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("team-a/train", "team-a/train"),
        (7, "7"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "hi"', r'"say \"hi\""'),
        ("back\\slash", r'"back\\slash"'),
        ("tab\there", r'"tab\there"'),
    ],
)
def test_values_are_bare_where_that_is_unambiguous_and_quoted_otherwise(value, written):
    assert logs.quote(value) == written


@pytest.mark.usefixtures("restored_logging")
class TestConfigure:
    def test_values_given_as_extra_follow_the_sentence(self):
        (line,) = _lines("text", "gangsched.x", "bound", group="a/b", count=5)
        assert line.endswith("ERROR   gangsched.x: bound group=a/b count=5")

    def test_values_that_libraries_attach_are_left_out(self):
        (line,) = _lines("text", "kopf.objects", "seen", k8s_ref={"secret": 1})
        assert line.endswith("kopf.objects: seen")

    def test_a_json_record_carries_the_exception(self):
        (line,) = _lines("json", "gangsched.x", "failed", failure=ValueError("broken"))
        assert "ValueError: broken" in json.loads(line)["exception"]
