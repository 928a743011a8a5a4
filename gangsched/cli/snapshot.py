"""`gangsched snapshot`: the objects of a cluster that decide where pods go, as `simulate` reads them."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import add_cluster, connected, note, run
from gangsched.cli.progress import Progress

if TYPE_CHECKING:
    from gangsched.cli import Commands


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "snapshot",
        help="write the objects of a cluster that decide where pods go, for simulate",
        description="Write nodes, pods, PodGroups, workloads, volumes, devices and everything else that decides where "
        "pods go as one JSON list, for `gangsched simulate`. Secrets and ConfigMaps are not read. Of each object only "
        "the fields that gangsched itself reads are written: no environment, commands, mounts, probes or parameters, "
        "and of annotations only those that decide something. Names and labels are written as they are. Objects of the "
        "kinds in the operator's setting workloads.custom are written with what its paths name.",
        epilog="Exit status: 0 for success, also if some kinds may not be listed, which is said on standard error; 1 "
        "if the cluster does not answer, 2 for wrong usage, missing credentials or an answer that "
        "cannot be read.",
    )
    add_cluster(parser)
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    return run(arguments, _write(arguments))


async def _write(arguments: argparse.Namespace) -> int:
    from gangsched.cli.deciding_settings import rules  # noqa: PLC0415
    from gangsched.cli.leaders import read_leaders  # noqa: PLC0415 - see the package
    from gangsched.cli.snapshot_objects import kinds, objects  # noqa: PLC0415
    from gangsched.config.custom_workloads import Workloads  # noqa: PLC0415
    from gangsched.kube.workloads.workload_table import chosen  # noqa: PLC0415

    count = 0
    with Progress("reading what the cluster serves") as progress:
        async with connected(arguments) as session:
            leaders = await read_leaders(session)
            decided = rules(arguments, leaders)
            custom = decided.settings.workloads.custom
            for sentence in decided.notes if custom or leaders.leads is None else ():
                note(arguments, sentence)
            # Whatever the operator watches, simulate may be asked about other settings.
            every = decided.settings.model_copy(update={"workloads": Workloads(custom=custom)})
            listed = await kinds(session, chosen(every))
            print('{"apiVersion": "v1", "kind": "List", "items": [', end="")
            for kind in listed:
                progress.say(f"{count} objects read, now {kind.name}")
                async for item in objects(session, kind, partial(note, arguments)):
                    print(",\n" if count else "\n", json.dumps(item, ensure_ascii=False), sep="", end="")
                    count += 1
            print("\n]}")
    return 0
