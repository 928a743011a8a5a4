"""Writes and deletes palantir's Demand objects."""

from __future__ import annotations

from gangsched.core.objects.effects import DropDemand, PutDemand
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import MERGE_PATCH, ApiSession
from gangsched.kube.foreign.demand_objects import demand_to_object, demands_path
from gangsched.kube.writing.sending import answered, deletion, send
from gangsched.kube.writing.write_results import Outcome, WriteResult


async def put_demand(session: ApiSession, effect: PutDemand) -> WriteResult:
    """Create the Demand object, or change the one with the effect's UID; `STALE` if its name is taken."""
    body = demand_to_object(effect.demand)
    path = demands_path(effect.key.namespace)
    if not effect.uid:
        return answered(await send(session, "POST", path, body), conflict=Outcome.STALE)
    body["metadata"]["uid"] = effect.uid
    # In a merge patch a null removes a previous zone.
    body["spec"].setdefault("zone", None)
    return answered(await send(session, "PATCH", f"{path}/{quoted(effect.key.name)}", body, content_type=MERGE_PATCH))


async def drop_demand(session: ApiSession, effect: DropDemand) -> WriteResult:
    """Delete the Demand object if its UID still matches."""
    path = f"{demands_path(effect.key.namespace)}/{quoted(effect.key.name)}"
    return answered(await send(session, "DELETE", path, deletion(effect.uid)), conflict=Outcome.GONE)
