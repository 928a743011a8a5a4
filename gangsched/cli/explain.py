"""`gangsched explain`: why a group waits, on a live cluster."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.diagnosis import Diagnosis, Shortfall
    from gangsched.cli.live import Reading
    from gangsched.cli.nodegroups import NodeGroup
    from gangsched.cli.overview import Leaders
    from gangsched.cli.owners import Owner
    from gangsched.config.settings import Settings
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.core.objects.status import Demand
    from gangsched.core.planning.refusal import Obstacle
    from gangsched.kube.errors import ApiError

FAILED, WRONG_USAGE = 1, 2
_NAMED = 8
_REASONS = 3
_WIDEST, _USUAL, _NARROWEST = 120, 80, 60
_UNWRAPPED = 1 << 20


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="show why a group waits, or which do",
        description="Show why a group waits: how many of its members fit and where, what refuses the others on which "
        "nodes, which resources are missing and which pods and groups hold them, which groups are ahead, and what "
        "would help. Nodes are grouped by pool, machine and zone, in at most ten groups. The command runs the "
        "scheduler on the cluster's current state and writes nothing. Without a name it lists all that wait, in the "
        "order of their turn, and says whether an operator leads. It needs the right to list nodes, pods, "
        "PodGroups, namespaces, "
        "PriorityClasses, PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes, CSIDrivers, "
        "CSIStorageCapacities, VolumeAttachments, ResourceSlices, DeviceClasses and ResourceClaims; without it, it "
        "shows only the PodGroup's status. It also reads other systems' PodGroups, and the Jobs or other workloads of "
        "pods without a group, if it may.",
        epilog="Exit status: 0 for success, 1 if there is no such group or the cluster does not answer, 2 for wrong "
        "usage or missing credentials.",
    )
    parser.add_argument(
        "group", metavar="[NS/]NAME", nargs="?", help="the group, or a pod: one of its members or one without a group"
    )
    parser.add_argument("-n", "--namespace", metavar="NS", default="default", help="namespace (default: default)")
    parser.add_argument("--config", metavar="FILE", type=Path, help="the operator's settings, as YAML")
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig to use")
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        action="append",
        help="as given to gangsched run; may be repeated (default: gangsched)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from gangsched.config.settings import InvalidConfig, load  # noqa: PLC0415 - see the package
    from gangsched.core.objects.declaration import GroupKey  # noqa: PLC0415
    from gangsched.kube.errors import ApiError, KubeError, NoCredentials  # noqa: PLC0415

    if arguments.group is None:
        return _execute_for_all(arguments)
    namespace, slash, name = arguments.group.rpartition("/")
    key = GroupKey(namespace if slash else arguments.namespace, name)
    if not key.namespace or not key.name or "/" in key.namespace:
        return _fail(f"{arguments.group!r} is not the name of a group: write NAMESPACE/NAME", WRONG_USAGE)
    flags = {"schedulerNames": arguments.scheduler_name} if arguments.scheduler_name else {}
    try:
        settings = load(arguments.config, flags=flags)
        policy = settings.policy()
        reading, owners = asyncio.run(_read(key, settings, kubeconfig=arguments.kubeconfig, context=arguments.context))
    except (InvalidConfig, NoCredentials) as error:
        return _fail(str(error), WRONG_USAGE)
    except ApiError as error:
        return _fail(_refused(error, key), FAILED)
    except KubeError as error:
        return _fail(str(error), FAILED)

    from gangsched.cli.diagnosis import from_cluster, from_status  # noqa: PLC0415
    from gangsched.cli.owners import remedies  # noqa: PLC0415

    if reading.events:
        diagnosis = from_cluster(reading.events, key, policy=policy, now=time.time())
    else:
        diagnosis = from_status(reading.group) if reading.group is not None else None
    if diagnosis is None:
        return _fail(_unknown(key, reading), FAILED)
    if diagnosis.shortfall is None and diagnosis.members < diagnosis.minimum:
        diagnosis = replace(diagnosis, helps=(*diagnosis.helps, *remedies(owners, diagnosis.minimum)))
    if arguments.json:
        print(json.dumps(_json(diagnosis, reading), ensure_ascii=False, indent=2))
    else:
        columns = min(max(shutil.get_terminal_size((_USUAL, 24)).columns, _NARROWEST), _WIDEST)
        # Programs that search the lines find each sentence in one.
        print("\n".join(_text(diagnosis, reading, columns if sys.stdout.isatty() else _UNWRAPPED)))
    return 0


def _execute_for_all(arguments: argparse.Namespace) -> int:
    from gangsched.cli import overview  # noqa: PLC0415 - see the package
    from gangsched.config.settings import InvalidConfig, load  # noqa: PLC0415
    from gangsched.kube.errors import ApiError, KubeError, NoCredentials  # noqa: PLC0415

    flags = {"schedulerNames": arguments.scheduler_name} if arguments.scheduler_name else {}
    try:
        settings = load(arguments.config, flags=flags)
        policy = settings.policy()
        reading, leaders = asyncio.run(_read_all(settings, kubeconfig=arguments.kubeconfig, context=arguments.context))
    except (InvalidConfig, NoCredentials) as error:
        return _fail(str(error), WRONG_USAGE)
    except ApiError as error:
        return _fail(_refused(error, None), FAILED)
    except KubeError as error:
        return _fail(str(error), FAILED)
    if reading.forbidden:
        return _fail(_denied(reading.forbidden, None), FAILED)
    found = list(overview.waiting(reading.events, policy=policy, now=time.time()))
    if arguments.json:
        print(json.dumps(overview.as_json(found, leaders), ensure_ascii=False, indent=2))
    else:
        columns = min(max(shutil.get_terminal_size((_USUAL, 24)).columns, _NARROWEST), _WIDEST)
        print("\n".join(overview.text(found, leaders, columns if sys.stdout.isatty() else _UNWRAPPED)))
    return 0


async def _read_all(settings: Settings, *, kubeconfig: str | None, context: str | None) -> tuple[Reading, Leaders]:
    from gangsched.cli.live import read  # noqa: PLC0415
    from gangsched.cli.overview import read_leaders  # noqa: PLC0415
    from gangsched.kube.session import connect  # noqa: PLC0415

    session = await connect(kubeconfig=kubeconfig, context=context)
    try:
        return await read(session, None, settings), await read_leaders(session)
    finally:
        await session.close()


async def _read(
    key: GroupKey, settings: Settings, *, kubeconfig: str | None, context: str | None
) -> tuple[Reading, Sequence[Owner]]:
    from gangsched.cli.live import read  # noqa: PLC0415
    from gangsched.cli.owners import read_owners  # noqa: PLC0415
    from gangsched.kube.session import connect  # noqa: PLC0415

    session = await connect(kubeconfig=kubeconfig, context=context)
    try:
        return await read(session, key, settings), await read_owners(session, key.namespace, key.name)
    finally:
        await session.close()


def _fail(message: str, status: int) -> int:
    print(f"gangsched explain: error: {message}", file=sys.stderr)
    return status


def _refused(error: ApiError, key: GroupKey | None) -> str:
    """The API server's answer, with what to do about credentials that it refuses and rights that are missing."""
    others = "log in again, or choose other credentials with --kubeconfig or --context"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the API server does not accept the token or certificate, which is wrong or has expired: {others}"
    if error.anonymous:
        return (
            "the API server has seen no credentials (it answers system:anonymous): the client certificate has expired, "
            f"or the kubeconfig's user has neither certificate nor token; {others}"
        )
    return _denied(error.message, key) if error.denied else str(error)


