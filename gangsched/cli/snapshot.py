"""`gangsched snapshot`: the objects of a cluster that decide where pods go, as `simulate` reads them."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.cli import Commands

FAILED, WRONG_USAGE = 1, 2
_SHOWN_AFTER_S = 1.0


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "snapshot",
        help="write the objects of a cluster that decide where pods go, for simulate",
        description="Write nodes, pods, PodGroups, workloads, volumes, devices and everything else that decides where "
        "pods go as one JSON list, for `gangsched simulate`. Secrets and ConfigMaps are not read. Of containers only "
        "name, image, resources and ports are written: no environment, commands, mounts or probes. Names, labels and "
        "annotations are written as they are.",
        epilog="Exit status: 0 for success, also if some kinds may not be listed, which is said on standard error; 1 "
        "if the cluster does not answer, 2 for wrong usage or missing credentials.",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig to use")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from gangsched.kube.errors import KubeError, NoCredentials  # noqa: PLC0415 - see the package

    try:
        asyncio.run(_write(arguments.kubeconfig, arguments.context))
    except NoCredentials as error:
        return _fail(str(error), WRONG_USAGE)
    except KubeError as error:
        return _fail(str(error), FAILED)
    return 0


def _fail(message: str, status: int) -> int:
    print(f"gangsched snapshot: error: {message}", file=sys.stderr)
    return status


async def _write(kubeconfig: str | None, context: str | None) -> None:
    from gangsched.cli.recording import kinds, objects  # noqa: PLC0415 - see the package
    from gangsched.config.settings import Settings  # noqa: PLC0415
    from gangsched.kube.session import connect  # noqa: PLC0415
    from gangsched.kube.workloads.table import chosen  # noqa: PLC0415

    session = await connect(kubeconfig=kubeconfig, context=context)
    shown_from = time.monotonic() + _SHOWN_AFTER_S
    count = 0
    try:
        listed = await kinds(session, chosen(Settings()))
        print('{"apiVersion": "v1", "kind": "List", "items": [', end="")
        for kind in listed:
            async for found in objects(session, kind, _say):
                print(",\n" if count else "\n", json.dumps(found, ensure_ascii=False), sep="", end="")
                count += 1
            if sys.stderr.isatty() and time.monotonic() >= shown_from:
                print(f"\r\x1b[K{count} objects, {kind.name} among them", end="", file=sys.stderr, flush=True)
        print("\n]}")
    finally:
        await session.close()
    if sys.stderr.isatty() and time.monotonic() >= shown_from:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _say(sentence: str) -> None:
    print(f"gangsched snapshot: {sentence}", file=sys.stderr)
