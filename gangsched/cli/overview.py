"""All groups and pods that wait, and whether an operator leads: `gangsched explain` without a name."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec import Struct

from gangsched.api.times import parse_time
from gangsched.cli.diagnosis import FITS, without_back_offs
from gangsched.cli.explain import wrapped
from gangsched.config.settings import LeaderElection
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.machine import Machine
from gangsched.core.objects.events import Event
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase
from gangsched.core.objects.wording import number_of_all
from gangsched.kube.errors import UNREADABLE, ApiError
from gangsched.kube.lease import API_VERSION, LABEL, VALUE, LeaseSpec
from gangsched.kube.session import ApiSession
from gangsched.whatif.findings import Finding, Findings

_NAME = LeaderElection().resource_name
_SEVERAL = (
    "More than one operator leads: uninstall all but one, or give each schedulerNames of its own, because two that "
    "serve one schedulerName bind the same pods."
)


class _Meta(Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Item(Struct):
    metadata: _Meta
    spec: LeaseSpec | None = None


class _Leases(Struct):
    items: list[_Item] | None = None


_LEASES = msgspec.json.Decoder(_Leases)


@dataclass(frozen=True, slots=True)
class Leaders:
    """The sentences about operators, one for each Lease. `leads`: one of them is held; None if that is not known."""

    sentences: Sequence[str]
    leads: bool | None


async def read_leaders(session: ApiSession) -> Leaders:
    """Who holds the Leases that gangsched has created, in all namespaces.

    Raises:
        ApiUnreachable: there was no answer.
    """
    found: dict[_Meta, _Item] = {}
    # Before they had the label they could be found by the default name alone.
    for params in ({"labelSelector": f"{LABEL}={VALUE}"}, {"fieldSelector": f"metadata.name={_NAME}"}):
        answer = await session.request("GET", f"/apis/{API_VERSION}/leases", params=params)
        try:
            found |= {each.metadata: each for each in _LEASES.decode(answer.checked().body).items or ()}
        except (ApiError, *UNREADABLE) as error:
            told = error.message if isinstance(error, ApiError) else str(error)
            return Leaders((f"Whether an operator leads cannot be seen, because the API server says: {told}",), None)
    if not found:
        told = (
            "No operator leads: there is no Lease of gangsched in any namespace; install gangsched, or see whether it "
            "runs with --no-leader-elect."
        )
        return Leaders((told,), leads=False)
    held = [(each, _is_held(each.spec or LeaseSpec())) for each in found.values()]
    number = sum(yes for _, yes in held)
    # A Lease that nobody holds any more is news only if no other is held.
    told_of = [_sentence(each, held=yes) for each, yes in held if yes or not number]
    return Leaders((*told_of, *([_SEVERAL] if number > 1 else [])), number > 0)


def _is_held(spec: LeaseSpec) -> bool:
    if not spec.holder_identity or not spec.renew_time:
        return False
    try:
        renewed = parse_time(spec.renew_time)
    except ValueError:
        return False
    return time.time() < renewed + (spec.lease_duration_seconds or 0)


def _sentence(item: _Item, *, held: bool) -> str:
    spec, lease = item.spec or LeaseSpec(), f"{item.metadata.namespace}/{item.metadata.name}"
    if held:
        return f"An operator leads: {spec.holder_identity} holds the Lease {lease}."
    since = f" since {spec.renew_time}" if spec.renew_time else ""
    return (
        f"No operator leads: nobody has held the Lease {lease}{since}; look at the operator's pods and their logs, or "
        "install gangsched again if it was uninstalled."
    )


def waiting(events: Sequence[Event], *, policy: Policy, now: float) -> Iterator[Finding]:
    """The groups and plain pods of which not all members that are needed have a node, in the order of their turn."""
    machine = Machine(policy)
    machine.handle([without_back_offs(event) for event in events], now)
    for finding in Findings(machine).all():
        gang = machine.gangs[finding.key]
        bound = sum(bool(pod.node) for pod in gang.live())
        short = bound < finding.minimum and finding.phase != Phase.SUSPENDED
        if short or (finding.plain and not bound):
            yield _as_it_is(finding, gang)


def _as_it_is(finding: Finding, gang: Gang) -> Finding:
    """The copy may have decided to bind it, which the operator is still to do."""
    decided = any(binding.state is BindState.SENT for binding in gang.bindings.values())
    return replace(finding, reason="", message=FITS) if decided else finding


def text(found: Sequence[Finding], leaders: Leaders, width: int) -> Iterator[str]:
    """The lines for a person."""
    for sentence in leaders.sentences:
        yield from wrapped(sentence, width, head="")
    yield ""
    if not found:
        yield "No group and no pod of gangsched waits."
    for finding in found:
        kind = "pod" if finding.plain else number_of_all(finding.members, finding.minimum, "member", "exists", "exist")
        told = " ".join(part for part in (finding.phase, finding.reason) if part)
        yield f"{finding.key}: {told} ({kind})"
        yield from wrapped(finding.message, width, head="  ")


def as_json(found: Sequence[Finding], leaders: Leaders) -> dict[str, object]:
    """The same for a program."""
    return {
        "operatorLeads": leaders.leads,
        "operators": list(leaders.sentences),
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
            for finding in found
        ],
    }