def _denied(told: str, key: GroupKey | None) -> str:
    from gangsched.cli.live import LISTED  # noqa: PLC0415 - see the package

    everything = f"list {', '.join(LISTED)} in all namespaces"
    if key is None:
        return f"{told}: ask for the right to {everything}"
    return (
        f"{told}: ask for the right to get podgroups.gangsched.io in namespace {key.namespace}, which shows the "
        f"group's status, and for a full answer to {everything}"
    )


def _unknown(key: GroupKey, reading: Reading) -> str:
    if reading.forbidden:
        return (
            f"there is no PodGroup {key}, and gangsched cannot see whether pods declare such a group, because the API "
            f"server says: {reading.forbidden}"
        )
    return (
        f"there is no PodGroup {key}, and no waiting pod of gangsched names it or has that name: check the name with "
        f"kubectl get podgroups.gangsched.io -n {key.namespace}"
    )


# Text


def _text(diagnosis: Diagnosis, reading: Reading, width: int = _USUAL) -> Iterator[str]:
    from gangsched.core.status.explanation import demanded  # noqa: PLC0415

    told = " ".join(part for part in (diagnosis.phase or "(no status)", diagnosis.reason) if part)
    yield f"{diagnosis.key}: {told}"
    rows = [("members", f"{diagnosis.members} of {diagnosis.minimum} exist, {diagnosis.bound} bound")]
    if diagnosis.source:
        rows.append(("declared", f"by {diagnosis.source}"))
    if diagnosis.shortfall is None:
        rows.append(("why", diagnosis.message))
    else:
        rows += _shortfall_rows(diagnosis.shortfall)
    rows += [("besides", said) for said in diagnosis.besides]
    if diagnosis.demand:
        rows.append(("new nodes", f"would need room for {demanded(diagnosis.demand)}"))
    rows += [("would help" if not number else "", said) for number, said in enumerate(diagnosis.helps)]
    if reading.forbidden:
        rows.append(("note", f"only from the PodGroup's status, because the API server says: {reading.forbidden}"))
    rows += [("note", said) for said in reading.hidden if said != diagnosis.message]
    for head, said in rows:
        yield from wrapped(said, width, head=f"  {head:<10}  ")
    if diagnosis.shortfall is not None and diagnosis.shortfall.groups:
        yield from _table(diagnosis.shortfall, width if width < _UNWRAPPED else _USUAL)


