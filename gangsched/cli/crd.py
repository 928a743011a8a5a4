"""`gangsched crd`: the CustomResourceDefinition to install."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.cli import Commands


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "crd",
        help="print the PodGroup CRD as YAML",
        description="Print the CustomResourceDefinition of PodGroups as YAML. Install it with: "
        "gangsched crd | kubectl apply --server-side -f -",
    )
    parser.set_defaults(execute=_execute)


def _execute(_: argparse.Namespace) -> int:
    from gangsched.api.custom_resource import crd_yaml  # noqa: PLC0415 - see the package

    print(crd_yaml(), end="")
    return 0
