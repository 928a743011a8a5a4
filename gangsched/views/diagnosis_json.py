"""Encodes a diagnosis as JSON, for `gangsched explain -o json`."""

from __future__ import annotations

from collections.abc import Sequence

from gangsched.api.times import format_if_set
from gangsched.core.contention.prospects import Prospect
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.status import Demand, Fitting
from gangsched.core.planning.refusal import Obstacle
from gangsched.views import expected_starts
from gangsched.views.diagnosed import Diagnosis, PodShares, Shortfall
from gangsched.views.nodegroups import NodeGroup


def as_object(
    diagnosis: Diagnosis,
    *,
    forbidden: str = "",
    hidden: Sequence[str] = (),
    no_operator: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> dict[str, object]:
    """The diagnosis as a JSON object.

    `forbidden` says why only the status could be read, and `hidden`, a sentence for each kind, what else could not;
    both are empty if all could. `no_operator` says why no operator acts, `notes` which settings were used.
    """
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
        "preemption": None if diagnosis.preemption is None else _preemption_json(diagnosis.preemption),
        "aged": diagnosis.aged,
        "expectedStart": expected_starts.as_object(diagnosis.starts, diagnosis.key.namespace),
        "since": format_if_set(diagnosis.since),
        "fitting": [_fitting_json(kind) for kind in diagnosis.fitting],
        "fromStatusAlone": forbidden or None,
        "hidden": hidden,
        "noOperator": list(no_operator),
        "settings": list(notes),
    }


def _preemption_json(prospect: Prospect) -> dict[str, object]:
    plan = prospect.plan
    opened = None if plan is None else {"pods": plan.pods, "groups": plan.groups, "since": format_if_set(plan.since)}
    return {
        "plan": None if plan is None or opened is None else {**opened, "expires": format_if_set(plan.expires)},
        "never": prospect.bar,
        "notBefore": format_if_set(prospect.due),
        "wouldLeave": {"pods": prospect.pods, "groups": prospect.groups},
        "fitsWithoutTerminating": prospect.fits,
        "obstacles": {why.value: number for why, number in prospect.obstacles.items()},
        "protectedUntil": format_if_set(prospect.protected_until),
        "searchExhausted": prospect.exhausted,
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
    return [
        {"reason": obstacle.reason, "resource": obstacle.resource, "nodes": obstacle.nodes} for obstacle in obstacles
    ]


def _demand_json(demand: Demand) -> dict[str, object]:
    return {
        "count": demand.count,
        "requests": {resource: format_amount(resource, size) for resource, size in demand.requests},
        "domain": demand.domain or None,
    }


def _fitting_json(fitting: Fitting) -> dict[str, object]:
    return {"members": fitting.members, "nodes": fitting.nodes, "shared": dict(fitting.shared)}


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
        "ahead": [{"namespace": key.namespace, "name": key.name} for key in shortfall.ahead],
        "keptFor": _shares_json(shortfall.resource, shortfall.kept_for),
        "stuckTerminating": _shares_json(shortfall.resource, shortfall.stuck),
    }


def _shares_json(resource: str, shares: PodShares) -> dict[str, object]:
    return {
        "pods": list(shares.names),
        "amount": format_amount(resource, shares.amount),
    }
