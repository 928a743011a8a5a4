"""Gangs with devices on several nodes get them exactly if there is a way, by trying every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.devices import DeviceWishes
from gangsched.core.objects.offered_devices import Device
from gangsched.core.objects.prebindings import UseDevices
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.needed_prebindings import prebindings
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import node, pod
from tests.clusters import cluster_of, provide
from tests.gadgets import GPUS, device_claim
from tests.naive_devices import devices_with_more, member_wishes, pool, together


def any_way(members: Sequence[DeviceWishes], nodes: Sequence[Sequence[Device]]) -> bool:
    """Whether some distribution of the members over the nodes leaves each of them its devices."""
    return any(
        all(
            together([each for each, there in zip(members, chosen, strict=True) if there == at], devices, Counter())
            for at, devices in enumerate(nodes)
        )
        for chosen in product(range(len(nodes)), repeat=len(members))
    )


@given(
    st.lists(devices_with_more(), min_size=1, max_size=2),
    st.lists(member_wishes(), min_size=1, max_size=2),
    st.lists(st.integers(0, 1), min_size=1, max_size=4),
)
def test_a_gang_is_placed_exactly_if_there_is_a_way(nodes, kinds, chosen):
    wanted = [kinds[at % len(kinds)] for at in chosen]
    claims = [device_claim(f"{at}", what) for at, what in enumerate(wanted)]
    pods = [pod(f"default/a-{at}", device_claims=[f"{at}"]) for at in range(len(wanted))]
    cluster = cluster_of(GPUS, *claims, *pods)
    for at, devices in enumerate(nodes):
        provide(cluster, node(f"n{at}", cpu="64"), *pool(f"n{at}", devices))
    snapshot = Snapshot(cluster)
    found = place(snapshot, Ask(members=pods, need=len(pods)))
    if isinstance(found, Placement):
        assert any_way(wanted, nodes)
        uses = prebindings(snapshot, found.assignments)
        for each, where in found.assignments:
            [use] = uses[each.uid]
            assert isinstance(use, UseDevices)
            assert {device.device[1] for device in use.allocation.devices} == {where}
        taken = [taken for several in uses.values() for use in several for taken in use.takes if taken[0] == "Device"]
        assert len(set(taken)) == len(taken)
    else:
        assert isinstance(found, Refusal)
        assert not any_way(wanted, nodes)
