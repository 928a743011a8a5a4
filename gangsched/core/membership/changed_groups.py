"""Continues what was begun with a member whose group has become a part of a tree, or is none any more."""

from __future__ import annotations

from gangsched.core.gang import parts
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.steps import begin_quorum
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.record import Minima


def continue_in_tree(former: Gang, gang: Gang, pod: Pod) -> None:
    """Continue what was begun with this member, bound or being bound, whose own group has become a part of a tree."""
    role = role_of(pod)
    if former.key.name != role or former.record.quorum is None:
        return
    gang.roster.inherit(pod.uid)
    if gang.record.scheduled_at:
        needs = {role: former.record.quorum.total}
        parts.begin(gang, [pod], needs=needs, since=former.operations.partial_since)


def continue_part(former: Gang, gang: Gang, pod: Pod) -> None:
    """Continue what a tree began with this member, whose own group is no part of the tree any more (rule 10)."""
    role = role_of(pod)
    part = former.operations.part_of(pod.uid)
    together = dict(former.record.quorum.roles) if former.record.quorum is not None else part.needs if part else {}
    if role and gang.key.name == role and role in together:
        if gang.record.quorum is None and not gang.record.scheduled_at:
            begin_quorum(gang, Minima(together[role]))
        if pod.node:
            gang.roster.inherit(pod.uid)
