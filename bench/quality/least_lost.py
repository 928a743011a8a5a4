"""The units that must leave at the least lost work, by OR-tools' CP-SAT: of the lowest level first, like everybody."""

from __future__ import annotations

from collections import Counter, defaultdict

from ortools.sat.python import cp_model

from bench.quality.crowded import RACK, Crowded

_MOST_S = 60.0
_SCALE = 1000.0
_MIB = 1 << 20


def least_lost(instance: Crowded) -> frozenset[int]:
    """The units of the optimum.

    Raises:
        TimeoutError: the solver has not proved that within a minute.
    """
    for level in sorted({unit.level for unit in instance.units}):
        found = _solved(instance, level)
        if found is not None:
            return found
    raise ValueError(f"whoever leaves, the gang of instance {instance.seed} is not placed")


def _solved(instance: Crowded, level: int) -> frozenset[int] | None:
    """The best of units up to this level; None if they are not enough."""
    model, removable = cp_model.CpModel(), instance.removable
    leaves = [model.new_bool_var(unit.name) for unit in instance.units]
    freed: dict[tuple[str, str], list[cp_model.LinearExprT]] = defaultdict(list)
    for at, unit in enumerate(instance.units):
        if removable.levels[at] > level:
            model.add(leaves[at] == 0)
        for other in removable.along.get(at, ()):
            model.add(leaves[at] <= leaves[other])
        for claim in unit.claims:
            for resource, amount in claim.pod.shape.requests:
                freed[claim.node, resource].append(_scaled(resource, amount) * leaves[at])
    asked: dict[tuple[str, str], list[cp_model.LinearExprT]] = defaultdict(list)
    in_rack: dict[str, list[cp_model.LinearExprT]] = defaultdict(list)
    for shape, number in Counter(pod.shape for pod in instance.ask.members).items():
        placed = list[cp_model.LinearExprT]()
        for name, node in instance.cluster.nodes.items():
            here = model.new_int_var(0, number, name)
            placed.append(here)
            in_rack[dict(node.labels)[RACK]].append(here)
            for resource, amount in shape.requests:
                asked[name, resource].append(_scaled(resource, amount) * here)
        model.add(sum(placed) == number)
    capacity = instance.cluster.capacity
    for (name, resource), several in asked.items():
        free = _scaled(resource, capacity.free_of(capacity.rows[name], resource))
        model.add(sum(several) <= free + sum(freed[name, resource]))
    if instance.ask.topology is not None:
        chosen = {rack: model.new_bool_var(rack) for rack in in_rack}
        model.add_exactly_one(chosen.values())
        for rack, several in in_rack.items():
            model.add(sum(several) <= len(instance.ask.members) * chosen[rack])
    model.minimize(sum(round(_SCALE * cost) * leaves[at] for at, cost in enumerate(instance.costs.tolist())))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = _MOST_S
    found = solver.solve(model)
    if found == cp_model.INFEASIBLE:
        return None
    if found != cp_model.OPTIMAL:
        raise TimeoutError(f"no optimum of instance {instance.seed} was proved within {_MOST_S:.0f} s")
    return frozenset(at for at, leaving in enumerate(leaves) if solver.value(leaving))


def _scaled(resource: str, amount: int) -> int:
    """Memory in MiB, so that sums stay far below the solver's limits."""
    return amount // _MIB if resource == "memory" else amount
