"""Whether claims agree with the pods that have them."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.cluster.claims import ASSUMED, RESERVED, Claim, Claims, Kind
from gangsched.core.objects.pod import Pod


def claim_contradictions(claims: Claims, pods: Mapping[str, Pod]) -> list[str]:
    """One sentence for each claim that contradicts its pod, and for each pod that lacks a claim."""
    wrong = [
        f"{uid}: claims {claim.kind} {claim.node or 'no node'}, which its pod does not"
        for uid, claim in claims.items()
        if not _agrees(pods.get(uid), claim)
    ]
    unclaimed = {uid: pod for uid, pod in pods.items() if uid not in claims}
    running = {uid: pod for uid, pod in unclaimed.items() if pod.node and not pod.terminal}
    wrong += [f"{uid}: is on {pod.node} and has no claim" for uid, pod in running.items()]
    wrong += [f"{uid}: a placeholder without a claim" for uid, pod in unclaimed.items() if not pod.name]
    return wrong


def _agrees(pod: Pod | None, claim: Claim) -> bool:
    """Whether the pod's state allows the claim."""
    if claim.kind is RESERVED and not claim.pod.name:
        return pod is None  # a member to come has no placeholder before it has a place
    if pod is None or pod != claim.pod or pod.terminal:
        return False
    match claim.kind:
        case Kind.BOUND:
            return pod.node == claim.node
        case Kind.NOMINATED:
            return not pod.node and pod.nominated_node == claim.node
        case Kind.RESERVED:
            return not pod.node and claim.holder is not None
        case _:
            return not pod.node and bool(pod.name) is (claim.kind is ASSUMED)
