"""`gangsched version`."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.cli import Commands


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("version", help="print the version", description="Print the version of gangsched.")
    parser.set_defaults(execute=execute)


def execute(_: argparse.Namespace) -> int:
    """Print the version; returns the exit status."""
    print(f"gangsched {version('gangsched')}")
    return 0
