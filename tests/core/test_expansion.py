"""The resources and labels that new nodes need for a refused quorum, and when no new node could help."""

from __future__ import annotations

import pytest

from gangsched.core.constraints.volume_binding import BoundTo
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.core.objects.status import MOST_DEMANDS, Demand
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.expansion import HOSTNAME, demand, only_by_name
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import amounts, node, pod, pods, shape

ZONE = Topology(key="zone")
NODE = Topology(key=HOSTNAME)


def demanded(cluster, members, **ask) -> tuple[Demand, ...]:
    found = place(Snapshot(cluster), Ask(members=members, **({"need": len(members)} | ask)))
    assert isinstance(found, Refusal)
    return found.demand


def each(count: int, domain: str = "", **requests: str) -> Demand:
    return Demand(count=count, requests=amounts(requests), domain=domain)


def pinned(name: str, *, group: str = "a", to: str = "n9", **fields) -> Pod:
    return pod(name, group=group, node_selector={HOSTNAME: to}, **fields)


def test_members_that_fit_now_need_no_new_node(cluster_of):
    cluster = cluster_of(node(cpu=3), pod("busy", group="", node="n1"))
    assert demanded(cluster, pods("a", 5)) == (each(3, cpu="1"),)


def test_without_nodes_all_are_demanded(cluster_of):
    assert demanded(cluster_of(), pods("a", 2, cpu="2", memory="4Gi")) == (each(2, cpu="2", memory="4Gi"),)


def test_only_the_quorum_is_demanded_and_of_it_the_smallest(cluster_of):
    cluster = cluster_of(node(cpu=1))
    members = [pod("a-0", cpu=8), pod("a-1", cpu=2), pod("a-2", cpu=1), pod("a-3", cpu=4)]
    assert demanded(cluster, members, need=3) == (each(1, cpu="2"), each(1, cpu="4"))


def test_a_role_gets_what_it_lacks_whatever_others_ask(cluster_of):
    cluster = cluster_of(node(cpu=2))
    members = [*pods("w", 2, cpu=8, role="w"), *pods("a", 3)]
    assert demanded(cluster, members, need=3, role_needs={"w": 1}) == (each(1, cpu="8"),)
    assert demanded(cluster, members, need=5, role_needs={"w": 1}) == (each(2, cpu="8"), each(1, cpu="1"))


def test_the_most_numerous_requests_come_first_whatever_selectors_they_have(cluster_of):
    members = [pod("a-0", cpu=8), *pods("b", 2), *pods("c", 2, node_selector={"disk": "fast"})]
    assert demanded(cluster_of(), members) == (each(4, cpu="1"), each(1, cpu="8"))


def test_beyond_so_many_different_requests_the_rest_is_rounded_up():
    missing = {MemberClass(shape(requests={"cpu": at, "memory": 1000 - at})): 1 for at in range(1, 101)}
    found = demand(missing, ())
    assert len(found) == MOST_DEMANDS
    assert found[:2] == (each(1, cpu="1", memory="999"), each(1, cpu="2", memory="998"))
    assert found[-1] == each(100 - MOST_DEMANDS + 1, cpu="100", memory=str(1000 - MOST_DEMANDS))


class TestDomains:
    def test_new_nodes_must_be_where_most_room_is(self, cluster_of):
        cluster = cluster_of(*(node(zone, cpu=cpu, labels={"zone": zone}) for zone, cpu in (("a", 2), ("b", 3))))
        assert demanded(cluster, pods("a", 4), topology=ZONE) == (each(1, "b", cpu="1"),)

    def test_new_nodes_must_be_where_members_are(self, cluster_of):
        cluster = cluster_of(*(node(zone, cpu=cpu, labels={"zone": zone}) for zone, cpu in (("a", 2), ("b", 3))))
        assert demanded(cluster, pods("a", 3), topology=ZONE, own={"a": 1}) == (each(1, "a", cpu="1"),)

    def test_a_preferred_domain_is_not_demanded(self, cluster_of):
        cluster = cluster_of(node(cpu=1, labels={"zone": "a"}))
        assert demanded(cluster, pods("a", 2), topology=Topology(key="zone", required=False)) == (each(1, cpu="1"),)

    @pytest.mark.parametrize("nodes", [(), (node(),)])
    def test_where_no_node_has_the_label_new_ones_may_have_any_value_of_it(self, cluster_of, nodes):
        assert demanded(cluster_of(*nodes), pods("a", 2), topology=ZONE) == (each(2, cpu="1"),)

    def test_all_on_one_node_takes_one_new_node_for_all(self, cluster_of):
        cluster = cluster_of(node(cpu=2, labels={HOSTNAME: "n1"}))
        assert demanded(cluster, pods("a", 3, memory="1Gi"), topology=NODE) == (
            each(1, cpu="3", memory="3Gi", pods="3"),
        )

    def test_all_on_one_node_and_some_are_there_already_is_helped_by_none(self, cluster_of):
        cluster = cluster_of(node(cpu=2, labels={HOSTNAME: "n1"}))
        assert demanded(cluster, pods("a", 3), topology=NODE, own={"n1": 1}) == ()

    def test_absurd_amounts_stay_amounts(self, cluster_of):
        members = pods("a", 3, cpu=None, memory=MAX_AMOUNT)
        [whole] = demanded(cluster_of(node(labels={HOSTNAME: "n1"})), members, topology=NODE)
        assert dict(whole.requests)["memory"] == MAX_AMOUNT


