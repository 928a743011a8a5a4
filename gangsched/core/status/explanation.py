"""Sentences that explain why a gang waits, what is missing and which groups hold it.

Groups of the gang's own namespace may be named; others are only counted (contract rule 16).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints import registry
from gangsched.core.constraints.volume_binding import BoundTo
from gangsched.core.declarations.minima import rest_of
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import role_of
from gangsched.core.objects.record import Minima
from gangsched.core.objects.start import Start
from gangsched.core.objects.status import Demand
from gangsched.core.objects.wording import moment, number_of, number_of_all
from gangsched.core.planning.expansion import only_by_name
from gangsched.core.planning.refusal import Gap, Obstacle, Refusal
from gangsched.core.status.ahead import Ahead, holds_up
from gangsched.core.status.holders import NAMED, Holders, amounts, joined

REASONS = 6
"""Maximum number of reasons listed for nodes that refuse members, the most frequent first."""
_ASKING = {"it": "it asks", "them": "each member asks", "the others": "each of the others asks"}


def incomplete(assessment: Assessment, *, created_again: bool = False) -> str:
    """How many members are still to be created, and of which roles; or created again, as their controller does."""
    live = len(assessment.census.live)
    if assessment.terms.spec.tree is not None:
        exist = "exists" if live == 1 else "exist"
        return f"{number_of(live, 'member')} {exist}; missing: {missing_parts(assessment)}."
    minimum = assessment.terms.spec.minimum
    parts = []
    if assessment.missing:
        parts.append(f"{_members(assessment.missing)} needed{' again' if created_again else ', or a lower minimum'}")
    roles = ", ".join(f"{number} of role {role}" for role, number in sorted(assessment.missing_roles.items()))
    if roles:
        parts.append(f"missing by role: {roles}")
    if not parts:
        parts.append("some of them exceed maxMember and do not count")
    exist = number_of_all(live, minimum, "member", "exists", "exist")
    return f"{exist}; {'; '.join(parts)}. {assessment.terms.sequential_note}".rstrip()


def incomplete_part(rest: Minima) -> str:
    """Why the members of a part of a group wait although the group's minimum is bound: this is missing of the part."""
    return (
        f"The {rest.name or 'rest'} is bound as a whole, above the minimum of the group; missing: {_missing_of(rest)}."
    )


def missing_parts(assessment: Assessment) -> str:
    """What a group with a tree lacks of members that exist, as clauses; empty if it lacks nothing."""
    least = assessment.terms.spec.tree
    by_role = Counter(map(role_of, assessment.census.live))
    return _missing_of(rest_of(least, by_role)) if least is not None else ""


def _missing_of(rest: Minima) -> str:
    """What is missing, as clauses: members of groups, and groups of which only some are needed."""
    parts = [f"{number_of(number, 'member')} of the group {role}" for role, number in rest.roles if number]
    for choice in rest.choices:
        needed = f"{number_of(choice.least, 'more group')} of the {choice.name}"
        if not choice.parts:
            parts.append(f"{needed}, which has no other")
            continue
        nearest = min(choice.parts, key=lambda part: part.total)
        parts.append(f"{needed} (the {nearest.name} lacks {number_of(nearest.total, 'member')})")
    return "; ".join(parts)


def refused(refusal: Refusal, *, holders: str = "", ahead: str = "") -> str:
    """Why the quorum does not fit: what is missing, how many nodes by reason, the holders and the groups ahead."""
    if refusal.paused:
        fits = f"Elsewhere {refusal.fits} of {number_of(refusal.wanted, 'member')} fit" if refusal.nodes > 1 else ""
        return ". ".join(part for part in (refusal.paused, fits) if part) + "."
    if refusal.unlabelled:
        return f"No node has the label {refusal.unlabelled} of its topology: label the nodes, or remove the topology."
    if refusal.start is not None or refusal.reserved_until:
        head = _not_started(refusal, refusal.start) if refusal.start is not None else _kept_off(refusal)
        return ". ".join(filter(None, (head, holders, ahead))) + "."
    if refusal.exhausted and not refusal.never:
        head = (
            f"Places for {refusal.fits} of {refusal.wanted} members were found within the limit of the search, which "
        )
        head += "may have missed some; it is repeated once something changes, and is easier if more members are alike"
    elif refusal.wanted == 1:
        head = "No node has room"
    elif refusal.fits:
        head = f"Only {refusal.fits} of {refusal.wanted} members fit"
    else:
        head = f"None of {refusal.wanted} members fits"
    them = "it" if refusal.wanted == 1 else "them"
    for domain in refusal.within:
        head = _within(head, refusal.wanted, domain)
    if not refusal.nodes:
        head += ": there are no nodes"
    elif not refusal.accepted:
        head += f": no node accepts {_those(refusal)}"
    elif refusal.oversized:
        head += f": {'; '.join(oversized(refusal))}"
    elif refusal.never:
        head += f", and the present nodes could not take {them} even if they were empty"
    head += "" if refusal.demand else f"; a new node would not help{_why_no_node_helps(refusal, them)}"
    if refusal.oversized:
        holders = ""  # what is free does not matter
    elif refusal.short and refusal.accepted:
        head += f"; missing on the nodes that accept {them}: {amounts(refusal.short)}"
    elif refusal.fragmented:
        request = amounts(refusal.failing.shape.requests)
        head += f"; enough is free in total, but no node that accepts {_those(refusal)} has {request} left for one more"
    nodes = ". ".join(_gap(refusal, gap) for gap in refusal.gaps if gap.obstacles)
    return ". ".join(part for part in (head, nodes, holders, ahead) if part) + "."


