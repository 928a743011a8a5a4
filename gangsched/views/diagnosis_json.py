"""Encodes a diagnosis as JSON, for `gangsched explain -o json` and the operator's answers, and decodes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta, Struct

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.quantity import amount, format_amount
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import Demand
from gangsched.core.planning.refusal import Gap, Obstacle
from gangsched.views.diagnosed import Diagnosis, PodShares, Shortfall
from gangsched.views.nodegroups import NodeGroup


class Coverage(Protocol):
    """How much of the cluster could be read."""

    @property
    def forbidden(self) -> str:
        """Why only the status could be read; empty if more could."""
        ...

    @property
    def hidden(self) -> Sequence[str]:
        """What could not be read, a sentence for each kind."""
        ...


class _FullCoverage:
    forbidden = ""
    hidden: Sequence[str] = ()


FULL_COVERAGE: Coverage = _FullCoverage()
"""Nothing was hidden."""


def as_object(
    diagnosis: Diagnosis,
    reading: Coverage = FULL_COVERAGE,
    *,
    no_operator: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> dict[str, object]:
    """The diagnosis as a JSON object; `no_operator` says why no operator acts, `notes` which settings were used."""
    return {
        "namespace": diagnosis.key.namespace,
        "name": diagnosis.key.name,
        "resource": diagnosis.resource,
        "phase": diagnosis.phase,
        "reason": diagnosis.reason,
        "message": diagnosis.message,
        "minimum": diagnosis.minimum,
        "members": diagnosis.members,
        "bound": diagnosis.bound,
        "source": diagnosis.source or None,
        "besides": list(diagnosis.besides),
        "shortfall": None if diagnosis.shortfall is None else _shortfall_json(diagnosis.shortfall),
        "helps": list(diagnosis.helps),
        "demand": [_demand_json(demand) for demand in diagnosis.demand],
        "fromStatusAlone": reading.forbidden or None,
        "hidden": reading.hidden,
        "noOperator": list(no_operator),
        "settings": list(notes),
    }


def _group_json(group: NodeGroup) -> dict[str, object]:
    return {
        "name": group.name,
        "shared": dict(group.shared),
        "first": list(group.first),
        "nodes": group.nodes,
        "members": group.members,
        "obstacles": _obstacles_json(group.obstacles),
    }


def _obstacles_json(obstacles: Sequence[Obstacle]) -> list[dict[str, object]]:
    return [{"reason": each.reason, "resource": each.resource, "nodes": each.nodes} for each in obstacles]


def _demand_json(demand: Demand) -> dict[str, object]:
    return {
        "count": demand.count,
        "requests": {resource: format_amount(resource, size) for resource, size in demand.requests},
        "domain": demand.domain or None,
    }


def _shortfall_json(shortfall: Shortfall) -> dict[str, object]:
    return {
        "wanted": shortfall.wanted,
        "fits": shortfall.fits,
        "lacks": {resource: format_amount(resource, size) for resource, size in shortfall.lacks},
        "nodes": shortfall.nodes,
        "obstacles": _obstacles_json(shortfall.gaps[0].obstacles),
        "gaps": [{"members": gap.members, "obstacles": _obstacles_json(gap.obstacles)} for gap in shortfall.gaps],
        "nodeGroups": list(map(_group_json, shortfall.groups)),
        "resource": shortfall.resource,
        "heldBy": [
            {
                "namespace": holder.namespace,
                "name": holder.name,
                "amount": format_amount(shortfall.resource, size),
            }
            for holder, size in shortfall.held
        ],
        "heldByOthers": shortfall.held_by_others,
        "ahead": [{"namespace": key.namespace, "name": key.name} for key in shortfall.ahead],
        "othersAhead": shortfall.others_ahead,
        "keptFor": _shares_json(shortfall.resource, shortfall.kept_for),
        "stuckTerminating": _shares_json(shortfall.resource, shortfall.stuck),
    }


def _shares_json(resource: str, shares: PodShares) -> dict[str, object]:
    return {
        "pods": list(shares.names),
        "otherPods": shares.others,
        "amount": format_amount(resource, shares.amount),
    }


# Decoding


class _Group(Struct):
    namespace: str
    name: str
    amount: str = "0"


class _Gap(Struct):
    members: int
    obstacles: list[Obstacle]


class _NodeGroup(Struct):
    shared: dict[str, str]
    nodes: int
    members: int
    obstacles: list[Obstacle]
    first: list[str] = []


class _Demand(Struct):
    count: int
    requests: dict[str, str]
    domain: str | None = None


class _Shares(Struct, frozen=True, rename="camel"):
    pods: list[str] = []
    other_pods: int = 0
    amount: str = "0"


class _Shortfall(Struct, rename="camel"):
    wanted: int
    fits: int
    nodes: int
    lacks: dict[str, str]
    gaps: Annotated[list[_Gap], Meta(min_length=1)]
    resource: str
    held_by: list[_Group]
    ahead: list[_Group]
    node_groups: list[_NodeGroup]
    held_by_others: int = 0
    others_ahead: int = 0
    kept_for: _Shares = _Shares()
    stuck_terminating: _Shares = _Shares()


class _DiagnosisJson(Struct, rename="camel"):
    namespace: str
    name: str
    phase: str
    reason: str
    message: str
    minimum: int
    members: int
    bound: int
    source: str | None
    besides: list[str]
    shortfall: _Shortfall | None
    helps: list[str]
    demand: list[_Demand]


def from_json(text: bytes) -> Diagnosis:
    """The diagnosis that `as_object` encoded. Unknown keys, of a newer version, are ignored.

    Raises:
        msgspec.DecodeError, InvalidQuantity, UnicodeDecodeError, RecursionError: the text is not such a diagnosis.
    """
    decoded = msgspec.json.decode(text, type=_DiagnosisJson)
    return Diagnosis(
        key=GroupKey(decoded.namespace, decoded.name),
        phase=decoded.phase,
        reason=decoded.reason,
        message=decoded.message,
        minimum=decoded.minimum,
        members=decoded.members,
        bound=decoded.bound,
        source=decoded.source or "",
        besides=decoded.besides,
        shortfall=None if decoded.shortfall is None else _shortfall(decoded.shortfall),
        helps=decoded.helps,
        demand=[Demand(each.count, _amounts(each.requests), each.domain or "") for each in decoded.demand],
    )


def _shortfall(decoded: _Shortfall) -> Shortfall:
    return Shortfall(
        wanted=decoded.wanted,
        fits=decoded.fits,
        nodes=decoded.nodes,
        lacks=_amounts(decoded.lacks),
        gaps=[Gap(gap.members, tuple(gap.obstacles)) for gap in decoded.gaps],
        resource=decoded.resource,
        held=[(GroupKey(each.namespace, each.name), amount(decoded.resource, each.amount)) for each in decoded.held_by],
        held_by_others=decoded.held_by_others,
        ahead=[GroupKey(each.namespace, each.name) for each in decoded.ahead],
        others_ahead=decoded.others_ahead,
        groups=[
            NodeGroup(
                shared=tuple(group.shared.items()),
                nodes=group.nodes,
                first=group.first,
                members=group.members,
                obstacles=group.obstacles,
            )
            for group in decoded.node_groups
        ],
        kept_for=_shares(decoded.resource, decoded.kept_for),
        stuck=_shares(decoded.resource, decoded.stuck_terminating),
    )


def _shares(resource: str, decoded: _Shares) -> PodShares:
    return PodShares(decoded.pods, decoded.other_pods, amount(resource, decoded.amount))


def _amounts(decoded: Mapping[str, str]) -> Amounts:
    return tuple((resource, amount(resource, text)) for resource, text in decoded.items())
