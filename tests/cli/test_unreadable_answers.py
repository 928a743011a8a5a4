"""Answers of an API server, or of what poses as one, that no command can read: one sentence and status 2."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gangsched.cli import main
from tests.cli.test_rules import kubeconfig as written

BODIES = {
    "cut JSON": b'{"kind": "List", "items": [{"metadata": {"name": "a"',
    "not UTF-8": b'{"kind": "List", "items": [{"metadata": {"name": "\xff", "namespace": "\xfe"}}], "groups": "\xff"}',
    "deep": b'{"metadata": ' + b"[" * 100_000,
    "deep objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "not JSON": b"<html>not a cluster</html>",
    "a list": b"[1, 2]",
    "nothing": b"",
}
COMMANDS = {
    "list": ["list", "-A"],
    "explain": ["explain", "default/g"],
    "events": ["events", "default/g"],
    "snapshot": ["snapshot"],
    "simulate": ["simulate", "FILE"],
}


class _Server(ThreadingHTTPServer):
    # The end of a test waits for what is being answered: an error of it would be said in the next one.
    daemon_threads = False
    body = b""
    missing = 0
    """Bytes that the header promises beyond the body."""
    leases = False
    """Whether the Leases are answered so, too. Who leads is asked first: elsewhere it would stop a command early."""


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        body, missing = server.body, server.missing
        if "/leases" in self.path and not server.leases:
            body, missing = b'{"items": []}', 0
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) + missing))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            # A command that reads side by side ends at the first answer that it cannot read.
            self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Answer) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def kubeconfig(server: _Server, tmp_path: Path) -> Path:
    return written(tmp_path, f"http://127.0.0.1:{server.server_port}")


def told(command: list[str], kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    file = kubeconfig.parent / "node.json"
    file.write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}')
    words = [str(file) if word == "FILE" else word for word in command]
    status = main([*words, "--kubeconfig", str(kubeconfig)])
    return status, capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_that_cannot_be_read_ends_with_2_and_a_sentence(
    server: _Server, kubeconfig: Path, capsys: pytest.CaptureFixture[str], command: str, body: str
) -> None:
    """`gangsched snapshot` ended with a traceback where the answer was not UTF-8 or nested too deeply."""
    server.body, server.leases = BODIES[body], command == "simulate"
    status, errors = told(COMMANDS[command], kubeconfig, capsys)
    assert status == 2
    assert len([line for line in errors if "error: " in line]) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_that_is_cut_off_ends_with_2(
    server: _Server, kubeconfig: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    server.body, server.missing, server.leases = b'{"items": [', 1000, command == "simulate"
    status, errors = told(COMMANDS[command], kubeconfig, capsys)
    assert status == 2
    assert len([line for line in errors if "error: " in line]) == 1


@pytest.mark.parametrize("text", ["a: &a {b: *a}", "a: " + "[" * 10_000, "{" * 10_000, "\x00", "[1", "clusters: 3"])
def test_a_kubeconfig_that_cannot_be_read_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """Nesting of ten thousand levels ended in a traceback of the library that reads kubeconfigs."""
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    assert main(["list", "--kubeconfig", str(file)]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert "error: " in said
