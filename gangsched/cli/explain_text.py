"""The text that `gangsched explain` prints for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangsched.api.times import format_time
from gangsched.cli.group_reader import Reading
from gangsched.cli.output import UNWRAPPED, USUAL, wrapped
from gangsched.core.contention.bars import Bar
from gangsched.core.contention.pool import Obstacle as Staying
from gangsched.core.contention.prospects import Prospect
from gangsched.core.objects.expected_start import Basis, ExpectedStart
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.status import Fitting
from gangsched.core.objects.wording import number_of
from gangsched.core.planning.refusal import Obstacle
from gangsched.core.status.explanation import demanded
from gangsched.core.status.holders import amounts
from gangsched.views.diagnosed import Diagnosis, Shortfall
from gangsched.views.expected_starts import why_unknown
from gangsched.views.resource_names import GANG, OWN

_WHOLE = Reading(group=None)
"""Nothing was hidden."""
_NAMED = 8
_REASONS = 3
_BARS = {
    Bar.DISABLED: "preemption.enabled is false in the operator's settings",
    Bar.NEVER: "its preemptionPolicy is Never",
    Bar.NUMBER: "its priority is a bare number, which only orders groups: name a PriorityClass instead",
    Bar.CLASS: "the preemptionPolicy of its PriorityClass is Never",
    Bar.MEMBERS: "the preemptionPolicy of a member that has its priority is Never",
}
_OBSTACLES = {
    Staying.PRIORITY: "of equal or higher priority",
    Staying.BUDGET: "kept by a PodDisruptionBudget",
    Staying.REFUSED: "that the API server has refused to evict, or that have left for it in vain",
    Staying.SCHEDULER: "of other schedulers or installations",
    Staying.NODE: "of nodes, of DaemonSets or critical for the system",
    Staying.BUDGETS: "under more than one PodDisruptionBudget, which are never evicted",
    Staying.PROTECTED: "of groups that have not run for long enough",
    Staying.UNCONTROLLED: "that no controller would create again, or whose Job would count a failure",
    Staying.IN_FLIGHT: "of groups that are being bound, leave already, or cannot be read",
}
_BASES = {
    None: "",
    Basis.ROOM: "as soon as those ahead have their places",
    Basis.VICTIMS: "once those that are evicted for it have left",
    Basis.LIMITS: "when others reach their limits",
    Basis.DECLARED: "if others end when they have declared to",
    Basis.HISTORY: "if others take as long as the last runs of their owners",
}
_TIMED_OUT = (
    "it found no room within its maxScheduleTime; it is tried again after a back-off, or as soon as a change may help"
)
_WRITTEN = "this is what the operator wrote into the PodGroup's status, because you may not read the rest"


def lines(
    diagnosis: Diagnosis, reading: Reading = _WHOLE, width: int = USUAL, remarks: Sequence[str] = ()
) -> Iterator[str]:
    """The lines about a group; `remarks` are sentences about operators and settings."""
    state = " ".join(part for part in (diagnosis.phase or "(no status)", diagnosis.reason) if part)
    yield f"{diagnosis.key}: {state}"
    members, least = diagnosis.members, diagnosis.minimum
    exist = f"{members} exist, {least} needed" if members > least else f"{members} of {least} exist"
    exist = exist if least else f"{members} exist"
    rows = [("members", f"{exist}, {diagnosis.bound} bound")]
    if diagnosis.source:
        rows.append(("declared", f"by {diagnosis.source}{_object(diagnosis)}"))
    if diagnosis.since:
        rows.append(("since", format_time(diagnosis.since, to_the_second=True)))
    if diagnosis.aged:
        rows.append(("priority", f"{diagnosis.place}, {diagnosis.aged} of it by waiting"))
    if diagnosis.shortfall is None:
        rows.append(("why", diagnosis.message))
        rows += [("fits" if not number else "", _fitting(kind)) for number, kind in enumerate(diagnosis.fitting)]
    else:
        if diagnosis.phase == Phase.TIMED_OUT:
            rows.append(("timed out", _TIMED_OUT))
        if diagnosis.phase == Phase.DEGRADED:
            rows.append(("why", diagnosis.message))
        rows += _shortfall_rows(diagnosis.shortfall)
    if diagnosis.starts is not None:
        rows.append(("starts", _starts(diagnosis.starts, diagnosis.key.namespace)))
    if diagnosis.preemption is not None:
        rows.append(("preempts", _preemption(diagnosis.preemption)))
    rows += [("besides", sentence) for sentence in diagnosis.besides]
    if diagnosis.demand:
        rows.append(("new nodes", f"would need room for {demanded(diagnosis.demand)}"))
    rows += [("would help" if not number else "", sentence) for number, sentence in enumerate(diagnosis.helps)]
    if reading.forbidden:
        rows.append(("note", f"{_WRITTEN}: {reading.forbidden}"))
    rows += [("note", remark) for remark in (*remarks, *reading.hidden) if remark != diagnosis.message]
    for head, text in rows:
        yield from wrapped(text, width, head=f"  {head:<10}  ")
    if diagnosis.shortfall is not None and diagnosis.shortfall.groups:
        yield from _table(diagnosis.shortfall, width if width < UNWRAPPED else USUAL)


def _starts(starts: ExpectedStart, namespace: str) -> str:
    """Between when it will start, on what that relies, or why it is not known."""
    why = why_unknown(starts, namespace)
    window = f"not before {format_time(starts.earliest, to_the_second=True)}" if starts.earliest else ""
    if starts.latest:
        by = f"by {format_time(starts.latest, to_the_second=True)}"
        window = f"{window} and {by}" if window else f"{by} at the latest"
    if not window:
        return f"unknown: {why}"
    return f"{window}, {_BASES[starts.basis]}{f'; by when is unknown: {why}' if why else ''}"


def _preemption(prospect: Prospect) -> str:
    """The open plan, or who leaves next, or why nobody does."""
    if prospect.plan is not None:
        plan = prospect.plan
        since = f" since {format_time(plan.since, to_the_second=True)}" if plan.since else ""
        until = format_time(plan.expires, to_the_second=True)
        leave = _leaving(plan.pods, plan.groups)
        return f"{leave}{since}; the plan is given up if they are still there at {until}"
    if prospect.bar is not None:
        return f"nobody, because {_BARS[prospect.bar]}"
    due = f", not before {format_time(prospect.due, to_the_second=True)}" if prospect.due else ""
    if prospect.pods:
        return f"{_leaving(prospect.pods, prospect.groups)} next{due}"
    if prospect.fits:
        return "nobody, because it fits once the pods that terminate are gone"
    reasons = [f"{number_of(number, 'pod')} {_OBSTACLES[why]}" for why, number in prospect.obstacles.items()]
    if prospect.protected_until:
        reasons.append(f"the first protection ends at {format_time(prospect.protected_until, to_the_second=True)}")
    if prospect.exhausted:
        reasons.append("there may be a way, which was not found within the limit of the search")
    if not reasons:
        reasons.append("it would not fit even if all pods of lower priority left")
    return f"nobody{due}: {'; '.join(reasons)}"


def _leaving(pods: int, groups: int) -> str:
    of = f" of {number_of(groups, 'group')}" if groups else ""
    return f"{number_of(pods, 'pod')}{of} {'leaves' if pods == 1 else 'leave'} for it"


def _object(diagnosis: Diagnosis) -> str:
    """The object of another system that declares the group, as kubectl names it; empty if there is none."""
    return "" if diagnosis.resource in (OWN, GANG) else f": {diagnosis.resource}/{diagnosis.key.name}"


def _fitting(fitting: Fitting) -> str:
    """How many members fit on which kind of nodes."""
    kind = " ".join(value for _, value in fitting.shared)
    nodes = number_of(fitting.nodes, "node" if kind else "other node")
    return f"{number_of(fitting.members, 'member')} on {nodes}{f': {kind}' if kind else ''}"


def _shortfall_rows(shortfall: Shortfall) -> Iterator[tuple[str, str]]:
    yield "fits", f"{shortfall.fits} of {shortfall.wanted} that must fit together"
    first, *others = shortfall.gaps
    if shortfall.lacks:
        yield "lacks", f"{amounts(shortfall.lacks)} more than is free on the nodes that accept its members"
    elif any(obstacle.reason == NodeReason.INSUFFICIENT for obstacle in first.obstacles):
        yield "lacks", "nothing in total: the free resources are on too many nodes in too small pieces, or not usable"
    else:
        yield "lacks", "nothing in total"
    yield "nodes", ": ".join(filter(None, (str(shortfall.nodes), _refusals(first.obstacles))))
    yield from (("", f"for {gap.members} more: {_refusals(gap.obstacles)}") for gap in others)
    holders = [f"{holder} ({amounts([(shortfall.resource, amount)])})" for holder, amount in shortfall.held]
    if holding := _first_names(holders):
        yield "held by", holding
    for head, pods in (("kept for", shortfall.kept_for), ("stuck", shortfall.stuck)):
        if names := _first_names(pods.names):
            yield head, f"{names} ({amounts([(shortfall.resource, pods.amount)])})"
    yield "ahead", _first_names([str(key) for key in shortfall.ahead]) or "no waiting group"


def _table(shortfall: Shortfall, width: int) -> Iterator[str]:
    """Where members fit, by groups of nodes, and why each group refuses one more."""
    without = shortfall.wanted - shortfall.fits
    number = shortfall.gaps[0].members
    others = "the others" if number == without else f"{number} of the {without} others"
    yield f"  where members fit, and what refuses {others}:"
    yield "    NODES  MEMBERS  NODE GROUP"
    for group in shortfall.groups:
        yield from wrapped(group.name, width, head=f"    {group.nodes:>5}  {group.members:>7}  ")
        yield from wrapped(_refusals(group.obstacles), width, head=" " * 20)


def _refusals(obstacles: Sequence[Obstacle]) -> str:
    """The most frequent reasons, each after its number of nodes."""
    refusals = [f"{obstacle.nodes} {obstacle.reason} {obstacle.resource}".rstrip() for obstacle in obstacles[:_REASONS]]
    more = [f"{len(obstacles) - _REASONS} more"] if len(obstacles) > _REASONS else []
    return "; ".join([*refusals, *more])


def _first_names(names: Sequence[str]) -> str:
    """The first names, and the number of the rest."""
    parts = [", ".join(names[:_NAMED])] if names else []
    if len(names) > _NAMED:
        parts.append(f"{len(names) - _NAMED} more")
    return " and ".join(parts)
