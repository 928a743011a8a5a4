"""Whatever objects no constraint can digest, and whenever: they alone are set aside, and count once they are sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.composition import Composition
from gangsched.core.constraints.inter_pod_affinity import InterPodAffinity
from gangsched.core.constraints.node_resources import NodeResources
from gangsched.core.constraints.taint_toleration import TaintToleration
from gangsched.core.constraints.volume_zone import VolumeZone
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.faults import Fault, Rebuilt
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ResourceSlice
from gangsched.core.objects.pod import Pod
from tests.builders import claim, node, pod, volume
from tests.properties.stories import effort
from tests.properties.test_containment_properties import Raised
from tests.properties.test_fault_properties import Faults

EVIL = ("evil", "yes")
Has = Callable[..., bool]


def labels_of(*args: Any) -> bool:
    """Whether a node or pod among the arguments cannot be digested."""
    return any(isinstance(arg, Node | Pod) and EVIL in arg.labels for arg in args)


def names_in(*args: Any) -> bool:
    """Whether the name of a volume, a claim or a slice among the arguments says so."""
    return any("evil" in str(getattr(arg, "name", "")) for arg in args)


def known_to(constraint: Any, *_: Any) -> bool:
    """Whether a node that a constraint knows cannot be digested."""
    nodes = constraint._world.nodes  # noqa: SLF001
    return EVIL[1] in nodes.values(EVIL[0], np.arange(nodes.size))


SITES: tuple[tuple[type, str, Has], ...] = (
    (TaintToleration, "set_node", labels_of),
    (VolumeZone, "set_node", labels_of),
    (Cluster, "set_node", labels_of),
    (NodeResources, "plan", known_to),
    (Volumes, "set", names_in),
    (Cluster, "set_storage", names_in),
    (Devices, "set", names_in),
    (Cluster, "set_devices", names_in),
    (InterPodAffinity, "add", labels_of),
)
"""Functions that fail over such objects, before or after their work."""


class ObjectFaults(Faults):
    """The story of `Faults` around a machine that cannot digest some nodes, volumes, slices and pods of others."""

    replays = False

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()

    @initialize(sites=st.sets(st.sampled_from(SITES), min_size=1), after=st.booleans())
    def break_them(self, sites, after):
        for owner, name, has in sites:
            self.patch.setattr(owner, name, self.failing(getattr(owner, name), has, after=after))
        rebuild = Composition.rebuild

        def begin_again(parts: Composition, now: float) -> None:
            # The gangs start as after a restart: a quorum in progress shows as it does then.
            self.harness.rule_one.forget(self.harness.ledger)
            rebuild(parts, now)

        self.patch.setattr(Composition, "rebuild", begin_again)

    def failing(self, real: Any, has: Has, *, after: bool) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not has(*args):
                return real(*args, **kwargs)
            if after:
                real(*args, **kwargs)
            raise Raised

        return call

    @rule(which=st.integers(0, 9), cpu=st.integers(1, 4), evil=st.booleans())
    def turn_node(self, which, cpu, evil):
        """A node becomes one that cannot be digested, or changes as such, or becomes sound."""
        names = sorted(self.harness.nodes)
        if names:
            self.harness.add(node(names[which % len(names)], cpu=cpu, labels=dict([EVIL]) if evil else {}))

    @rule(name=st.sampled_from(("evil", "sound")), size=st.integers(1, 3))
    def provide(self, name, size):
        self.harness.add(volume(name, size=size), claim(name, volume=name))

    @rule(name=st.sampled_from(("evil", "sound")), generation=st.integers(1, 3))
    def offer(self, name, generation):
        self.harness.add(ResourceSlice(name, "gpu.example.com", name, node="n", generation=generation))

    @rule(name=st.sampled_from(("evil", "sound")))
    def take_away(self, name):
        for kind in self.harness.storage.values():
            self.harness.withdraw(*(each for each in list(kind.values()) if each.key[1] == name))
        for devices in self.harness.devices.values():
            self.harness.retract(*(each for each in list(devices.values()) if each.key[1] == name))

    @rule(which=st.integers(0, 9), cpu=st.integers(1, 2), evil=st.booleans())
    def foreign_pod(self, which, cpu, evil):
        names = sorted(self.harness.nodes)
        if names:
            fields: dict[str, Any] = {"scheduler": "default-scheduler", "labels": dict([EVIL]) if evil else {}}
            self.harness.add(pod(self.name(), group="", cpu=cpu, node=names[which % len(names)], **fields))

    @invariant()
    def nothing_else_suffers(self):
        """Only what cannot be digested is set aside; no gang is parked, and nothing but that makes accounts anew."""
        if not hasattr(self, "harness"):
            return
        machine = self.harness.machine
        assert not [found for found in machine.take_faults() if isinstance(found, Fault | Rebuilt)]
        evil = {each.name for each in self.harness.nodes.values() if labels_of(each)}
        waiting = {id(event) for event in self.harness.inbox}
        if not waiting:
            sound = {f"Node {name} (Raised)" for name in self.harness.nodes.keys() - evil}
            assert not sound & set(machine.set_aside())
            assert "sound" not in str(machine.set_aside())

    def end(self) -> None:
        harness = self.harness
        harness.crash_in = None
        harness.calm()
        for found in list(harness.nodes.values()):
            if labels_of(found):
                harness.add(replace(found, labels=()))
        for each in list(harness.pods.values()):
            if labels_of(each):
                harness.add(replace(each, labels=()))
        self.take_away("evil")
        harness.wait(100.0)
        assert harness.machine.set_aside() == []
        assert harness.machine.cluster.nodes == harness.nodes
        super().end()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()


@pytest.mark.faults
class TestObjectFaults(ObjectFaults.TestCase):  # type: ignore[misc, valid-type]
    """The entry point for the test runner."""


TestObjectFaults.settings = effort(steps=25, usual=80)
