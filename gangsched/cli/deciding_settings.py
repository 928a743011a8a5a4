"""The settings that a command decides by: those of a file, else those of the leading operator, else the defaults.

Anyone who may create a Lease in some namespace can pretend that an operator leads there. If several Leases claim one
schedulerName with different settings, the oldest one counts, and the others are named: the time of a Lease's creation
is the API server's, so that nobody can come before an operator that is there.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gangsched.cli.cluster_access import connected
from gangsched.cli.leaders import Leader, Leaders, read_leaders
from gangsched.config.settings import Settings, load
from gangsched.kube.client.errors import KubeError, NoCredentials

_DEFAULT = Settings()
NO_LEADERS = Leaders((), leads=False)
_WITHIN_S = 3.0
"""Longest wait, in seconds, for a cluster that no flag names."""
_MOST_NAMED = 5
"""Maximum number of Leases with other settings that are named."""
_NO_CLUSTER = (
    "Decided by the default settings, because no cluster can be asked for the operator's: name one with --context or "
    "--kubeconfig, or the operator's file with --config."
)
_UNSEEN = (
    "The operator's settings cannot be read, so the defaults are used: request the right to list Leases in all "
    "namespaces, or name the operator's file with --config."
)

_UNSERVED = (
    "No operator that leads serves pods with the schedulerName {}{}, so none of them is bound: add it to an operator's "
    "schedulerNames, or create the pods again with one that is served."
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings, and sentences about where they come from, where that needs to be said."""

    settings: Settings
    notes: Sequence[str] = ()


def rules(
    arguments: argparse.Namespace, leaders: Leaders, *, schedulers: Collection[str] = (), namespace: str = ""
) -> Rules:
    """The settings to decide by for pods of these schedulerNames in this namespace, or in any if it is empty.

    Without schedulerNames, the operator that serves the default one counts, else the only one there is. `arguments` are
    those of `cluster_access.add_cluster`. The namespace to which an operator is restricted decides only whether its
    settings apply: the result has no such restriction.

    Raises:
        InvalidConfig: the file cannot be used.
    """
    flags = {"schedulerNames": arguments.scheduler_name} if arguments.scheduler_name else {}
    if arguments.config is not None:
        return Rules(load(arguments.config, flags=flags))
    if leaders.leads is None:
        return Rules(load(flags=flags), [_UNSEEN])
    led = leaders.all or leaders.former
    names = arguments.scheduler_name or schedulers
    serving = _serving(led, names, namespace)
    leader = serving[0] if serving else None
    if leader is None or leader.published is None:
        # One that does not publish all of its settings may serve it.
        known = leaders.all and all(operator.published and not operator.published.too_large for operator in leaders.all)
        where = f" in namespace {namespace}" if namespace else ""
        return Rules(load(flags=flags), [_UNSERVED.format(" or ".join(names), where)] if names and known else [])
    changes: dict[str, object] = {"namespace": ""}
    if flags:
        changes["scheduler_names"] = load(flags=flags).scheduler_names
    notes = [*_ambiguous(serving), *_notes(leader, leads=leader in leaders.all)]
    return Rules(leader.published.settings.model_copy(update=changes), notes)


async def rules_for_manifests(arguments: argparse.Namespace) -> Rules:
    """The settings to decide by about manifests: those of the operator in the current context, if it can be asked.

    Raises:
        InvalidConfig: the file cannot be used.
        UsageError, NoCredentials, ApiUnreachable: the cluster that the flags name cannot be asked.
    """
    if arguments.config is not None:
        return rules(arguments, NO_LEADERS)
    flags = (arguments.context, arguments.kubeconfig, arguments.user, arguments.user_groups, arguments.user_uid)
    is_named = any(flags)
    try:
        async with asyncio.timeout(None if is_named else _WITHIN_S), connected(arguments) as session:
            return rules(arguments, await read_leaders(session))
    except (KubeError, TimeoutError) as error:
        if is_named:
            raise
        # Without a kubeconfig there is no cluster whose operator could decide otherwise.
        notes = () if isinstance(error, NoCredentials) else (_NO_CLUSTER,)
        return Rules(rules(arguments, NO_LEADERS).settings, notes)


def _serving(leaders: Sequence[Leader], schedulers: Collection[str], namespace: str) -> list[Leader]:
    """The operators that serve these schedulerNames; if none are given, those that serve the default one, else all.

    Operators with the same settings count as one. The one with the oldest Lease comes first, and only as many follow as
    a sentence names.
    """
    if schedulers:
        serving = [leader for leader in leaders if leader.serves(schedulers, namespace)]
    else:
        settings = ((leader, leader.published.settings.scheduler_names) for leader in leaders if leader.published)
        matching = [leader for leader, names in settings if leader.serves(names, namespace)]
        serving = [leader for leader in matching if leader.serves(_DEFAULT.scheduler_names, namespace)] or matching
    different: list[Leader] = []
    for leader in sorted(serving, key=lambda leader: (leader.created, leader.lease)):
        if len(different) > _MOST_NAMED:
            break
        if all(leader.published != other.published for other in different):
            different.append(leader)
    return different


def _ambiguous(leaders: Sequence[Leader]) -> Iterator[str]:
    """A sentence about several operators with different settings, of which the first one counts."""
    if len(leaders) > 1:
        first, *others = (leader.lease for leader in leaders)
        yield (
            f"The Leases {first}, {', '.join(others)} publish different settings: those of {first}, which is the "
            "oldest, are used. Name the operator's file with --config or its schedulerName with --scheduler-name, and "
            "delete Leases that belong to no operator."
        )


def _notes(leader: Leader, *, leads: bool) -> Iterator[str]:
    published = leader.published
    if published is None:
        return
    if not leads:
        yield f"No operator leads now: the settings are those of the last holder of the Lease {leader.lease}."
    if published.too_large:
        yield (
            f"The settings of the operator with the Lease {leader.lease} are too large to be published there, so the "
            "defaults are used: name its file with --config."
        )
    if published.changed:
        yield f"Decided by the operator's settings, from the Lease {leader.lease}: {', '.join(published.changed)}."
    if published.unknown:
        yield (
            f"Settings of the operator with the Lease {leader.lease} that this version does not know are ignored: "
            f"{', '.join(published.unknown)}. Use the operator's version of gangsched."
        )
