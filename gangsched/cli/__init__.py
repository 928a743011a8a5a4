"""The command line: `gangsched COMMAND`.

Each command is a module of this package with a function `add_parser(commands)`. It adds the command's parser and sets
`execute` to a function from the parsed arguments to the exit status. A command imports its dependencies only when it
runs, so that `gangsched version` answers at once.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse has no public name for it

COMMANDS = (
    *("run", "try", "list", "explain", "top", "dashboard", "events", "simulate", "replay"),
    *("snapshot", "crd", "completion", "version"),
)
"""Modules of this package, in the order of `--help`; `try` is the module `trial`, as the word is Python's own."""
_MODULES = {"try": "trial"}
_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
PLUGIN = "kubectl gang"
"""The program's name as a kubectl plug-in. The plug-in lacks `run` and `try`, because it installs no operator."""
_OPERATORS = ("run", "try")


class _Version(argparse.Action):
    """Prints the same as the command `version`. The version is looked up only on demand."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(import_module(f"{__name__}.version").execute(argparse.Namespace()))


def make_parser(*, plugin: bool = False) -> argparse.ArgumentParser:
    """The parser of the command line; with `plugin`, that of the kubectl plug-in."""
    parser = argparse.ArgumentParser(
        prog=PLUGIN if plugin else "gangsched",
        description="A Kubernetes gang scheduler: all pods of a group are bound together, or none is.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name in (name for name in COMMANDS if not (plugin and name in _OPERATORS)):
        add_parser: Callable[[Commands], None] = import_module(f"{__name__}.{_MODULES.get(name, name)}").add_parser
        add_parser(commands)
        command = commands.choices[name]
        command.set_defaults(prog=command.prog, refuse=command.error)
    return parser


def plugin() -> int:
    """The entry point of `kubectl gang`."""
    return main(parser=make_parser(plugin=True))


def main(argv: Sequence[str] | None = None, *, parser: argparse.ArgumentParser | None = None) -> int:
    """Run the command line and return the exit status. Wrong usage prints a message and exits with status 2."""
    _open_streams()
    parser = parser or make_parser()
    if "_ARGCOMPLETE" in os.environ:
        import_module(f"{__name__}.completion").complete(parser)
    try:
        try:
            arguments, surplus = parser.parse_known_args(argv)
            if surplus:
                # The usage that helps is that of the command; parse_args shows that of the program.
                arguments.refuse(f"unrecognized arguments: {' '.join(surplus)}")
            execute: Callable[[argparse.Namespace], int] = arguments.execute
            return execute(arguments)
        finally:
            # Flush here rather than at exit, where Python reports a failure with its own message and status.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output (`| head`) has stopped reading.
        _drop_output()
        return 1
    except OSError as error:
        if error.errno not in _OUTPUT_FAILS:
            raise
        _drop_output()
        print(f"{parser.prog}: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1


def _open_streams() -> None:
    """Make the standard streams usable however the program was started.

    Output is UTF-8 in every locale, as that of kubectl is: what `snapshot` writes is read again as UTF-8, and no name
    ends a command with an error. Python has no stream where the caller has closed one, and the next file or connection
    would get its number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _drop_output() -> None:
    """Discard the unwritten output, which Python would otherwise try to write, and report, again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
