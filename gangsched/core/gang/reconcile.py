"""Reconciles one gang with what was observed: the only way in which a gang advances.

`reconcile` drops bindings that the cluster has overtaken, reads the terms from everything that declares the gang, lets
members take the reservations of their placeholders, and advances the life cycle until it is known what the gang wants.
A scheduling cycle may place that. `conclude` then finds the phase and the effects that are due.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.automatic import idle_of, recreates_all
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.resolution import resolve
from gangsched.core.declarations.waves import lowered_to, wave_of
from gangsched.core.gang import bindings, caps, lifecycle, making, placeholders, prebinding, rollback, runs
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason


def reconcile(
    gang: Gang,
    cluster: Cluster,
    *,
    policy: Policy,
    priority_classes: Mapping[str, int],
    foreign: Foreign,
    avoidance: Avoidance,
    now: float,
) -> tuple[Assessment, list[Effect]]:
    """Bring the gang up to date. Returns its assessment, with its wants for a scheduling cycle, and the effects due."""
    bindings.reconcile(gang, cluster)
    effects = prebinding.go_on(gang, cluster, avoidance, policy=policy, now=now)
    live = gang.update_ownership(policy.owner_guard, foreign)
    terms = resolve(
        gang.key,
        gang.observed.group,
        live,
        policy=policy,
        priority_classes=priority_classes,
        foreign=foreign,
        volumes=cluster.volumes,
        devices=cluster.devices,
    )
    if not gang.plain:
        runs.note_workload(gang, live)
        workload, namespace = gang.record.workload, gang.key.namespace
        wave = wave_of(gang.key, workload, gang.observed.pods.values(), terms, foreign=foreign)
        gang.observed.note_workload(
            None if wave is not None and wave.at_once else wave,
            idle_of(workload, namespace, foreign),
            recreates_all=recreates_all(workload, namespace, foreign),
            given_up=wave is not None and wave.given_up,
        )
        terms = lowered_to(terms, wave, runs.done(gang)) if wave is not None else terms
    contradicted = terms.hindrance is not None and terms.hindrance.reason is Reason.CONTRADICTION
    gang.observed.note_contradiction(contradicted=contradicted)
    effects += placeholders.settle(gang, cluster, terms)
    caps.keep(gang, cluster, terms, now=now, policy=policy)
    return lifecycle.advance(gang, cluster, terms, now=now, policy=policy), effects


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
    effects: list[Effect] = []
    if tried:
        effects += prebinding.go_on(gang, cluster, avoidance, policy=policy, now=now)
        caps.keep(gang, cluster, assessment.terms, now=now, policy=policy)
        assessment = lifecycle.advance_tried(gang, cluster, assessment.terms, now=now, policy=policy)
    assessment = lifecycle.conclude(gang, assessment, now=now, policy=policy)
    if _must_be_durable(gang, assessment):
        gang.durability.ask(now)
    effects += making.ask(gang, assessment.terms, now)
    effects += rollback.go_on(gang, now) or _withdraw_hopeless(gang, assessment)
    effects += bindings.resend_due(gang, now)
    due = (assessment.due, bindings.next_retry(gang), rollback.next_due(gang), making.due(gang))
    return replace(assessment, due=min(*due, prebinding.next_due(gang, policy))), effects


def _withdraw_hopeless(gang: Gang, assessment: Assessment) -> list[Effect]:
    """Withdraw the bindings of a quorum whose members disagree (rule 15), or that is unbound and cannot be completed.

    It cannot be completed if a member lost its reservation and found no other, or if the PodGroup is gone (rule 10).
    """
    if gang.observed.contradicted:
        return bindings.withdraw(gang.operations.bindings.values())
    lost = gang.attempt.refusal is not None or assessment.terms.undeclared
    lost = lost and not gang.record.scheduled_at and not assessment.census.bound
    return bindings.withdraw(gang.operations.bindings.values()) if lost else []


def _must_be_durable(gang: Gang, assessment: Assessment) -> bool:
    """Whether reservations outlive the scheduling cycle, so that they must be written before use (design rule 4)."""
    if gang.durability.asked_at:
        return False
    if gang.operations.placeholders() or making.wanted(gang, assessment.terms):
        return True
    return (
        gang.observed.group is not None
        and not gang.record.scheduled_at
        and any(each.state is BindState.HELD and each.tries for each in gang.operations.bindings.values())
    )
