"""The names that a diagnosis shows to each reader; its JSON holds everything shown."""

from __future__ import annotations

import json

import msgspec
import pytest

from gangsched.cli.prose import lines
from gangsched.core.objects.declaration import GroupKey, Topology
from gangsched.core.objects.events import Event, GroupsReplaced, NodesReplaced, PodsReplaced, StorageReplaced, Synced
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.core.objects.volumes import StorageKind
from gangsched.views.diagnosed import Diagnosis
from gangsched.views.diagnosis import Copy
from gangsched.views.diagnosis_json import as_object, from_json
from gangsched.views.reach import A_NODE, EVERYTHING, Reach
from tests.builders import claim, group, node, pod, volume

NOW = 1_000_000.0
MINE = Reach(namespace="mine", node_names=False)


@pytest.fixture(scope="module")
def copy() -> Copy:
    """Two nodes full of one group of ours and one of another tenant; two groups of other tenants are ahead of ours."""
    nodes = (node("secret-node-1", cpu="3"), node("secret-node-2", cpu="2"))
    running = [
        *(pod(f"mine/own-{each}", group="own", node="secret-node-1") for each in range(2)),
        *(pod(f"theirs/foreign-{each}", group="foreign", node=f"secret-node-{each + 1}") for each in range(2)),
    ]
    groups = [
        group("theirs/before", min_member=3),
        group("theirs/first", min_member=3),
        group("mine/w", min_member=3, created=9.0),
    ]
    waiting = [
        pod(f"{each.key}-{number}", group=each.key.name, created=float(at))
        for at, each in enumerate(groups)
        for number in range(3)
    ]
    typo = pod("mine/lost-0", group="before")
    events = [
        NodesReplaced(nodes),
        GroupsReplaced(tuple(groups)),
        PodsReplaced((*running, *waiting, typo)),
        Synced(),
    ]
    return Copy(events, policy=Policy(), now=NOW)


def told(copy: Copy, name: str, reach: Reach) -> Diagnosis:
    found = copy.diagnose(GroupKey("mine", name), reach)
    assert found is not None
    return found


def test_others_are_counted_and_ones_own_are_named(copy):
    shortfall = told(copy, "w", MINE).shortfall
    assert shortfall is not None
    assert ([str(key) for key, _ in shortfall.held], shortfall.held_by_others) == (["mine/own"], 1)
    assert (shortfall.ahead, shortfall.others_ahead) == ([], 2)


@pytest.mark.parametrize("name", ["w", "before", "lost-0"])
def test_neither_names_of_other_namespaces_nor_of_nodes_are_told(copy, name):
    found = told(copy, name, MINE)
    text = json.dumps(as_object(found)) + "\n".join(lines(found))
    for hidden in ("theirs", "foreign", "secret-node"):
        assert hidden not in text


def test_whoever_may_list_nodes_is_told_their_names(copy):
    text = json.dumps(as_object(told(copy, "w", Reach(namespace="mine"))))
    assert "secret-node-1" in text
    assert "theirs" not in text


def test_who_may_see_everything_sees_what_is_hidden_from_others(copy):
    text = json.dumps(as_object(told(copy, "w", EVERYTHING)))
    assert "theirs/foreign" in text
    assert "secret-node-1" in text
    assert "theirs/before counts only for pods of its own" in json.dumps(as_object(told(copy, "before", EVERYTHING)))


def test_asking_leaves_the_copy_as_it_was(copy):
    first = as_object(told(copy, "w", EVERYTHING))
    told(copy, "w", MINE)
    assert as_object(told(copy, "w", EVERYTHING)) == first


@pytest.mark.parametrize("reach", [MINE, EVERYTHING], ids=["mine", "everything"])
@pytest.mark.parametrize("name", ["w", "before", "own"])
def test_the_json_says_all_that_the_lines_say(copy, name, reach):
    found = told(copy, name, reach)
    again = from_json(msgspec.json.encode(as_object(found)))
    assert as_object(again) == as_object(found)
    assert list(lines(again)) == list(lines(found))


def test_a_person_reads_how_many_others_there_are(copy):
    text = "\n".join(lines(told(copy, "w", MINE), width=200))
    assert "mine/own (cpu 2) and 1 of other namespaces" in text
    assert "2 of other namespaces" in text.split("ahead")[1]


