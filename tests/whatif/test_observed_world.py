"""The world of an observed cluster."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects import events as seen
from gangsched.core.objects.devices import DeviceClass, DeviceKind
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.volumes import StorageKind
from gangsched.whatif import simulation
from gangsched.whatif.simulation import simulate
from gangsched.whatif.world.contents import World, namespace
from gangsched.whatif.world.observed_world import applied, observed
from tests.builders import foreign_group, group, node, pod, pods, volume
from tests.whatif.test_expanded import world

DOOMED = namespace("x", {"team": "t"}, terminating=True)
NOTHING: set[type] = {seen.DemandsHidden, seen.DemandsReplaced}
"""Facts that nothing is decided by in a simulation."""
FACTS = [
    seen.NamespacesReplaced((DOOMED, namespace("y"))),
    seen.PriorityClassesReplaced((("high", PriorityClass(7)),)),
    seen.BudgetsReplaced((DisruptionBudget("default", "b", (), allowed=5),)),
    seen.BudgetsHidden("may not be read"),
    seen.NodesReplaced((node("n1"),)),
    seen.StorageReplaced(StorageKind.VOLUME, (volume(),)),
    seen.DeviceObjectsReplaced(DeviceKind.CLASS, (DeviceClass("gpu"),)),
    seen.GroupsReplaced((group("a"),)),
    seen.ForeignGroupsReplaced("volcano", (foreign_group("volcano", "v"),)),
    seen.PodsReplaced((pod("p", group="", node="n9"),)),
]


@pytest.mark.parametrize("event", FACTS, ids=lambda event: type(event).__name__)
def test_a_simulation_knows_what_the_observed_cluster_says(monkeypatch, event):
    """Regression: it did not know that a namespace is being deleted."""
    made = []

    class Kept(Machine):
        def __init__(self, *args: Any, **fields: Any) -> None:
            super().__init__(*args, **fields)
            made.append(self)

    monkeypatch.setattr(simulation, "Machine", Kept)
    simulate(applied(World(), observed([event], 1.0)), Policy())
    [machine] = made
    assert event in machine.facts()


def test_every_fact_of_a_machine_is_one_of_these():
    machine = Machine(Policy())
    machine.handle([*FACTS, seen.Synced()], 1.0)
    assert {type(event) for event in machine.facts()} - NOTHING <= {type(event) for event in FACTS}


def test_a_group_in_a_namespace_that_is_being_deleted_is_not_bound():
    """Steps: namespace x terminates in the cluster. A group is tried there, and one elsewhere."""
    before = World(nodes=[node("n1", cpu=9)], namespaces={"x": DOOMED}, start=1000.0)
    spaces = ("x", "y")
    new = World(
        groups=[group(f"{space}/a", min_member=2) for space in spaces],
        pods=[member for space in spaces for member in pods("a", 2, namespace=space)],
        namespaces={space: namespace(space) for space in spaces},
    )
    outcome = simulate(applied(new, before), Policy())
    told = {str(finding.key): (len(finding.placements), finding.reason) for finding in outcome.groups}
    assert told == {"x/a": (0, "NamespaceTerminating"), "y/a": (2, "Scheduled")}


@pytest.mark.parametrize("deleted", [None, "2030-01-01T00:00:00Z"])
def test_a_namespace_in_a_file_is_being_deleted_if_it_has_a_time_of_that(deleted):
    meta = {"name": "x", "deletionTimestamp": deleted}
    made = world({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    assert made.namespaces == {"x": namespace("x", terminating=deleted is not None)}
