"""What would help a group that is refused, as far as the refusal itself tells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gangsched.core.constraints import registry
from gangsched.core.gang.assessment import Assessment
from gangsched.core.objects.status import LONGEST_HELP, MOST_HELPS
from gangsched.core.objects.wording import number_of, shortened
from gangsched.core.planning.refusal import Refusal
from gangsched.core.status.explanation import oversized
from gangsched.core.status.holders import amounts


def helps(refusal: Refusal, assessment: Assessment) -> tuple[str, ...]:
    """The first remedies, each of limited length, for the status."""
    return tuple(shortened(remedy, LONGEST_HELP) for remedy in islice(remedies(refusal, assessment), MOST_HELPS))


def remedies(refusal: Refusal, assessment: Assessment) -> Iterator[str]:
    """The remedies, as clauses: "… would help". Ends of other groups are not among them."""
    if refusal.paused:
        yield "the end of the pause, or a change of the node or of the pods that fail there"
        return
    if refusal.unlabelled:
        yield f"the label {refusal.unlabelled} on nodes, or no topology"
        return
    request = amounts(refusal.failing.shape.requests)
    where = "".join(f" in one domain of {key}" for key, _ in refusal.within)
    if refusal.oversized:
        yield from oversized(refusal)
    elif refusal.start is not None:
        yield f"{amounts(refusal.short)} more, free anywhere in the cluster, or lower minResources"
        return
    elif refusal.short and (refusal.accepted or not refusal.obstacles):
        per_member = f", {request} per member" if len(refusal.classes) == 1 else ""
        yield f"{amounts(refusal.short)} more on nodes that accept its members{where}{per_member}"
    elif refusal.lacking or not refusal.obstacles:
        yield f"nodes with {request} free{where} for each member that does not fit"
    for obstacle in refusal.obstacles:
        words = registry.words_of(obstacle.reason)
        if words is not None and words.remedy:
            yield words.remedy.format(nodes=number_of(obstacle.nodes, "node"), resource=obstacle.resource)
    spec = assessment.terms.spec
    enough = len(assessment.census.bound) + refusal.fits
    if not spec.roles and 0 < enough < spec.min_member:
        yield f"a minimum of at most {enough}: that many members fit now"
