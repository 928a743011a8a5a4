"""Checks that no term of leadership exceeds capacity, both by what its machine knew and by what happened.

`overcommitted` replays a recording with its own accounting, far simpler than the product's (`tests.ledger`). Whenever
the machine decides a binding, the new pod must fit the node, as the machine knew it, beside everything that the machine
knew to be there (from a watch, or as the outcome of a binding of an earlier term) and beside its own earlier decisions
that were not refused. A refused decision no longer counts, though the machine may still hold the reservation, so the
check is never stricter than the rule.

`overbound` reads the API server's watch in order. Whenever one of our pods is bound, it must fit beside all pods on the
node that the term's machine must have known: those whose binding it decided itself, and those that are older than the
process and so were in its first lists. It skips bindings that two terms decided and those known only from a list,
because their origin, or what was beside them, is unknown.

Neither checks a pod of another scheduler or of an earlier term (of this process or another) that landed before the
machine could know of it. No client of the API can exclude that, and the kubelet then rejects the later pod (`OutOf…`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gangsched.core.objects.effects import BindPod
from tests.faults.history import Bound
from tests.faults.objects import Json, allocatable_of, excess
from tests.faults.recording import Recording
from tests.ledger import Ledger


def overcommitted(recording: Recording) -> list[str]:
    """Each binding that the machine decided although it knew that the pod did not fit."""
    known = Ledger()
    wrong = []
    for turn in recording.turns:
        known.hear(turn.events)
        for effect in turn.effects or ():
            if isinstance(effect, BindPod):
                found = known.decide(effect)
                wrong += [f"at {turn.now:.3f} it bound {effect.namespace}/{effect.name} to {found}"] if found else []
    return wrong


@dataclass(frozen=True, kw_only=True)
class Term:
    """One machine: its process's start time in epoch seconds, and the UIDs of the pods whose binding it decided."""

    name: str
    started: float
    sent: frozenset[str]


def sent_by(recording: Recording) -> frozenset[str]:
    """The UIDs of all pods whose binding the machine decided."""
    effects = (effect for turn in recording.turns for effect in turn.effects or ())
    return frozenset(effect.uid for effect in effects if isinstance(effect, BindPod))


def overbound(bindings: Sequence[Bound], allocatables: Mapping[str, Json], terms: Sequence[Term]) -> Iterator[str]:
    """Each binding that overcommitted a node, by what its term must have known."""
    by_uid = {bound.uid: bound for bound in bindings}
    for bound in bindings:
        senders = [term for term in terms if bound.uid in term.sent]
        if not bound.ours or bound.gap or len(senders) != 1:
            continue
        (sender,) = senders
        beside = [by_uid[uid] for uid in bound.beside]
        known = [other for other in beside if other.uid in sender.sent or other.at < sender.started]
        allocatable = allocatable_of(allocatables[bound.node])
        if over := excess([each.requests for each in (*known, bound)], allocatable):
            yield f"{sender.name} bound {bound.key} to node {bound.node}, which then had {over}"
