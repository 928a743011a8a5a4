"""Capacity is never exceeded by one term of leadership: checked from what its machine was told and from what happened.

`overcommitted` reads a recording with an accounting of its own, far simpler than the product's (`tests.ledger`). At
each binding that the machine decides, everything that it had been told to be on the node by then (by a watch, or as the
outcome of a binding of an earlier term), its own earlier decisions that are not answered with a refusal, and the
newcomer must fit what it had been told of the node. A decision that was refused counts no longer, though the machine
may still hold the place: the check is on the safe side, never stricter than the rule.

`overbound` reads what the API server's watch told, in its order. At each binding of a pod of ours, all that stood on
the node then and of which the term's machine must have known, because it had decided those bindings itself or they were
older than the process and so in its first lists, must fit beside the newcomer. Bindings that two terms decided, and
those that a list had to tell of, are passed over: whose they are or what was beside them is not known.

What neither checks is a pod of another scheduler, or of an earlier term, of this process or another, that landed while
the machine could not know of it: no client of the API can exclude that, and the kubelet then refuses the later one
(`OutOf…`).
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
    """Each binding that the machine decided though, by what it knew, there was no room."""
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
    """One machine: when its process was started, in epoch seconds, and the pods whose binding it decided, by UID."""

    name: str
    started: float
    sent: frozenset[str]


def sent_by(recording: Recording) -> frozenset[str]:
    """The UIDs of all pods whose binding the machine decided."""
    effects = (effect for turn in recording.turns for effect in turn.effects or ())
    return frozenset(effect.uid for effect in effects if isinstance(effect, BindPod))


def overbound(bindings: Sequence[Bound], allocatables: Mapping[str, Json], terms: Sequence[Term]) -> Iterator[str]:
    """Each binding after which a node carried more than it has, by what its term must have known."""
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
