"""The instance groups that must grow for a refused group, and by how much, as palantir's Demand objects."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.autoscaling.scaling import pool_demands
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.demands import DemandUnit, PoolDemand
from gangsched.core.objects.status import MOST_DEMANDS
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.expansion import HOSTNAME
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import amounts, node, pod, pods

LABEL = "resource_channel"
BATCH, GPU = {LABEL: "batch"}, {LABEL: "gpu"}
ZONE = "topology.kubernetes.io/zone"


def demanded(cluster, members, *, topology=None) -> tuple[PoolDemand, ...]:
    found = place(Snapshot(cluster), Ask(members=members, need=len(members), topology=topology))
    assert isinstance(found, Refusal)
    return pool_demands(found, LABEL, members=members)


def each(*names: str, others: int = 0, **requests: str) -> DemandUnit:
    """A unit of these pods and `others` more that do not exist yet."""
    return DemandUnit(len(names) + others, amounts(requests), names)


def test_each_instance_group_gets_what_has_no_place_yet(cluster_of):
    members = [
        *pods("b", 3, node_selector=BATCH),
        pod("g-0", cpu=8, node_selector=GPU),
        pod("b-3", node_selector=BATCH),
    ]
    assert demanded(cluster_of(node(cpu=1, labels=BATCH)), members) == (
        PoolDemand(instance_group="batch", units=(each("b-1", "b-2", "b-3", cpu="1"),)),
        PoolDemand(instance_group="gpu", units=(each("g-0", cpu="8"),)),
    )


def test_members_of_no_instance_group_cannot_be_demanded_and_half_a_demand_helps_nobody(cluster_of):
    assert demanded(cluster_of(), [pod("a-0"), pod("a-1", node_selector=BATCH)]) == ()


def test_members_that_fit_need_no_instance_group(cluster_of):
    members = [pod("a-0"), pod("a-1", node_selector=BATCH)]
    assert [demand.instance_group for demand in demanded(cluster_of(node()), members)] == ["batch"]


def test_a_zone_that_all_must_share_is_said(cluster_of):
    cluster = cluster_of(node("n1", cpu=1, labels=BATCH | {ZONE: "a"}), node("n2", cpu=2, labels=BATCH | {ZONE: "b"}))
    members = pods("a", 3, node_selector=BATCH)
    assert demanded(cluster, members, topology=Topology(key=ZONE)) == (
        PoolDemand(instance_group="batch", units=(each("a-2", cpu="1"),), single_zone=True, zone="b"),
    )
    assert demanded(cluster_of(), members, topology=Topology(key=ZONE)) == (
        PoolDemand(instance_group="batch", units=(each("a-0", "a-1", "a-2", cpu="1"),), single_zone=True),
    )


@pytest.mark.parametrize(("key", "demands"), [("rack", 1), (HOSTNAME, 0)])
def test_another_domain_cannot_be_said_and_one_node_for_all_is_not_demanded(cluster_of, key, demands):
    found = demanded(cluster_of(), pods("a", 2, node_selector=BATCH), topology=Topology(key=key))
    assert len(found) == demands
    assert not any(demand.single_zone or demand.zone for demand in found)


def test_nothing_is_demanded_where_no_new_node_helps(cluster_of):
    assert demanded(cluster_of(), pods("a", 2, node_selector=BATCH | {HOSTNAME: "n9"})) == ()


def test_members_that_do_not_exist_yet_count_without_a_name_and_come_last(cluster_of):
    to_come = [replace(pod("x-0", node_selector=BATCH), uid=f"to-come-{at}", name="") for at in range(3)]
    members = [*to_come, pod("d-0", node_selector=BATCH)]
    assert demanded(cluster_of(), members)[0].units == (each("d-0", others=3, cpu="1"),)
    assert demanded(cluster_of(node(cpu=1, labels=BATCH)), members)[0].units == (each(others=3, cpu="1"),)


def test_a_group_of_one_is_one_unit_that_names_it(cluster_of):
    assert demanded(cluster_of(), [pod("d-0", node_selector=BATCH)]) == (
        PoolDemand(instance_group="batch", units=(each("d-0", cpu="1"),)),
    )


def test_all_members_are_named_although_the_last_unit_stands_for_many_requests(cluster_of):
    members = [pod(f"b-{cpu}", cpu=cpu, node_selector=BATCH) for cpu in range(1, MOST_DEMANDS + 3)]
    (demand,) = demanded(cluster_of(), members)
    assert len(demand.units) == MOST_DEMANDS
    assert {name for unit in demand.units for name in unit.pods} == {pod.name for pod in members}
    assert all(len(unit.pods) == unit.count for unit in demand.units)
