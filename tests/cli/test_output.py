"""Tables, colours, escaping and progress."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from gangsched.cli.output import ago, columns, shown, structured, table
from gangsched.cli.progress import Progress
from tests.terminal import Terminal

HOSTILE = "a\x1b]0;owned\x07\x9b31m\u202eb\nc"


class Screen(io.StringIO):
    """A stream that claims to be a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.drawn.set()


@pytest.fixture
def _on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def test_what_a_terminal_would_obey_is_escaped():
    assert shown(HOSTILE) == "a\\x1b]0;owned\\x07\\x9b31m\\u202eb\\nc"
    assert shown("für 2 × {cpu 1}…") == "für 2 × {cpu 1}…"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_programs_get_the_same_text_in_a_form_that_a_terminal_does_not_obey(form):
    import yaml

    text = structured(form, {"name": HOSTILE})
    assert not set(text) & set("\x1b\x07\x9b\u202e")
    assert (json.loads(text) if form == "json" else yaml.safe_load(text)) == {"name": HOSTILE}
    assert "für" in structured(form, {"said": "für"})


def test_documents_of_yaml_are_apart_from_one_another():
    import yaml

    text = "\n".join(structured("yaml", {"a": number}, many=True) for number in range(2))
    assert list(yaml.safe_load_all(text)) == [{"a": 0}, {"a": 1}]


def test_a_table_aligns_columns_and_cuts_only_the_last_one():
    rows = [("a-long-name", "x" * 40), ("b", HOSTILE)]
    assert list(table(("NAME", "MESSAGE"), rows, width=40)) == [
        "NAME          MESSAGE",
        "a-long-name   " + "x" * 25 + "…",
        "b             a\\x1b]0;owned\\x07\\x9b31m\\…",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((-1, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (601, "10m")),
        *((7200, "2h"), (9000, "2h30m"), (86_399, "23h"), (86_400, "1d"), (100_000, "1d3h"), (864_000, "10d")),
    ],
)
def test_spans_are_told_as_kubectl_tells_an_age(seconds, said):
    assert ago(seconds) == said


def test_lines_are_as_wide_as_the_terminal_within_limits(monkeypatch):
    for width, wide in ((20, 60), (80, 80), (400, 120)):
        monkeypatch.setenv("COLUMNS", str(width))
        assert columns(Screen()) == wide
    assert columns(io.StringIO()) > 10_000


class TestProgress:
    @pytest.mark.usefixtures("_on_a_terminal")
    def test_what_takes_long_is_told_in_one_line_that_vanishes(self):
        screen = Screen()
        with Progress("reading", stream=screen, after_s=0) as progress:
            assert screen.drawn.wait(timeout=10)
            time.sleep(0.11)
            progress.say("deciding " + "x" * 100 + HOSTILE)
        assert screen.getvalue().startswith("\r\x1b[Kreading\r\x1b[Kdeciding x")
        assert screen.getvalue().endswith("x\r\x1b[K")
        assert max(map(len, screen.getvalue().split("\r\x1b[K"))) == 79

    @pytest.mark.usefixtures("_on_a_terminal")
    def test_what_is_soon_done_is_not_told(self):
        screen = Screen()
        with Progress("reading", stream=screen, after_s=3600) as progress:
            progress.say("deciding")
        assert screen.getvalue() == ""

    @pytest.mark.parametrize(("term", "stream"), [("dumb", Screen), ("", Screen), ("xterm", io.StringIO)])
    def test_nothing_is_told_where_no_person_would_see_a_line_vanish(self, monkeypatch, term, stream):
        monkeypatch.setenv("TERM", term)
        screen = stream()
        with Progress("reading", stream=screen, after_s=0) as progress:
            progress.say("deciding")
        assert screen.getvalue() == ""

    @pytest.mark.slow
    @pytest.mark.parametrize(("term", "told"), [("xterm", "\r\x1b[Kreading\r\x1b[K"), ("dumb", "")])
    def test_on_a_real_terminal_nothing_of_it_is_left(self, term, told):
        waits = "import sys; from gangsched.cli.progress import Progress; p = Progress('reading', after_s=0)"
        waits += "; p.__enter__(); p._timer.is_alive() and p._timer.join(); p.__exit__(); print('done')"
        env = {**os.environ, "TERM": term, "PYTHONPATH": str(Path(__file__).parents[2])}
        with Terminal([sys.executable, "-c", waits], env=env) as terminal:
            assert terminal.ended() == 0
            assert terminal.shown == f"{told}done\r\n"
