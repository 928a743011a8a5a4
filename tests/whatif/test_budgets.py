"""PodDisruptionBudgets in files, and those of an observed cluster."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import BudgetsReplaced
from gangsched.core.objects.shape import Requirement
from gangsched.whatif.world.manifests import ManifestError
from gangsched.whatif.world.observed_world import applied, observed
from tests.whatif.test_expanded import Json, world

SPEC: Json = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}


def manifest(name: str = "b", status: Json | None = None, spec: Any = SPEC, **meta: Any) -> Json:
    said = {} if status is None else {"status": status}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    return {**kind, "metadata": {"name": name, **meta}, "spec": spec, **said}


def test_a_budget_in_a_file_counts_as_its_controller_has_said():
    made = world(manifest(status={"disruptionsAllowed": 2, "expectedPods": 3}, namespace="team"))
    expected = DisruptionBudget("team", "b", (Requirement("a", "In", ("b",)),), allowed=2, expected=3)
    assert made.budgets == {"team/b": expected}
    assert (made.doubts, dict(made.ignored)) == ([], {})


def test_a_budget_in_a_file_without_a_status_allows_nothing_and_that_is_told():
    made = world(manifest())
    assert made.budgets["default/b"].allowed == 0
    [told] = made.doubts
    assert told.startswith("f, document 1: PodDisruptionBudget b has no status.disruptionsAllowed, so that it allows")


def test_a_budget_of_another_form_is_refused():
    with pytest.raises(ManifestError, match="PodDisruptionBudget b"):
        world(manifest(spec={"selector": 3}))


OLD = DisruptionBudget("default", "b", (), allowed=5)
NEW = DisruptionBudget("default", "b", (), allowed=2)
KEPT = DisruptionBudget("default", "c", (), allowed=1)


def test_a_budget_that_is_applied_replaces_the_one_that_is_there():
    before = observed([BudgetsReplaced((OLD, KEPT))], 1.0)
    after = applied(world(manifest(status={"disruptionsAllowed": 2}, spec={"selector": {}})), before)
    assert after.budgets == {"default/b": NEW, "default/c": KEPT}
