"""Sentences about the open plan of a group: who leaves for it, or from when on its places are reserved."""

from __future__ import annotations

from gangsched.core.gang.gang import Gang
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.wording import counted, moment, number_of


def waits_for_victims(gang: Gang) -> str:
    """How many pods leave for it, and of how many groups; none is named, because they may be of other namespaces."""
    plan = gang.operations.plan
    if plan is None:
        return ""
    before = gang.written.status.conditions if plan.former and gang.written.status is not None else ()
    for condition in before:
        # Who leaves for the plan of a former leader is not known yet; that leader has said it.
        if condition.reason == Reason.WAITS_FOR_VICTIMS:
            return condition.message
    groups = f", {counted(len(plan.whole), 'whole group', 'is', 'are')} among them" if plan.whole else ""
    pods = counted(len(plan.leaving - plan.held), "pod", "leaves", "leave")
    bound = f"Its {number_of(len(plan.places), 'member')} will be bound once there is room"
    if not plan.units:
        return f"{bound}: {pods} already."
    return f"{bound}: {pods} for it, because its priority is higher{groups}."


def reserved_later(gang: Gang) -> str:
    """From when on places are reserved for the group, and for how many others it waits there."""
    plan = gang.operations.plan
    if plan is None or plan.start is None:
        return ""
    members, nodes = number_of(len(plan.places), "member"), number_of(len(plan.nodes), "node")
    if plan.start == float("inf"):
        return (
            f"Places for {members} are reserved on {nodes} and used once the pods there have ended; nobody knows when, "
            "because some have neither activeDeadlineSeconds nor a declared run time."
        )
    return (
        f"Places for {members} are reserved on {nodes} from {moment(plan.start)} on; until then pods use them that "
        "will have ended by that time."
    )
