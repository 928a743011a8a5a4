"""Reconciles one gang with what was observed: the only way in which a gang advances.

`reconcile` drops bindings that the cluster has overtaken, reads the terms from everything that declares the gang, lets
members take the reservations of their placeholders, and lets the gang's life go on (`gang.life`) until it is known what
the gang wants. A scheduling cycle may place that. `conclude` then finds the phase and the effects that are due.
"""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.automatic import idle_of, recreates_all
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.minima import minima
from gangsched.core.declarations.resolution import resolve
from gangsched.core.declarations.terms import Terms
from gangsched.core.declarations.waves import lowered_to, wave_of
from gangsched.core.gang import (
    bindings,
    clock,
    life,
    making,
    parts,
    placeholders,
    prebinding,
    preempted,
    rollback,
    runs,
    wants,
)
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.states import Facts, settle
from gangsched.core.gang.turn import Turn, is_remade
from gangsched.core.gang.wants import Want
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome, Phase


def reconcile(
    gang: Gang,
    cluster: Cluster,
    *,
    policy: Policy,
    priority_classes: PriorityClasses,
    foreign: Foreign,
    avoidance: Avoidance,
    now: float,
) -> tuple[Assessment, list[Effect]]:
    """Bring the gang up to date. Returns its assessment, with its wants for a scheduling cycle, and the effects due."""
    bindings.reconcile(gang, cluster)
    effects = prebinding.go_on(gang, cluster, avoidance, policy=policy, now=now) if gang.operations.prepares else []
    live = gang.update_ownership(policy.owner_guard, foreign)
    terms = resolve(
        gang.key,
        gang.observed.group,
        live or gang.gated(),
        policy=policy,
        priority_classes=priority_classes,
        foreign=foreign,
        volumes=cluster.volumes,
        devices=cluster.devices,
        terminating=cluster.terminating,
    )
    if not gang.plain:
        runs.note_workload(gang, live)
        terms = _as_workload_says(gang, terms, foreign)
    hindrance = terms.hindrance.reason if terms.hindrance is not None else None
    gang.operations.contradicted = hindrance is Reason.CONTRADICTION
    gang.operations.note_undeclared(now if hindrance is Reason.POD_GROUP_NOT_FOUND else 0.0)
    effects += placeholders.settle(gang, cluster, terms)
    gang.roster.keep(gang.observed.pods)
    return _advanced(Turn(gang, cluster, terms, policy=policy, now=now, live=live)), effects


def _as_workload_says(gang: Gang, terms: Terms, foreign: Foreign) -> Terms:
    """Note the state of the workload, if the gang has one. Returns the terms with what it still owes."""
    workload, namespace = gang.record.workload, gang.key.namespace
    if workload is None:
        gang.observed.note_workload(None, None, recreates_all=False, given_up=False)
        return terms
    wave = wave_of(gang.key, workload, gang.observed.pods.values(), terms, foreign=foreign)
    gang.observed.note_workload(
        None if wave is not None and wave.at_once else wave,
        idle_of(workload, namespace, foreign),
        recreates_all=recreates_all(workload, namespace, foreign),
        given_up=wave is not None and wave.given_up,
    )
    return lowered_to(terms, wave, runs.counting(gang)) if wave is not None else terms


def _advanced(turn: Turn) -> Assessment:
    """Let the gang's life go on, and find what it wants.

    If that is no quorum any more, why the last one of a scheduled gang did not fit is past.
    """
    life.go_on(turn)
    gang, progress, want = turn.gang, turn.progress, Want()
    waits = progress.complete and bool(progress.eligible or progress.to_come)
    if waits and rollback.may_plan(gang, turn.now) and not is_remade(gang):
        capped = gang.record.capped is not None and gang.record.capped.until
        members = [*progress.eligible, *(() if capped else progress.to_come)]
        moves = placeholders.moving(gang, progress.eligible) if gang.operations.mismatched else ()
        closed = parts.closed(gang, turn.now) if gang.operations.parts else wants.NONE_CLOSED
        want = wants.want_of(gang, turn.census, turn.terms, turn.need, members, moves=moves, closed=closed)
    if gang.record.scheduled_at and want.quorum is None:
        gang.wait.forget_refusal()
    return Assessment(
        census=turn.census,
        terms=turn.terms,
        complete=progress.complete,
        want=want,
        surplus=progress.surplus,
        aged=clock.raised_by(gang, turn.policy.aging, turn.now),
        timed_out=turn.timed_out,
        newly_scheduled=turn.newly_scheduled,
    )


