"""Creates and deletes PodGroups."""

from __future__ import annotations

from gangsched.api.conversion import made_group
from gangsched.api.podgroup_names import PATH
from gangsched.core.objects.effects import DeleteGroup, MakeGroup
from gangsched.core.objects.results import GroupNotMade
from gangsched.kube.client.paths import quoted, within
from gangsched.kube.client.session import ApiSession, Response
from gangsched.kube.writing.sending import answered, conflicts, deletion, send
from gangsched.kube.writing.write_results import Outcome, WriteResult


async def make_group(session: ApiSession, effect: MakeGroup) -> WriteResult:
    """Create the PodGroup; `STALE` if one with its name exists.

    In both cases only the watch reports the PodGroup: an answer that arrives after its deletion would revive it.
    """
    key = effect.key
    body = made_group(key, effect.spec, effect.owner, scheduler=effect.scheduler)
    path = within(PATH, key.namespace)
    answer = await send(session, "POST", path, body)
    if isinstance(answer, Response):
        return WriteResult(Outcome.WRITTEN)
    if conflicts(answer):
        return WriteResult(Outcome.STALE)
    message = f"the PodGroup {key.name}, which must record its reservation, was not created: {answer}"
    return WriteResult(Outcome.REFUSED, GroupNotMade(key, message), message=message)


async def delete_group(session: ApiSession, effect: DeleteGroup) -> WriteResult:
    """Delete the PodGroup; `STALE` if it has changed, or another one has its name."""
    path = f"{within(PATH, effect.key.namespace)}/{quoted(effect.key.name)}"
    answer = await send(session, "DELETE", path, deletion(effect.uid, version=effect.resource_version))
    return answered(answer, conflict=Outcome.STALE)