def oversized(refusal: Refusal) -> list[str]:
    """A clause, with the remedy, for each resource that no node offers, or offers enough of for one member."""
    those, them = _those(refusal), "it" if refusal.wanted == 1 else "them"
    subject = _ASKING.get(those, f"{those} ask")
    more = " or add a larger node" if refusal.demand else ""
    parts = []
    for resource, amount, offered in refusal.oversized:
        asked, largest = amounts([(resource, amount)]), amounts([(resource, offered)])
        plug_in = " (is its device plug-in running?)" if "/" in resource else ""
        parts.append(
            f"{subject} {asked}, and the largest node that accepts {them} has {largest}; ask for less{more}"
            if offered
            else f"no node that accepts {those} offers {resource}{plug_in}"
        )
    return parts


def _those(refusal: Refusal) -> str:
    """Of whom is true what is known of the class `failing` only."""
    if refusal.wanted == 1 or len(refusal.classes) == 1:
        return "it" if refusal.wanted == 1 else "them"
    without = "the others" if refusal.fits else "them"
    return without if set(refusal.missing) == {refusal.failing} else f"some of {without}"


def demanded(demand: Sequence[Demand]) -> str:
    """What new nodes must provide, in human-readable form: `3 × {cpu 2, memory 4Gi} in domain a`."""
    return ", ".join(
        f"{unit.count} × {{{amounts(unit.requests)}}}{f' in domain {unit.domain}' if unit.domain else ''}"
        for unit in demand
    )


def _not_started(refusal: Refusal, start: Start) -> str:
    """Why the group may not start: less is free than its minResources."""
    asked, missing = amounts(start.asked), amounts(refusal.short)
    head = f"No member is bound before its minResources ({asked}) are free: missing {missing}"
    if start.promised:
        head += f"; {amounts(start.promised)} of what is free is needed by groups that have started"
    if refusal.never:
        head += "; the present nodes do not have as much even if they were empty"
    return head


def _kept_off(refusal: Refusal) -> str:
    """From when on the nodes that it needs are reserved, and how it may use them before."""
    head = f"It would fit, but {number_of(refusal.wanted, 'member')} would be on nodes that are reserved"
    if refusal.reserved_until == float("inf"):
        return f"{head} for a group that has waited for long and starts as soon as enough pods there have ended"
    return (
        f"{head} from {moment(refusal.reserved_until)} on: it is bound before that if expectedRunTime in its PodGroup, "
        "or activeDeadlineSeconds of its pods, says that it ends by then"
    )


def _why_no_node_helps(refusal: Refusal, them: str) -> str:
    if any(not sight.ready for member in refusal.missing if (sight := member.sight(BoundTo)) is not None):
        return f" before {'its' if refusal.wanted == 1 else 'their'} PersistentVolumeClaims are ready"
    if refusal.waits_for_pods:
        return f" before the pods that {'its' if refusal.wanted == 1 else 'their'} affinity asks for are there"
    if not any(map(only_by_name, refusal.missing)):
        return f": {'it' if refusal.wanted == 1 else 'they'} must be on the node of those placed already"
    return f": only nodes named beforehand take {them}"


def _within(head: str, wanted: int, domain: Domain) -> str:
    key, value = domain
    if wanted == 1:
        return f"{head} in the domain {key}={value}"
    return f"{head} into one domain of {key} ({value} was tried: it has most room, or members already)"


def ahead_of(own: Sequence[GroupKey], others: int) -> str:
    """The groups that are tried before another one: some of its namespace by name, others and plain pods by number."""
    return f"Ahead of it: {joined([str(key) for key in own], others)}" if own or others else ""


def quorum_refused(gang: Gang, priority: int, holders: Holders, line: Ahead) -> str:
    """Why the quorum of a gang of this priority does not fit, with the holders and the groups ahead.

    Empty if the quorum was not refused.
    """
    refusal = gang.wait.refusal
    if refusal is None:
        return ""
    held = holders.sentence(gang.key, refusal, priority)
    if not holds_up(gang.wait):
        return refused(refusal, holders=held)
    own, number = line.first(gang.key, holders.contending(refusal), most=NAMED)
    return refused(refusal, holders=held, ahead=ahead_of(own, others=number - len(own)))


def _gap(refusal: Refusal, gap: Gap) -> str:
    """Why nodes refuse the members of one class; their number is given unless they are all that have no place."""
    parts = [_obstacle(obstacle) for obstacle in gap.obstacles[:REASONS]]
    if len(gap.obstacles) > REASONS:
        parts.append(number_of(len(gap.obstacles) - REASONS, "more reason"))
    nodes, without = number_of(refusal.nodes, "node"), refusal.wanted - refusal.fits
    head = f"Of {nodes}" if gap.members == without else f"For {gap.members} of {without} without a place, of {nodes}"
    return f"{head}: {'; '.join(parts)}"


def _obstacle(obstacle: Obstacle) -> str:
    words = registry.words_of(obstacle.reason)
    wording = words.description.format(resource=obstacle.resource) if words is not None else "outside that domain"
    return f"{obstacle.nodes} {wording}"


def _members(number: int) -> str:
    return "1 more member is" if number == 1 else f"{number} more members are"
