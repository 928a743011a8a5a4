"""The best outcome of an instance in the order of contract rule 6, by OR-tools' CP-SAT with all gangs known beforehand.

It optimises first whether each gang gets its minimum, in the gangs' order; then the number of members of each, in the
same order; last the fragmentation of the remaining capacity.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from ortools.sat.python import cp_model

from bench.quality.instances import ZONE, Gang, Instance, Rule
from bench.quality.outcomes import Outcome, ideal, sizes
from gangsched.core.objects.node import Node

_MOST_S = 600.0
_WHOLE = 1_000_000
_MIB = 1 << 20


def optimum(instance: Instance) -> Outcome:
    """The best outcome.

    Raises:
        TimeoutError: the solver has not proved optimality within ten minutes.
    """
    first = _Model(instance)
    first.admit()
    admitted = first.solve()
    second = _Model(instance)
    second.tidy(admitted)
    return second.solve()


def tidiest(outcome: Outcome) -> Outcome:
    """The same members, placed with the least fragmentation."""
    model = _Model(outcome.instance)
    model.tidy(outcome)
    return model.solve()


class _Model:
    """The constraints on any outcome, over the numbers of members by gang, role and node."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._model = cp_model.CpModel()
        self._free = {
            name: {resource: _scaled(resource, amount) for resource, amount in left.items()}
            for name, left in instance.free().items()
        }
        self._used: dict[tuple[str, str], list[cp_model.LinearExpr]] = defaultdict(list)
        self._on: dict[tuple[str, str, str], cp_model.IntVar] = {}
        self._whole: list[cp_model.IntVar] = []
        self._numbers: list[cp_model.IntVar] = []
        for gang in instance.gangs:
            self._add(gang)
        for (name, resource), asked in self._used.items():
            self._model.add(cp_model.LinearExpr.sum(asked) <= self._free[name].get(resource, 0))

    def _add(self, gang: Gang) -> None:
        model, nodes = self._model, [node for node in self._instance.nodes if gang.zone in ("", _zone(node))]
        admitted = model.new_bool_var(f"{gang.name} is whole")
        for kind in gang.kinds:
            for node in nodes:
                on = model.new_int_var(0, kind.count, f"{gang.name} {kind.role} on {node.name}")
                self._on[gang.name, kind.role, node.name] = on
                for resource, amount in kind.size.items():
                    if amount:
                        self._used[node.name, resource].append(_scaled(resource, amount) * on)
            here = self._number(gang.name, kind.role)
            model.add(here <= kind.count * admitted)
            model.add(here >= kind.least * admitted)
        number = model.new_int_var(0, gang.count, f"members of {gang.name}")
        model.add(number == sum(self._number(gang.name, kind.role) for kind in gang.kinds))
        model.add(number >= gang.need * admitted)
        self._whole.append(admitted)
        self._numbers.append(number)
        by_zone = defaultdict(list)
        for node in nodes:
            here = sum(self._on[gang.name, kind.role, node.name] for kind in gang.kinds)
            by_zone[_zone(node)].append(here)
            if gang.rule is Rule.APART:
                model.add(here <= 1)
        if gang.rule is Rule.TOGETHER:
            chosen = {zone: model.new_bool_var(f"{gang.name} is in {zone}") for zone in by_zone}
            model.add_at_most_one(chosen.values())
            for zone, found in by_zone.items():
                model.add(sum(found) <= gang.count * chosen[zone])
        if gang.rule is Rule.EVEN:
            # Members placed level by level keep to the skew at every step if the final placement does.
            for more in by_zone.values():
                for fewer in by_zone.values():
                    if more is not fewer:
                        model.add(sum(more) - sum(fewer) <= 1)

    def admit(self) -> None:
        """Set the objective: admit the best, in the order of rule 6."""
        weight, terms = 1, []
        for gang, number in zip(self._instance.gangs[::-1], self._numbers[::-1], strict=True):
            terms.append(weight * number)
            weight *= gang.count + 1
        for whole in self._whole[::-1]:
            terms.append(weight * whole)
            weight *= 2
        self._model.maximize(sum(terms))

    def tidy(self, outcome: Outcome) -> None:
        """Fix the admitted members to those of the outcome and set the objective: the least fragmentation."""
        for gang in self._instance.gangs:
            for kind in gang.kinds:
                self._model.add(self._number(gang.name, kind.role) == outcome.numbers.get((gang.name, kind.role), 0))
        free, terms = outcome.free(), []
        for size in sizes(self._instance):
            most = ideal(free, size)
            for name, left in self._free.items() if most else ():
                fitting = self._model.new_int_var(0, most, "")
                for resource, amount in size.items():
                    if amount:
                        used = cp_model.LinearExpr.sum(self._used[name, resource])
                        self._model.add(_scaled(resource, amount) * fitting + used <= left.get(resource, 0))
                terms.append(_WHOLE // most * fitting)
        self._model.maximize(sum(terms))

    def solve(self) -> Outcome:
        """The best outcome for the objective."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = _MOST_S
        if solver.solve(self._model) != cp_model.OPTIMAL:
            raise TimeoutError(f"no optimum of instance {self._instance.seed} was proved within {_MOST_S:.0f} s")
        placed: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for (gang, role, node), on in self._on.items():
            placed[gang, role][node] = solver.value(on)
        return Outcome(self._instance, {which: +found for which, found in placed.items()})

    def _number(self, gang: str, role: str) -> cp_model.LinearExprT:
        return sum(on for (other, kind, _), on in self._on.items() if (other, kind) == (gang, role))


def _zone(node: Node) -> str:
    return dict(node.labels)[ZONE]


def _scaled(resource: str, amount: int) -> int:
    """Memory in MiB, so that sums stay far below the solver's limits."""
    return amount // _MIB if resource == "memory" else amount
