"""PodDisruptionBudgets by the pods that they select, and how many of those may be evicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.indexes import drop
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.selectors import matches

_Place = tuple[str, str, str]
"""A namespace, and a label with its value without which a budget selects no pod; empty if it names no such label."""
_NONE: Mapping[str, DisruptionBudget] = {}


class Budgets:
    """The PodDisruptionBudgets, each by its key, `NAMESPACE/NAME`.

    `allowed` is how many of its pods may be evicted now, as its controller last said. `why_hidden` is a sentence for
    users while budgets cannot be read, else empty. `changes` grows whenever any of this changes.
    """

    def __init__(self) -> None:
        self.allowed: dict[str, int] = {}
        self.why_hidden = ""
        self.changes = 0
        self._budgets: dict[str, DisruptionBudget] = {}
        # Namespaces and names of pods that a budget has shown as disrupted, or may have before, until they are gone.
        self._shown: set[tuple[str, str]] = set()
        self._by_place: dict[_Place, dict[str, DisruptionBudget]] = {}

    @property
    def known(self) -> bool:
        """Whether budgets can be read. If not, there is none here, whichever there are."""
        return not self.why_hidden

    def set(self, key: str, budget: DisruptionBudget | None) -> None:
        """Add or replace the budget; None removes it."""
        old = self._budgets.get(key)
        if old == budget:
            return
        self.changes += 1
        if old is not None:
            drop(self._by_place, _place(old), key)
            del self._budgets[key], self.allowed[key]
        if budget is not None:
            self._budgets[key], self.allowed[key] = budget, budget.allowed
            self._by_place.setdefault(_place(budget), {})[key] = budget
            more = budget.disrupted - old.disrupted if old is not None else budget.disrupted
            self._shown.update((budget.namespace, name) for name in more)

    def shows(self, budget: DisruptionBudget, pod: Pod) -> bool:
        """Whether what the budget allows counts the pod's eviction already.

        Its controller drops a pod that terminates from those disrupted, because it no longer counts it as healthy
        (pkg/controller/disruption/disruption.go of Kubernetes: buildDisruptedPodMap, countHealthyPods).
        """
        if pod.name in budget.disrupted:
            return True
        return pod.terminating and (pod.namespace, pod.name) in self._shown

    def begin(self, pod: Pod) -> None:
        """The pod was not known before. If it terminates already, budgets have counted its eviction."""
        (self._shown.add if pod.terminating else self._shown.discard)((pod.namespace, pod.name))

    def forget(self, pod: Pod) -> None:
        """The pod is gone; another one may have its name."""
        self._shown.discard((pod.namespace, pod.name))

    def hide(self, why: str) -> None:
        """Forget all budgets: they cannot be read until the next call of `show`."""
        for key in list(self._budgets):
            self.set(key, None)
        self.why_hidden = why
        self.changes += 1

    def show(self) -> None:
        """Note that budgets can be read."""
        self.changes += not self.known
        self.why_hidden = ""

    def all(self) -> tuple[DisruptionBudget, ...]:
        """All budgets."""
        return tuple(self._budgets.values())

    def of(self, pod: Pod) -> Sequence[DisruptionBudget]:
        """The budgets that select the pod, by name."""
        if not self._budgets:
            return ()
        labels = dict(pod.labels)
        places = [(pod.namespace, "", ""), *((pod.namespace, *label) for label in pod.labels)]
        near = [budget for place in places for budget in self._by_place.get(place, _NONE).values()]
        selecting = [budget for budget in near if budget.selector is not None and matches(budget.selector, labels)]
        return sorted(selecting, key=lambda budget: budget.name)

    def drawn_by(self, pod: Pod) -> Sequence[DisruptionBudget]:
        """The budgets that an eviction of the pod needs, and draws from.

        Source: pkg/registry/core/pod/storage/eviction.go of Kubernetes. Pods that have not started need none.
        """
        if pod.lifetime.ready:
            return self.of(pod)
        return () if pod.phase is PodPhase.PENDING else [budget for budget in self.of(pod) if budget.counts_unready]

    def contradictions(self) -> list[str]:
        """One sentence for each budget that is not where it is looked for, or counted with another number."""
        indexed = {key: budget for budgets in self._by_place.values() for key, budget in budgets.items()}
        allowed = {key: budget.allowed for key, budget in self._budgets.items()}
        wrong = [] if indexed == self._budgets else ["the index of budgets differs from the budgets"]
        return wrong if allowed == self.allowed else [*wrong, "what budgets allow differs from the budgets"]


def _place(budget: DisruptionBudget) -> _Place:
    """Where pods that the budget selects look for it."""
    for requirement in budget.selector or ():
        if requirement.operator == "In" and len(requirement.values) == 1:
            return budget.namespace, requirement.key, requirement.values[0]
    return budget.namespace, "", ""