class TestNames:
    @pytest.mark.parametrize(
        ("fields", "by_name"),
        [
            pytest.param({}, False, id="anywhere"),
            pytest.param({"node_selector": {"disk": "fast"}}, False, id="a label"),
            pytest.param({"node_selector": {HOSTNAME: "n1"}}, True, id="nodeSelector by hostname"),
            pytest.param({"node_affinity": []}, True, id="affinity without terms"),
            pytest.param({"node_affinity": [NodeTerm()]}, True, id="a term without expressions"),
            pytest.param({"node_affinity": [NodeTerm((Requirement("disk", "Exists"),))]}, False, id="affinity"),
            pytest.param(
                {"node_affinity": [NodeTerm(fields=(Requirement("metadata.name", "In", ("n1",)),))]}, True, id="a name"
            ),
            pytest.param(
                {"node_affinity": [NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("n1",)),))]},
                False,
                id="any name but one",
            ),
            pytest.param(
                {"node_affinity": [NodeTerm((Requirement(HOSTNAME, "In", ("n1", "n2")),))]}, True, id="hostnames"
            ),
            pytest.param(
                {"node_affinity": [NodeTerm((Requirement(HOSTNAME, "NotIn", ("n1",)),))]}, False, id="not a hostname"
            ),
            pytest.param(
                {"node_affinity": [NodeTerm((Requirement("disk", "Near", ("n1",)),))]}, True, id="a malformed term"
            ),
            pytest.param(
                {
                    "node_affinity": [
                        NodeTerm((Requirement(HOSTNAME, "In", ("n1",)),)),
                        NodeTerm((Requirement("disk", "Exists"),)),
                    ]
                },
                False,
                id="a hostname or a label",
            ),
        ],
    )
    def test_a_shape_that_accepts_nodes_by_name_alone_is_known(self, fields, by_name):
        assert only_by_name(MemberClass(shape(**fields))) is by_name

    def test_nothing_is_demanded_for_a_quorum_that_needs_a_named_node(self, cluster_of):
        cluster = cluster_of(node(cpu=1))
        assert demanded(cluster, [pod("a-0"), pod("a-1"), pinned("a-2")]) == ()

    def test_who_accepts_any_node_is_demanded_instead_where_there_is_a_choice(self, cluster_of):
        assert demanded(cluster_of(), [pinned("a-0", cpu="500m"), pod("a-1"), pod("a-2")], need=2) == (
            each(2, cpu="1"),
        )

    @pytest.mark.parametrize(
        ("cpu", "hopeless"),
        [pytest.param(8, False, id="has only to empty"), pytest.param("500m", True, id="too small")],
    )
    def test_a_named_node_that_others_fill_may_still_empty(self, cluster_of, cpu, hopeless):
        cluster = cluster_of(node("n9", cpu=cpu, labels={HOSTNAME: "n9"}), pod("busy", group="", cpu=cpu, node="n9"))
        found = place(Snapshot(cluster), Ask(members=[pinned("a-0")], need=1))
        assert isinstance(found, Refusal)
        assert found.demand == ()
        assert found.hopeless is hopeless


@pytest.mark.parametrize(
    ("bound_to", "by_name"),
    [
        (BoundTo(), False),
        (BoundTo(ready=False), True),
        (BoundTo(((NodeTerm((Requirement("zone", "In", ("a",)),)),),)), False),
        (BoundTo(((NodeTerm((Requirement(HOSTNAME, "In", ("a",)),)),),)), True),
        (BoundTo(((NodeTerm((Requirement("zone", "In", ("a",)),)),), (NodeTerm(),))), True),
    ],
)
def test_no_new_node_helps_members_whose_volumes_are_elsewhere_or_not_ready(bound_to, by_name):
    assert only_by_name(MemberClass(shape(), (bound_to,))) is by_name