def test_a_node_that_is_a_domain_is_not_named_either():
    """The message names the examined domain, which with this key is a node."""
    one = group("mine/w", min_member=3, topology=Topology("kubernetes.io/hostname", required=True))
    nodes = tuple(
        node(name, cpu="2", labels={"kubernetes.io/hostname": f"host-{name}"}) for name in ("secret-a", "secret-b")
    )
    waiting = tuple(pod(f"mine/w-{number}", group="w") for number in range(3))
    events = [NodesReplaced(nodes), GroupsReplaced((one,)), PodsReplaced(waiting), Synced()]
    asked = Copy(events, policy=Policy(), now=NOW)
    assert "host-secret" in told(asked, "w", EVERYTHING).message
    found = told(asked, "w", MINE)
    assert A_NODE in found.message
    assert "secret" not in json.dumps(as_object(found)) + "\n".join(lines(found))


HOSTNAME = "kubernetes.io/hostname"


def asked_about(*events: Event, members: int = 1, topology: Topology | None = None) -> Copy:
    """A copy in which a group of ours waits, with the state of these events added."""
    waiting = tuple(pod(f"mine/w-{each}", group="w", volume_claims=["data"]) for each in range(members))
    one = group("mine/w", min_member=members, topology=topology)
    return Copy([*events, GroupsReplaced((one,)), PodsReplaced(waiting), Synced()], policy=Policy(), now=NOW)


@pytest.mark.parametrize(
    "term",
    [
        NodeTerm((Requirement(HOSTNAME, "In", ("secret-gone",)),)),
        NodeTerm((), (Requirement("metadata.name", "In", ("secret-gone",)),)),
        NodeTerm((Requirement("topology.local.csi/node", "In", ("secret-gone",)),)),
    ],
    ids=["hostname", "name", "a driver's own label"],
)
def test_a_node_that_is_gone_is_not_named_by_the_volume_that_it_had(term):
    asked = asked_about(
        NodesReplaced((node("secret-a", labels={HOSTNAME: "secret-a"}),)),
        StorageReplaced(StorageKind.CLAIM, (claim("mine/data", "local"),)),
        StorageReplaced(StorageKind.VOLUME, (volume("local", node_affinity=(term,)),)),
    )
    assert "secret-gone" in json.dumps(as_object(told(asked, "w", EVERYTHING)))
    assert "secret" not in json.dumps(as_object(told(asked, "w", MINE)))


def test_a_zone_is_no_name_of_a_node():
    zone = NodeTerm((Requirement("topology.kubernetes.io/zone", "In", ("zone-gone",)),))
    asked = asked_about(
        NodesReplaced((node("secret-a", labels={"topology.kubernetes.io/zone": "zone-a"}),)),
        StorageReplaced(StorageKind.CLAIM, (claim("mine/data", "disk"),)),
        StorageReplaced(StorageKind.VOLUME, (volume("disk", node_affinity=(zone,)),)),
    )
    assert "zone-gone" in json.dumps(as_object(told(asked, "w", MINE)))


@pytest.mark.parametrize(
    "values", [("ip-10-0-0-1", "ip-10-0-0-2"), ("i-0aa", "i-0bb")], ids=["the host's part", "an identity"]
)
def test_a_label_that_tells_every_node_apart_is_as_good_as_its_name(values):
    names = ("ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal")
    nodes = (node(name, cpu="2", labels={"example/node": value}) for name, value in zip(names, values, strict=True))
    claims = StorageReplaced(StorageKind.CLAIM, (claim("mine/data", "any"),))
    volumes = StorageReplaced(StorageKind.VOLUME, (volume("any"),))
    asked = asked_about(
        NodesReplaced(tuple(nodes)), claims, volumes, members=3, topology=Topology("example/node", required=True)
    )
    assert values[0] in told(asked, "w", EVERYTHING).message
    found = json.dumps(as_object(told(asked, "w", MINE)))
    assert not any(value in found for value in values)


def test_numbers_stay_although_a_label_numbers_the_nodes():
    nodes = tuple(node(f"secret-{each}", cpu="1", labels={"example/slot": str(each)}) for each in range(1, 4))
    asked = asked_about(NodesReplaced(nodes), members=2)
    assert told(asked, "w", MINE).message == told(asked, "w", EVERYTHING).message
