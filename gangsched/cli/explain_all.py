"""All waiting groups and pods: `gangsched explain` without a name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from gangsched.cli.leaders import Leaders
from gangsched.cli.output import wrapped
from gangsched.core.machine import Machine
from gangsched.core.objects.events import Event, GroupsReplaced
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import FINISHED, Phase
from gangsched.core.objects.wording import first_named, number_of, number_of_all
from gangsched.views.decided_copy import decided
from gangsched.views.diagnosis import without_back_offs
from gangsched.views.findings import Finding, Findings
from gangsched.views.group_row import WAITING

_NAMED = 3
"""Maximum number of groups of each other schedulerName that are named."""


def copied(events: Sequence[Event], *, policy: Policy, now: float) -> Machine:
    """A copy of the cluster on which everything that waits has been tried."""
    return decided(map(without_back_offs, events), policy=policy, now=now)


def waiting(machine: Machine) -> Iterator[Finding]:
    """The groups that wait or lack nodes for needed members, and plain pods without a node, in scheduling order."""
    findings = Findings(machine)
    for finding in sorted(map(findings.on_copy, machine.gangs), key=lambda finding: finding.order):
        bound = sum(bool(pod.node) for pod in machine.gangs[finding.key].live())
        lacks = bound < finding.minimum and finding.phase not in (*FINISHED, Phase.SUSPENDED)
        if not bound if finding.plain else lacks or finding.phase in WAITING:
            yield finding


def elsewhere(events: Sequence[Event], machine: Machine, namespace: str = "") -> dict[str, list[str]]:
    """The waiting PodGroups of other schedulerNames, by these, in this namespace, or in all if it is empty."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for group in (group for event in events if isinstance(event, GroupsReplaced) for group in event.groups):
        waits = group.status.phase in WAITING and namespace in ("", group.key.namespace)
        if waits and group.key not in machine.gangs:
            other = machine.elsewhere(group.key.namespace, group.key.name)
            if other is not None:
                names[other.owner].append(str(group.key))
    return {scheduler: sorted(names[scheduler]) for scheduler in sorted(names)}


def _of_others(scheduler: str, groups: Sequence[str]) -> str:
    named = first_named(groups, _NAMED)
    return (
        f"Not listed: {number_of(len(groups), 'waiting PodGroup')} of the schedulerName {scheduler} ({named}); ask "
        f"about one by name, or with --scheduler-name {scheduler}."
    )


def text(
    findings: Sequence[Finding],
    others: Mapping[str, Sequence[str]],
    leaders: Leaders,
    width: int,
    notes: Sequence[str] = (),
) -> Iterator[str]:
    """The lines for a person; `others` wait beside them, and `notes` say which settings were used."""
    for sentence in (*leaders.sentences, *notes):
        yield from wrapped(sentence, width, head="")
    yield ""
    if not findings:
        yield "No group and no pod of gangsched waits."
    for finding in findings:
        kind = "pod" if finding.plain else number_of_all(finding.members, finding.minimum, "member", "exists", "exist")
        state = " ".join(part for part in (finding.phase, finding.reason) if part)
        yield f"{finding.key}: {state} ({kind})"
        yield from wrapped(finding.message, width, head="  ")
    for scheduler, groups in others.items():
        yield from wrapped(_of_others(scheduler, groups), width, head="")


def as_json(
    findings: Sequence[Finding], others: Mapping[str, Sequence[str]], leaders: Leaders, notes: Sequence[str] = ()
) -> dict[str, object]:
    """The same as a JSON object."""
    return {
        "operatorLeads": leaders.leads,
        "operators": list(leaders.sentences),
        "settings": list(notes),
        "waiting": [
            {
                "namespace": finding.key.namespace,
                "name": finding.key.name,
                "pod": finding.plain,
                "phase": finding.phase,
                "reason": finding.reason,
                "message": finding.message,
                "minimum": finding.minimum,
                "members": finding.members,
            }
            for finding in findings
        ],
        "elsewhere": [{"schedulerName": scheduler, "podGroups": list(groups)} for scheduler, groups in others.items()],
    }
