"""`gangsched explain`: why a group waits, on a live cluster."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gangsched.cli.cluster_access import (
    Unanswered,
    add_cluster,
    add_namespace,
    connected,
    denied,
    named,
    namespace_of,
    run,
    split_name,
)
from gangsched.cli.completion import complete_groups
from gangsched.cli.output import (
    JSON,
    NAME,
    WIDE,
    YAML,
    add_output,
    add_watch,
    painted,
    shown,
    structured,
    width_of,
)
from gangsched.cli.progress import Progress

if TYPE_CHECKING:
    from gangsched.cli import Commands
    from gangsched.cli.deciding_settings import Rules
    from gangsched.cli.group_reader import Reading
    from gangsched.cli.leaders import Leaders
    from gangsched.cli.watch_option import Item
    from gangsched.config.settings import Settings
    from gangsched.core.objects.declaration import GroupKey
    from gangsched.kube.client.session import ApiSession
    from gangsched.views.diagnosed import Diagnosis


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="show why a group waits, or list all that wait",
        description="Show why a group waits: how many of its members fit and where, what refuses the others on which "
        "nodes, which resources are missing and which pods and groups hold them, which groups are ahead, who leaves "
        "for it or why nobody does, and what would help. Nodes are grouped by pool, machine and zone, in at most ten "
        "groups. The command runs the scheduler on the cluster's current state, by the settings of the operator that "
        "leads, and writes nothing. Where an operator leads, a group that does not wait is shown as its status says, "
        "and in a cluster of more than 10,000 pods one that waits, too, except with -o wide, json or yaml. Without a "
        "name it lists all that wait in the namespace, in scheduling order, and says whether an operator leads and "
        "which PodGroups wait for other schedulerNames. It needs the right to list nodes, pods, PodGroups, namespaces, "
        "PriorityClasses, PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes, CSIDrivers, "
        "CSIStorageCapacities, VolumeAttachments, ResourceSlices, DeviceClasses and ResourceClaims; without it, it "
        "shows what the operator wrote into the PodGroup's status. It also reads other systems' PodGroups, the Jobs or "
        "other workloads of pods without a group, PodDisruptionBudgets if the operator preempts, and Leases, if it "
        "may.",
        epilog="Exit status: 0 for success, 1 if there is no such group or the cluster does not answer, 2 for wrong "
        "usage, missing credentials or an answer that cannot be read.",
    )
    group = parser.add_argument(
        "group", metavar="[NS/]NAME", nargs="?", help="the group, or a pod: one of its members or one without a group"
    )
    group.completer = complete_groups  # type: ignore[attr-defined] # argcomplete looks for it there
    add_namespace(parser)
    add_cluster(parser)
    add_output(parser, JSON, YAML, WIDE, NAME)
    add_watch(parser)
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from gangsched.cli.group_reader import LISTED  # noqa: PLC0415 - see the package

    listing = f"list {', '.join(LISTED)} in all namespaces"
    if arguments.group is None:
        return run(arguments, _answer(arguments), right=f"the right to {listing}")
    namespace = arguments.group.rpartition("/")[0] or arguments.namespace
    place = f"namespace {namespace}" if namespace else "the group's namespace"
    right = (
        f"the right to get podgroups.gangsched.io in {place}, which shows the group's status, and for a full answer to "
        f"{listing}"
    )
    return run(arguments, _answer(arguments), right=right)


async def _answer(arguments: argparse.Namespace) -> int:
    from gangsched.cli.watch_option import follow  # noqa: PLC0415 - see the package

    if arguments.group is not None:
        split_name(arguments.group)
    async with connected(arguments) as session:
        look = partial(_look_at_all if arguments.group is None else _look_at, arguments, session)
        if arguments.watch:
            await follow(arguments, look)
        for _, _, text in await look():
            print(text)
    return 0


# All waiting groups


async def _look_at_all(arguments: argparse.Namespace, session: ApiSession) -> list[Item]:
    from gangsched.cli import explain_all  # noqa: PLC0415 - see the package
    from gangsched.cli.deciding_settings import rules  # noqa: PLC0415
    from gangsched.cli.group_reader import LISTED, read  # noqa: PLC0415
    from gangsched.cli.leaders import read_leaders  # noqa: PLC0415

    with Progress("reading the cluster") as progress:
        leaders = await read_leaders(session)
        decided = rules(arguments, leaders)
        policy = decided.settings.policy()
        reading = await read(session, None, decided.settings, on_progress=progress.say)
        if reading.forbidden:
            raise Unanswered(
                denied(reading.forbidden, f"the right to list {', '.join(LISTED)} in all namespaces")
                + "; gangsched list shows the PodGroups of a namespace without it"
            )
        progress.say("deciding")
        only = namespace_of(arguments, session)
        machine = explain_all.copied(reading.events, policy=policy, now=time.time())
        findings = [finding for finding in explain_all.waiting(machine) if only in ("", finding.key.namespace)]
        others = explain_all.elsewhere(reading.events, machine, only)
    if arguments.output in (JSON, YAML):
        document = explain_all.as_json(findings, others, leaders, decided.notes)
        text = structured(arguments.output, document, many=arguments.watch)
    elif arguments.output == NAME:
        text = "\n".join(f"{finding.resource}/{finding.key.name}" for finding in findings)
    else:
        text = "\n".join(map(shown, explain_all.text(findings, others, leaders, width_of(arguments), decided.notes)))
    return [("", text, text)]


# One group

_TOLD = (
    "this is what the operator wrote into the PodGroup's status; -o wide also reads the more than {:,} pods of the "
    "cluster, decides on a copy of them, and shows who holds what is missing, who is ahead and who would leave"
)


async def _look_at(arguments: argparse.Namespace, session: ApiSession) -> list[Item]:
    from gangsched.cli import explain_text  # noqa: PLC0415 - see the package
    from gangsched.views import diagnosis_json  # noqa: PLC0415

    key = named(arguments, arguments.group, session)
    with Progress("reading the cluster") as progress:
        explained = await _diagnose(arguments, session, key, progress)
    diagnosis, reading = explained.diagnosis, explained.reading
    # A completely bound group needs no operator for now. `rules` did not decide what a status says.
    unled = explained.leaders.leads is False and diagnosis.bound < max(1, diagnosis.minimum)
    no_operator = explained.leaders.sentences if unled else ()
    notes = (*explained.remarks, *(() if reading.forbidden else explained.rules.notes))
    if arguments.output in (JSON, YAML):
        document = diagnosis_json.as_object(
            diagnosis, forbidden=reading.forbidden, hidden=reading.hidden, no_operator=no_operator, notes=notes
        )
        text = structured(arguments.output, document, many=arguments.watch)
    elif arguments.output == NAME:
        text = f"{diagnosis.resource}/{diagnosis.key.name}"
    else:
        lines = explain_text.lines(diagnosis, reading, width_of(arguments), remarks=(*no_operator, *notes))
        first, *others = map(shown, lines)
        text = "\n".join([painted(first, diagnosis.phase), *others])
    return [("", text, text)]


@dataclass(frozen=True)
class _Explained:
    diagnosis: Diagnosis
    reading: Reading
    leaders: Leaders
    rules: Rules
    remarks: Sequence[str] = ()


async def _diagnose(
    arguments: argparse.Namespace, session: ApiSession, key: GroupKey, progress: Progress
) -> _Explained:
    from gangsched.cli.deciding_settings import rules  # noqa: PLC0415
    from gangsched.cli.group_reader import MANY_PODS, Reading, is_at_rest, is_large, read, read_told  # noqa: PLC0415
    from gangsched.cli.leaders import read_leaders  # noqa: PLC0415
    from gangsched.cli.unknown_group import why_unknown  # noqa: PLC0415
    from gangsched.views.diagnosed import from_status  # noqa: PLC0415
    from gangsched.views.diagnosis import from_cluster  # noqa: PLC0415

    leaders = await read_leaders(session)
    decided = rules(arguments, leaders, namespace=key.namespace)
    if (
        arguments.output not in (JSON, YAML)
        and leaders.tell(decided.settings, key.namespace)
        and (group := await read_told(session, key, decided.settings.scheduler_names)) is not None
    ):
        told = from_status(group)
        if is_at_rest(group):
            return _Explained(told, Reading(group=group), leaders, decided)
        if arguments.output != WIDE and await is_large(session):
            told = await _with_owners(session, told, decided.settings)
            return _Explained(told, Reading(group=group), leaders, decided, [_TOLD.format(MANY_PODS)])
    reading = await read(session, key, decided.settings, on_progress=progress.say)
    pod = reading.pod_of(key)
    if pod is not None and pod.scheduler not in decided.settings.scheduler_names:
        others = rules(arguments, leaders, schedulers=[pod.scheduler], namespace=key.namespace)
        if pod.scheduler in others.settings.scheduler_names:
            # Another operator serves this pod, and may watch other kinds of workloads.
            decided, reading = others, await read(session, key, others.settings, on_progress=progress.say)
    progress.say("deciding")
    if reading.events:
        diagnosis = from_cluster(reading.events, key, policy=decided.settings.policy(), now=time.time())
    else:
        diagnosis = from_status(reading.group) if reading.group is not None else None
    if diagnosis is None:
        raise Unanswered(why_unknown(key, reading, decided.settings.scheduler_names))
    return _Explained(await _with_owners(session, diagnosis, decided.settings), reading, leaders, decided)


async def _with_owners(session: ApiSession, diagnosis: Diagnosis, settings: Settings) -> Diagnosis:
    """The diagnosis, with remedies for missing members as far as the caller may see the objects that create them."""
    from gangsched.cli.missing_pods import read_owners, remedies  # noqa: PLC0415 - see the package
    from gangsched.cli.workload_templates import origins  # noqa: PLC0415
    from gangsched.config.custom_workloads import Workloads  # noqa: PLC0415
    from gangsched.core.objects.declaration import NATIVE  # noqa: PLC0415
    from gangsched.core.objects.reasons import Reason  # noqa: PLC0415
    from gangsched.kube.workloads.workload_table import chosen  # noqa: PLC0415

    if diagnosis.reason == Reason.POD_GROUP_NOT_FOUND and diagnosis.source == f"{NATIVE} pods":
        helps = await origins(session, diagnosis.key.namespace, diagnosis.key.name)
        return replace(diagnosis, helps=(*helps, *diagnosis.helps))
    if diagnosis.shortfall is not None or diagnosis.members >= max(1, diagnosis.minimum):
        return diagnosis
    # Pods of kinds that the operator does not watch can name the group too.
    kinds = chosen(settings.model_copy(update={"workloads": Workloads(custom=settings.workloads.custom)}))
    owners = await read_owners(session, diagnosis.key.namespace, diagnosis.key.name, kinds)
    return replace(diagnosis, helps=(*diagnosis.helps, *remedies(owners, diagnosis.minimum)))
