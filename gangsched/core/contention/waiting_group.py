"""A group that waits, as its expected start is found out: what it asks, and how long it stays once it has started."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec.structs import replace

from gangsched.core.contention.asking import refused
from gangsched.core.contention.ends import LIMITED, UNKNOWN, end_of, expected_end
from gangsched.core.contention.former_runs import FormerRuns
from gangsched.core.contention.outlook import AT_ONCE_S, MOST_IN_LINE
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang import clock
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.expansion import HOSTNAME
from gangsched.core.planning.field import Field
from gangsched.core.planning.taking import Waiting

_AT_ANY_TIME_S = AT_ONCE_S / MOST_IN_LINE


class WaitingGroup(NamedTuple):
    """A group as it waits, by what it is expected to do and by what is certain.

    `depends`: amounts tell too little, or nodes are closed to it for a while. It was `refused` for room, or is held up
    by others. `ports` are those of its members' nodes that they use.
    """

    expected: Waiting
    certain: Waiting
    depends: bool
    refused: bool
    ports: frozenset[int]


def as_it_waits(
    gang: Gang,
    assessment: Assessment,
    ask: Ask,
    field: Field,
    foreign: Foreign,
    *,
    former: FormerRuns,
    policy: Policy,
    now: float,
) -> WaitingGroup | None:
    """The group, which asks so, as it waits; None if devices decide."""
    chosen = _needed(ask)
    shapes = {pod.shape for pod in chosen}
    if any(pod.device_claims for pod in chosen) or any(map(field.is_delegated, shapes)):
        return None
    holds_from, plan, reserved, until = NEVER, gang.operations.plan, None, NEVER
    age_s = policy.reservations.starvation_age_s
    if plan is not None:
        holds_from = 0.0
        reserved = field.reserved(plan.places, min(UNKNOWN, plan.expires if plan.start is None else plan.start))
    elif age_s and not gang.plain and gang.operations.complete_since:
        holds_from = gang.operations.complete_since + age_s
    if assessment.terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        until = clock.runs_out(gang, assessment.census, assessment.terms, policy)
    waits = replace(field.waiting(gang.key, ask, chosen, holds_from), reserved=reserved, until=until)
    ends = [end_of(pod, gang, foreign, now) for pod in chosen]
    early = [expected_end(pod, end, former.end_of(pod, gang, now), now) for pod, end in zip(chosen, ends, strict=True)]
    expected = max((end.at for end in early), default=now)
    certain = max((end.certain for end in ends), default=now)
    doubt = max((end.doubt for end in early), default=LIMITED)
    return WaitingGroup(
        replace(waits, lasts_s=_lasting(max(expected, now + _AT_ANY_TIME_S), now), doubt=doubt),
        replace(waits, lasts_s=_lasting(certain, now)),
        depends=any(map(_depends, shapes)) or _has_parts(ask) or _needs_a_start(assessment) or bool(ask.pause),
        refused=refused(gang, assessment) is not None,
        ports=frozenset(port.port for shape in shapes for port in shape.host_ports),
    )


def _lasting(end: float, now: float) -> float:
    """So many seconds from now; infinity if nothing tells when that is."""
    return end - now if end < UNKNOWN else NEVER


def _needed(ask: Ask) -> list[Pod]:
    """As many members as are needed, the minima of roles first."""
    missing = Counter({role: need for role, need in ask.role_needs.items() if need > 0})
    chosen: list[Pod] = []
    rest: list[Pod] = []
    for pod in ask.members:
        if missing[role_of(pod)] > 0:
            missing[role_of(pod)] -= 1
            chosen.append(pod)
        else:
            rest.append(pod)
    return chosen + rest[: max(0, ask.need - len(chosen))]


def _depends(shape: Shape) -> bool:
    """Whether more than amounts decides where a member may be, beside that it wants a node for itself."""
    apart = [term for term in shape.anti_affinity if term.topology_key != HOSTNAME]
    return bool(shape.affinity or shape.spread or shape.disks or apart)


def _has_parts(ask: Ask) -> bool:
    """Whether it is in parts, or must be where members of it are already."""
    beside = ask.own and ask.topology is not None and ask.topology.required
    return bool(ask.choices or ask.levels or beside)


def _needs_a_start(assessment: Assessment) -> bool:
    """Whether more must be free before the first member than the members request."""
    return assessment.want.quorum is not None and assessment.want.quorum.start is not None