def conclude(
    gang: Gang,
    cluster: Cluster,
    assessment: Assessment,
    *,
    tried: bool,
    policy: Policy,
    avoidance: Avoidance,
    now: float,
) -> tuple[Assessment, list[Effect]]:
    """End what a call does about the gang, which a scheduling cycle may have `tried` to place since.

    Returns what is still wanted, with the phase and when the gang is due again, and the effects that are due now.
    """
    again = tried and gang.operations.prepares
    effects = prebinding.go_on(gang, cluster, avoidance, policy=policy, now=now) if again else []
    if tried:
        assessment = _advanced(Turn(gang, cluster, assessment.terms, policy=policy, now=now))
    if gang.wait.outside and gang.record.clock_start and not assessment.census.held:
        # A group that may not be tried does not time out.
        gang.change(clock_start=0.0)
    facts = _facts(gang, assessment.census, complete=assessment.complete, now=now, policy=policy)
    phase = settle(gang.record.phase, facts)
    if phase is not gang.record.phase:
        gang.change(phase=phase, running_at=gang.record.running_at or (now if phase is Phase.RUNNING else 0.0))
    needs_group = making.wanted(gang, assessment.terms)
    if not gang.durability.asked_at and (needs_group or _must_be_durable(gang, assessment.census)):
        gang.durability.ask(now)
    effects += making.ask(gang, assessment.terms, now, needed=needs_group)
    evicts = gang.operations.rollback is not None and not rollback.may_plan(gang, now)
    effects += rollback.go_on(gang, now) or _withdraw_hopeless(gang, assessment)
    resent, retry_at = bindings.resend_due(gang, now)
    effects += resent
    minimum = gang.record.minimum if gang.record.scheduled_at else minima(assessment.terms.spec).total
    # Once all that is left is spared, the gang is planned again.
    due = now if evicts and rollback.may_plan(gang, now) else _due(gang, assessment, facts, policy, now, retry_at)
    return replace(assessment, facts=facts, minimum=minimum, due=due), effects


def _withdraw_hopeless(gang: Gang, assessment: Assessment) -> list[Effect]:
    """Withdraw the bindings of a quorum whose members disagree (rule 15), or that is unbound and cannot be completed.

    It cannot be completed if a member lost its reservation and found no other, or if the PodGroup is gone (rule 10).
    """
    lost = gang.wait.refusal is not None or assessment.terms.undeclared
    if gang.operations.contradicted or (lost and not gang.record.scheduled_at and not assessment.census.bound):
        return bindings.withdraw(gang.operations.bindings.values())
    return []


def _must_be_durable(gang: Gang, census: Census) -> bool:
    """Whether reservations outlive the scheduling cycle, so that they must be written before use (design rule 4)."""
    if census.held or (census.begun and gang.shows_another_run()):
        return True
    if gang.observed.group is None or gang.record.scheduled_at:
        return False
    return any(binding.tries for binding in census.begun if binding.state is BindState.HELD)


def _facts(gang: Gang, census: Census, *, complete: bool, now: float, policy: Policy) -> Facts:
    """The facts from which the table in `states` finds the phase."""
    record = gang.record
    scheduled = bool(record.scheduled_at) and not record.ended
    unconfirmed = () if scheduled else census.begun
    sent = any(binding.state is BindState.SENT for binding in unconfirmed)
    short = bool(gang.operations.short_since) and (
        record.late or now >= gang.operations.short_since + policy.degraded_after_s
    )
    rolling_back = (
        gang.operations.rollback is not None and now >= gang.operations.rollback.since + policy.degraded_after_s
    )
    return Facts(
        complete=complete,
        held=(bool(unconfirmed) and not sent) or (record.capped is not None and not scheduled and bool(census.bound)),
        binding=sent or (gang.operations.rollback is not None and not rolling_back and not scheduled),
        quorum_running=scheduled and census.running + census.done >= record.minimum,
        was_scheduled=scheduled,
        degraded=short or rolling_back,
        backing_off=now < record.retry_at,
        failed_for_good=record.outcome is Outcome.OUT_OF_TIME,
        ended_well=record.outcome is Outcome.SUCCEEDED,
        ended_badly=record.outcome is Outcome.FAILED,
        suspended=not census.live and gang.observed.idle is not None and not gang.observed.idle.ended,
    )


def _due(gang: Gang, assessment: Assessment, facts: Facts, policy: Policy, now: float, retry_at: float) -> float:
    """When, in epoch seconds, the gang must be reconciled even without an event; its next binding is due then."""
    record, census, terms = gang.record, assessment.census, assessment.terms
    due = [
        gang.wait.pause.until,
        clock.next_raise(gang, policy.aging, now),
        retry_at,
        making.due(gang),
        prebinding.next_due(gang, policy) if gang.operations.prepares else clock.NEVER,
    ]
    if gang.operations.placeholders_made:
        expires, held_until = placeholders.expires(gang, terms), placeholders.held_until(gang, terms)
        # While no member is bound, the group's clock releases reservations, once no binding is in flight.
        due.append(expires if record.scheduled_at or census.bound else clock.NEVER)
        if held_until < expires:
            due.append(held_until)
    if gang.operations.rollback is not None or gang.operations.parting is not None or gang.operations.parts:
        due += [rollback.next_due(gang), parts.due(gang, policy)]
    if gang.operations.rollback is not None:
        given_up_at = preempted.given_up_at(gang)
        due.append(given_up_at if given_up_at > now else clock.NEVER)
        if not facts.degraded:
            due.append(gang.operations.rollback.since + policy.degraded_after_s)
    if record.capped is not None and record.capped.until:
        due.append(record.capped.until)
    # Members stay barred beyond the run in which they were refused, for example if the PodGroup was replaced.
    due += [barred.until for barred in gang.operations.barred.values() if barred.until]
    if record.scheduled_at:
        if gang.operations.short_since and not facts.degraded:
            due.append(gang.operations.short_since + policy.degraded_after_s)
        return min(due)
    if gang.operations.partial_since and (gang.operations.rollback is None or gang.operations.rollback.retried):
        due.append(gang.operations.partial_since + rollback.lasts_s(policy))
    if record.outcome is not Outcome.OUT_OF_TIME:
        due.append(record.retry_at or clock.runs_out(gang, census, terms, policy))
    return min(due)
