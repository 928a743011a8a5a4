"""How each effect of the core is executed: one row for each type in `core.objects.effects`.

A new write needs a sender in `gangsched.kube` and a row here. Backlog, executor, terms and metrics treat all alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gangsched.core.objects.effects import (
    BindPod,
    DeleteGroup,
    DropDemand,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    Prebind,
    PutCondition,
    PutDemand,
    PutPhase,
    UndoPrebinding,
    WithdrawBinding,
)
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.kube.client.session import ApiSession
from gangsched.kube.writing.binding import bind, outcome
from gangsched.kube.writing.condition_writes import Right, put_condition
from gangsched.kube.writing.demand_writes import drop_demand, put_demand
from gangsched.kube.writing.event_writes import emit_event
from gangsched.kube.writing.evictions import evict
from gangsched.kube.writing.job_policies import look_up_owner
from gangsched.kube.writing.pod_conditions import patch_condition
from gangsched.kube.writing.podgroup_writes import delete_group, make_group
from gangsched.kube.writing.prebinding_writes import about, prebind, undo_prebinding
from gangsched.kube.writing.statuses import patch_status
from gangsched.kube.writing.volcano_phases import Rival, put_phase
from gangsched.runtime.write import Lane, Retry, Table, Withdrawal, Write


def table(session: ApiSession, *, instance: str, now: Callable[[], float], rival: Rival) -> Table:
    """All rows. `instance` is the source of the Events; `now` returns the time in epoch seconds.

    No phase is written while the `rival` is active.
    """
    return {
        BindPod: Write[BindPod](
            lane=lambda effect: Lane.ABOVE if effect.above else Lane.BINDING,
            key=lambda effect: ("binding", effect.uid, effect.node),
            # If it were written after the binding, the condition would call a bound pod unscheduled.
            overrules=lambda effect: ("condition", effect.uid),
            send=partial(bind, session),
            outcome=partial(outcome, session),
            retry=Retry.NEVER,
            about=lambda effect: f"{_named(effect)} to {effect.node}",
            failed="binding refused",
        ),
        WithdrawBinding: Withdrawal[WithdrawBinding](
            key=lambda effect: ("binding", effect.uid, effect.node),
            answer=lambda effect: BindRefused(
                effect.uid, effect.node, Refused.WITHDRAWN, "it was withdrawn before it was sent"
            ),
        ),
        Prebind: Write[Prebind](
            lane=_always(Lane.ACTION),
            key=lambda effect: ("prebinding", effect.prebinding),
            overrules=lambda effect: ("undo", effect.prebinding.writes),
            send=partial(prebind, session),
            retry=Retry.NEVER,
            about=lambda effect: about(effect.prebinding),
            failed="pre-binding refused",
        ),
        UndoPrebinding: Write[UndoPrebinding](
            lane=_always(Lane.ACTION),
            key=lambda effect: ("undo", effect.prebinding.writes),
            send=partial(undo_prebinding, session),
            retry=Retry.SOME,
            about=lambda effect: about(effect.prebinding),
            done="undid a pre-binding",
            failed="undoing a pre-binding failed; it is retried",
        ),
        EvictPod: Write[EvictPod](
            lane=_always(Lane.ACTION),
            key=lambda effect: ("eviction", effect.uid),
            send=partial(evict, session),
            retry=Retry.NEVER,
            about=_named,
            done="evicted",
            failed="eviction refused",
        ),
        LookUpOwner: Write[LookUpOwner](
            lane=_always(Lane.ACTION),
            key=lambda effect: ("owner", effect.uid),
            send=partial(look_up_owner, session),
            retry=Retry.UNTIL_ANSWERED,
            about=_named,
            failed="reading a Job failed; it is retried",
        ),
        MakeGroup: Write[MakeGroup](
            lane=_always(Lane.ACTION),
            key=lambda effect: ("podgroup", effect.key),
            send=partial(make_group, session),
            retry=Retry.NEVER,
            about=_keyed,
            done="created a PodGroup that records a group's reservation",
            failed="creating a PodGroup failed",
        ),
        DeleteGroup: Write[DeleteGroup](
            # Not behind what informs people: a decision that waits grows old. There are at most 40 a second.
            lane=_always(Lane.ACTION),
            key=lambda effect: ("deletion", effect.key),
            send=partial(delete_group, session),
            # A retry would follow an old decision: a member may live by then.
            retry=Retry.NEVER,
            about=_keyed,
            done="deleted a finished PodGroup",
            failed="deleting a finished PodGroup failed; it is tried again later",
            repeated=True,
        ),
        PatchStatus: Write[PatchStatus](
            lane=_lane_of_status,
            key=lambda effect: ("status", effect.key),
            send=partial(patch_status, session),
            retry=Retry.SOME,
            about=_keyed,
        ),
        PatchPodCondition: Write[PatchPodCondition](
            lane=_always(Lane.DETAIL),
            key=lambda effect: ("condition", effect.uid),
            send=partial(patch_condition, session),
            retry=Retry.SOME,
            about=_named,
        ),
        PutDemand: Write[PutDemand](
            lane=_always(Lane.DETAIL),
            key=lambda effect: ("demand", effect.key),
            send=partial(put_demand, session),
            retry=Retry.SOME,
            about=_keyed,
            repeated=True,
        ),
        DropDemand: Write[DropDemand](
            lane=_always(Lane.DETAIL),
            key=lambda effect: ("demand", effect.key),
            send=partial(drop_demand, session),
            retry=Retry.SOME,
            about=_keyed,
            repeated=True,
        ),
        PutPhase: Write[PutPhase](
            lane=_always(Lane.RESERVATION),
            key=lambda effect: ("phase", effect.key),
            send=partial(put_phase, session, rival=rival),
            retry=Retry.SOME,
            about=_keyed,
            failed="the phase of a Volcano PodGroup is not written",
            repeated=True,
        ),
        PutCondition: Write[PutCondition](
            lane=_always(Lane.STATUS),
            key=lambda effect: ("group condition", effect.key),
            send=partial(put_condition, session, right=Right()),
            retry=Retry.SOME,
            about=_keyed,
            failed="the condition of a PodGroup of scheduling.k8s.io is not written",
            repeated=True,
        ),
        EmitEvent: Write[EmitEvent](
            lane=_always(Lane.EVENT),
            key=None,
            send=partial(emit_event, session, now=now, reporting_instance=instance),
            retry=Retry.SOME,
            about=_named,
        ),
    }


def _lane_of_status(effect: PatchStatus) -> Lane:
    reserves = effect.resource_version or effect.status.reservation is not None
    return Lane.RESERVATION if reserves else Lane.STATUS


def _always(lane: Lane) -> Callable[[object], Lane]:
    return lambda _: lane


def _named(effect: BindPod | EvictPod | LookUpOwner | PatchPodCondition | EmitEvent) -> str:
    return f"{effect.namespace}/{effect.name}"


def _keyed(effect: MakeGroup | DeleteGroup | PatchStatus | PutDemand | DropDemand | PutPhase | PutCondition) -> str:
    return str(effect.key)
