"""Which members a rollback leaves where they are: those that nothing would make again (contract rule 13)."""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.results import OwnerSeen


def why_spared(pod: Pod, owners: Mapping[str, OwnerSeen]) -> str | None:
    """Why an undo leaves the member where it is; empty if it is evicted, None while its Job is being asked about."""
    owner = pod.owner
    if owner is None:
        return "no controller would make it again"
    if owner.kind == "Node" and not owner.api_group:
        return "it belongs to its node"
    if not _is_job(owner):
        return ""
    known = owners.get(owner.uid)
    return None if known is None else known.why


def _is_job(owner: Owner) -> bool:
    return owner.kind == "Job" and owner.api_group == "batch"
