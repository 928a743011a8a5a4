"""The pre-bindings: writes to other objects that members with a place on a snapshot need before they are bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding
from gangsched.core.planning.capacity_snapshot import Snapshot


def prebindings(snapshot: Snapshot, places: Iterable[tuple[Pod, str]]) -> Mapping[str, Sequence[Prebinding]]:
    """The pre-bindings that constraints require, by the member's UID. Call this once for each member placed."""
    asking = [plan for plan in snapshot.having["prebindings"] if plan.selective]
    asked: dict[str, Sequence[Prebinding]] = {}
    if not asking:
        return asked
    for pod, node in places:
        row = snapshot.cluster.capacity.rows[node]
        one = [prebinding for plan in asking for prebinding in plan.prebindings(pod, row)]
        if one:
            asked[pod.uid] = one
    return asked
