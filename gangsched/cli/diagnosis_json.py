"""What `gangsched explain -o json` tells a program."""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.cli.diagnosis import Diagnosis, Shortfall
from gangsched.cli.live import Reading
from gangsched.cli.nodegroups import NodeGroup
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.status import Demand
from gangsched.core.planning.refusal import Obstacle


def as_object(
    diagnosis: Diagnosis, reading: Reading, *, nobody: Sequence[str], notes: Sequence[str]
) -> dict[str, object]:
    """The diagnosis; `nobody` says why no operator acts, `notes` by which settings was decided."""
    return {
        "namespace": diagnosis.key.namespace,
        "name": diagnosis.key.name,
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
        "noOperator": list(nobody),
        "settings": list(notes),
    }


def _group_json(group: NodeGroup) -> dict[str, object]:
    return {
        "name": group.name,
        "shared": dict(group.shared),
        "nodes": group.nodes,
        "members": group.members,
        "obstacles": _obstacles_json(group.obstacles),
    }


def _obstacles_json(obstacles: Sequence[Obstacle]) -> list[dict[str, object]]:
    return [{"reason": each.reason, "resource": each.resource, "nodes": each.nodes} for each in obstacles]


def _demand_json(demand: Demand) -> dict[str, object]:
    return {
        "count": demand.count,
        "requests": {resource: format_amount(resource, amount) for resource, amount in demand.requests},
        "domain": demand.domain or None,
    }


def _shortfall_json(shortfall: Shortfall) -> dict[str, object]:
    return {
        "wanted": shortfall.wanted,
        "fits": shortfall.fits,
        "lacks": {resource: format_amount(resource, amount) for resource, amount in shortfall.lacks},
        "nodes": shortfall.nodes,
        "obstacles": _obstacles_json(shortfall.gaps[0].obstacles),
        "gaps": [{"members": gap.members, "obstacles": _obstacles_json(gap.obstacles)} for gap in shortfall.gaps],
        "nodeGroups": list(map(_group_json, shortfall.groups)),
        "resource": shortfall.resource,
        "heldBy": [
            {
                "namespace": holder.namespace,
                "name": holder.name,
                "amount": format_amount(shortfall.resource, amount),
            }
            for holder, amount in shortfall.held
        ],
        "ahead": [{"namespace": key.namespace, "name": key.name} for key in shortfall.ahead],
    }
