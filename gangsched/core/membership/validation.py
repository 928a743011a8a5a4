"""Checks that membership follows what the pods say, and that gangs keep nothing of pods that are gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from gangsched.core.cluster.claims import Kind
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey


def contradictions(members: Members, beside: Collection[str]) -> Iterator[str]:
    """The contradictions, each in a sentence. The claims `beside` those of bindings, by UID, are expected.

    Gangs that are still to be reconciled (dirty, or large and postponed) may keep outdated pods.
    """
    yield from _membership(members)
    yield from _places(members, beside)
    yield from members.undeclared.validate()
    yield from members.installations.validate()
    for key, gang in members.gangs.items():
        if key not in members.dirty and not gang.reconcile_not_before:
            yield from _left_over(members, gang)


def _membership(members: Members) -> Iterator[str]:
    pods = members._cluster.pods
    expected: dict[str, GroupKey] = {}
    for key, gang in members.gangs.items():
        for uid, pod in (*gang.observed.pods.items(), *gang.observed.foreign_pods.items()):
            if pods.get(uid) != pod:
                yield f"{key}: {uid} is known in another form"
            if uid in expected:
                yield f"{key}: {uid} is in {expected[uid]} as well"
            expected[uid] = key
    if members._key_of != expected:
        yield "the index of gangs by pod differs from the pods of the gangs"
    for uid in members._cluster.flights:
        if uid not in pods or pods[uid].node:
            yield f"{uid}: the nodes of its bindings are kept although it does not wait"


def _places(members: Members, beside: Collection[str]) -> Iterator[str]:
    """Check that every binding has its claim on a node, and every such claim its binding."""
    cluster = members._cluster
    for key, gang in members.gangs.items():
        for uid, binding in gang.operations.bindings.items() if key not in members.dirty else ():
            if cluster.node_of(uid) != binding.node:
                yield f"{key}: {uid} is bound to {binding.node} but counted on {cluster.node_of(uid)}"
    for uid, claim in cluster.ledger.claims.items():
        if claim.kind in (Kind.ASSUMED, Kind.HELD):
            owner = members.gang_of(uid)
            known = owner is not None and (uid in owner.operations.bindings or owner.key in members.dirty)
            if uid not in beside and not known and cluster.flights.of(uid) is None:
                yield f"{uid}: claims {claim.node} though nothing binds it there"


def _left_over(members: Members, gang: Gang) -> Iterator[str]:
    """Find what a gang keeps of pods that it no longer has."""
    if members.finished(gang):
        yield f"{gang.key}: nothing declares it any more"
    remembered: tuple[tuple[str, Iterable[str]], ...] = (
        *((name, getattr(gang.roster, name)) for name in ("inherited", "past", "recorded", "chosen", "leaving")),
        ("former", gang.observed.ownership.former),
        *((name, getattr(gang.operations, name)) for name in ("doubted", "mismatched", "barred")),
        ("written", gang.written.members),
        *(("evicted", doing.evictions.of()) for doing in gang.operations.rollbacks(retried=True)),
        ("reported as foreign", gang.written.foreign_pods),
    )
    for name, uids in remembered:
        gone = [uid for uid in uids if uid not in gang.observed.pods and uid not in gang.observed.foreign_pods]
        if gone:
            yield f"{gang.key}: {', '.join(sorted(gone))} of those {name} are gone"