def _shortfall_rows(shortfall: Shortfall) -> Iterator[tuple[str, str]]:
    from gangsched.core.status.explanation import amounts  # noqa: PLC0415

    yield "fits", f"{shortfall.fits} of {shortfall.wanted} that must fit together"
    if shortfall.lacks:
        yield "lacks", f"{amounts(shortfall.lacks)} more than is free on the nodes that accept its members"
    else:
        yield "lacks", "nothing in total: the free resources are on too many nodes in too small pieces, or not usable"
    first, *others = shortfall.gaps
    yield "nodes", ": ".join(filter(None, (str(shortfall.nodes), _refusals(first.obstacles))))
    yield from (("", f"for {gap.members} more: {_refusals(gap.obstacles)}") for gap in others)
    if shortfall.held:
        holders = [f"{holder} ({amounts([(shortfall.resource, amount)])})" for holder, amount in shortfall.held]
        yield "held by", _some(holders)
    yield "ahead", _some([str(key) for key in shortfall.ahead]) or "no waiting group"


def _table(shortfall: Shortfall, width: int) -> Iterator[str]:
    """Where members fit, by groups of nodes, each with what refuses one more."""
    without = shortfall.wanted - shortfall.fits
    number = shortfall.gaps[0].members
    others = "the others" if number == without else f"{number} of the {without} others"
    yield f"  where members fit, and what refuses {others}:"
    yield "    NODES  MEMBERS  NODE GROUP"
    for group in shortfall.groups:
        yield f"    {group.nodes:>5}  {group.members:>7}  {group.name}"
        yield from wrapped(_refusals(group.obstacles), width, head=" " * 20)


def wrapped(said: str, width: int, *, head: str) -> list[str]:
    """Lines of this width, as far as names permit, the first one after the head."""
    return textwrap.wrap(
        said,
        width,
        initial_indent=head,
        subsequent_indent=" " * (len(head) + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _refusals(obstacles: Sequence[Obstacle]) -> str:
    """The most frequent reasons, each after its number of nodes."""
    told = [f"{each.nodes} {each.reason} {each.resource}".rstrip() for each in obstacles[:_REASONS]]
    more = [f"{len(obstacles) - _REASONS} more"] if len(obstacles) > _REASONS else []
    return "; ".join([*told, *more])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


# JSON


def _json(diagnosis: Diagnosis, reading: Reading) -> dict[str, object]:
    return {
        "namespace": diagnosis.key.namespace,
        "name": diagnosis.key.name,
        "phase": diagnosis.phase,
        "reason": diagnosis.reason,
        "message": diagnosis.message,
        "minimum": diagnosis.minimum,
        "members": diagnosis.members,
        "bound": diagnosis.bound,
        "source": diagnosis.source or None,
        "besides": list(diagnosis.besides),
        "shortfall": None if diagnosis.shortfall is None else _shortfall_json(diagnosis.shortfall),
        "helps": list(diagnosis.helps),
        "demand": [_demand_json(demand) for demand in diagnosis.demand],
        "fromStatusAlone": reading.forbidden or None,
        "hidden": reading.hidden,
    }


def _group_json(group: NodeGroup) -> dict[str, object]:
    return {
        "name": group.name,
        "shared": dict(group.shared),
        "nodes": group.nodes,
        "members": group.members,
        "obstacles": _obstacles_json(group.obstacles),
    }


def _obstacles_json(obstacles: Sequence[Obstacle]) -> list[dict[str, object]]:
    return [{"reason": each.reason, "resource": each.resource, "nodes": each.nodes} for each in obstacles]


def _demand_json(demand: Demand) -> dict[str, object]:
    from gangsched.core.objects.quantity import format_amount  # noqa: PLC0415

    return {
        "count": demand.count,
        "requests": {resource: format_amount(resource, amount) for resource, amount in demand.requests},
        "domain": demand.domain or None,
    }


def _shortfall_json(shortfall: Shortfall) -> dict[str, object]:
    from gangsched.core.objects.quantity import format_amount  # noqa: PLC0415

    return {
        "wanted": shortfall.wanted,
        "fits": shortfall.fits,
        "lacks": {resource: format_amount(resource, amount) for resource, amount in shortfall.lacks},
        "nodes": shortfall.nodes,
        "obstacles": _obstacles_json(shortfall.gaps[0].obstacles),
        "gaps": [{"members": gap.members, "obstacles": _obstacles_json(gap.obstacles)} for gap in shortfall.gaps],
        "nodeGroups": list(map(_group_json, shortfall.groups)),
        "resource": shortfall.resource,
        "heldBy": [
            {
                "namespace": holder.namespace,
                "name": holder.name,
                "amount": format_amount(shortfall.resource, amount),
            }
            for holder, amount in shortfall.held
        ],
        "ahead": [{"namespace": key.namespace, "name": key.name} for key in shortfall.ahead],
    }
