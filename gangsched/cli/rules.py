"""By which settings a command decides: those of a file, else those of the operator that leads, else the defaults."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gangsched.cli.access import connected
from gangsched.cli.leaders import Leader, Leaders, read_leaders
from gangsched.config.settings import Settings, load

_DEFAULT = Settings()
_NOBODY = Leaders((), leads=False)
_UNSEEN = (
    "The operator's settings cannot be seen, and those used here are the defaults: request the right to list Leases in "
    "all namespaces, or name the operator's file with --config."
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings, and sentences about where they come from if they are not the defaults."""

    settings: Settings
    notes: Sequence[str] = ()


def rules(
    arguments: argparse.Namespace, leaders: Leaders, *, schedulers: Collection[str] = (), namespace: str = ""
) -> Rules:
    """The settings to decide by for pods of these schedulerNames in this namespace; empty: in any.

    Without schedulerNames they are those of the operator that serves the default one, else of the first. `arguments`
    are those of `cli.access.add_rules`. The one namespace that an operator serves decides only whether its settings
    count: what is looked at may be in any.

    Raises:
        InvalidConfig: the file cannot be used.
    """
    flags = {"schedulerNames": arguments.scheduler_name} if arguments.scheduler_name else {}
    if arguments.config is not None:
        return Rules(load(arguments.config, flags=flags))
    if leaders.leads is None:
        return Rules(load(flags=flags), [_UNSEEN])
    leader = _serving(leaders.all, arguments.scheduler_name or schedulers, namespace)
    if leader is None or leader.published is None:
        return Rules(load(flags=flags))
    changes: dict[str, object] = {"namespace": ""}
    if flags:
        changes["scheduler_names"] = load(flags=flags).scheduler_names
    return Rules(leader.published.settings.model_copy(update=changes), list(_notes(leader)))


async def rules_of_named_cluster(arguments: argparse.Namespace) -> Rules:
    """The settings to decide by without a cluster, unless the flags of `cli.access.add_cluster` name one.

    Raises:
        InvalidConfig: the file cannot be used.
        UsageError, NoCredentials, ApiUnreachable: the cluster that is named cannot be asked.
    """
    if arguments.config is not None or not (arguments.context or arguments.kubeconfig):
        return rules(arguments, _NOBODY)
    async with connected(arguments) as session:
        return rules(arguments, await read_leaders(session))


def _serving(leaders: Sequence[Leader], schedulers: Collection[str], namespace: str) -> Leader | None:
    """The operator that serves these; without one to serve, the one that serves the default name, else the first."""
    if schedulers:
        return next((each for each in leaders if each.serves(schedulers, namespace)), None)
    there = [
        each for each in leaders if each.published and each.serves(each.published.settings.scheduler_names, namespace)
    ]
    serving = (each for each in there if each.serves(_DEFAULT.scheduler_names, namespace))
    return next(serving, next(iter(there), None))


def _notes(leader: Leader) -> Iterator[str]:
    told = leader.published
    if told is None:
        return
    if told.too_large:
        yield (
            f"The settings of the operator with the Lease {leader.lease} are too large to be read there, and those "
            "used here are the defaults: name its file with --config."
        )
    if told.changed:
        yield f"Decided by the operator's settings, which the Lease {leader.lease} tells: {', '.join(told.changed)}."
    if told.unknown:
        yield (
            f"Settings of the operator with the Lease {leader.lease} that this version does not know are left out: "
            f"{', '.join(told.unknown)}. Use the version of the operator."
        )
