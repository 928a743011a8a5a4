"""All waiting groups and pods: `gangsched explain` without a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangsched.cli.leaders import Leaders
from gangsched.cli.output import wrapped
from gangsched.core.objects.events import Event
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import FINISHED, Phase
from gangsched.core.objects.wording import number_of_all
from gangsched.views.decided_copy import decided
from gangsched.views.diagnosis import without_back_offs
from gangsched.views.findings import Finding, Findings
from gangsched.views.group_row import WAITING


def waiting(events: Sequence[Event], *, policy: Policy, now: float) -> Iterator[Finding]:
    """The groups that wait or lack nodes for needed members, and plain pods without a node, in scheduling order."""
    machine = decided(map(without_back_offs, events), policy=policy, now=now)
    findings = Findings(machine)
    for finding in sorted(map(findings.on_copy, machine.gangs), key=lambda each: each.order):
        bound = sum(bool(pod.node) for pod in machine.gangs[finding.key].live())
        lacks = bound < finding.minimum and finding.phase not in (*FINISHED, Phase.SUSPENDED)
        if not bound if finding.plain else lacks or finding.phase in WAITING:
            yield finding


def text(findings: Sequence[Finding], leaders: Leaders, width: int, notes: Sequence[str] = ()) -> Iterator[str]:
    """The lines for a person; `notes` say which settings were used."""
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


def as_json(findings: Sequence[Finding], leaders: Leaders, notes: Sequence[str] = ()) -> dict[str, object]:
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
    }
