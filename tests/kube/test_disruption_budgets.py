"""What is read of a PodDisruptionBudget."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.shape import Requirement
from gangsched.kube.reading.disruption_values import disruption_budget
from gangsched.kube.wire import disruption_objects as wire


def read(**found: Any) -> DisruptionBudget:
    whole = {"metadata": {"name": "b", "namespace": "team"}, **found}
    return disruption_budget(msgspec.json.decode(msgspec.json.encode(whole), type=wire.DisruptionBudget))


@pytest.mark.parametrize(
    ("spec", "selector"),
    [
        pytest.param(None, None, id="no spec"),
        pytest.param({"maxUnavailable": 1}, None, id="no selector"),
        pytest.param({"minAvailable": "50%", "selector": {}}, (), id="all"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, (Requirement("a", "In", ("b",)),), id="labels"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]}]}},
            (Requirement("a", "NotIn", ("b", "c")),),
            id="expressions",
        ),
        pytest.param(
            {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}},
            (Requirement("a", "In", ("b",)), Requirement("c", "Exists")),
            id="both",
        ),
    ],
)
def test_it_selects_what_its_selector_says(spec: Any, selector: Any) -> None:
    assert read(spec=spec) == DisruptionBudget("team", "b", selector)


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        pytest.param(None, {}, id="nothing said yet"),
        pytest.param(
            {"disruptionsAllowed": 2, "expectedPods": 5},
            {"allowed": 2, "expected": 5},
            id="numbers",
        ),
        pytest.param({"disruptedPods": None}, {}, id="nothing disrupted"),
        pytest.param(
            {"disruptionsAllowed": 0, "disruptedPods": {"p-0": "2026-01-01T00:00:00Z", "p-1": None}},
            {"disrupted": frozenset({"p-0", "p-1"})},
            id="disrupted",
        ),
    ],
)
def test_it_allows_what_its_controller_says(status: Any, fields: Any) -> None:
    assert read(status=status) == DisruptionBudget("team", "b", None, **fields)
