"""Kubernetes' native groups, on an API server with the required feature gates; elsewhere these are off."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import crds
from testbed.api import Json
from testbed.control_plane import ControlPlane
from testbed.docs import ROOT
from testbed.operator import Operator
from testbed.workloads import member
from tests.integration.cluster import Cluster
from tests.integration.foreign import WORDS
from tests.natives import native

SYSTEM = "gangsched-system"
ACCOUNT = f"system:serviceaccount:{SYSTEM}:gangsched"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def with_gates() -> Iterator[ControlPlane]:
    known = native()
    gates = known.feature_gates()
    with ControlPlane(audit=True, extra_apiserver_args=(*gates, *known.served), extra_controller_args=gates) as running:
        crds.install(running)
        yield running


@pytest.fixture(scope="module")
def chart_operator(with_gates: ControlPlane) -> Iterator[Operator]:
    """gangsched with only the chart's rights for this dialect and its own."""
    shown = [f"--show-only=templates/{name}.yaml" for name in ("rbac", "serviceaccount")]
    chosen = ("--set", "image.repository=none", "--set", "dialects={gangsched,native}")
    chart = ROOT / "charts" / "gangsched"
    text = with_gates.helm("template", "gangsched", chart, "--namespace", SYSTEM, *chosen, *shown)
    with_gates.kubectl("create", "namespace", SYSTEM)
    with_gates.kubectl("apply", "--filename", "-", stdin=text)
    account = with_gates.kubeconfig_of_service_account(SYSTEM, "gangsched")
    with Operator(with_gates, kubeconfig=account) as running:
        yield running


@pytest.fixture
def gated(with_gates: ControlPlane, chart_operator: Operator) -> Cluster:
    """A new namespace and no nodes; each test names its nodes differently, as pods of earlier tests are left."""
    assert chart_operator.get("/readyz")[0] == 200
    with_gates.delete_nodes()
    name = f"test-{secrets.token_hex(4)}"
    with_gates.kubectl("create", "namespace", name)
    found = Cluster(with_gates, name)
    found.until(lambda: with_gates.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    return found


def declare(cluster: Cluster, name: str, policy: Json, **spec: object) -> None:
    words = native().words
    body = {**words.body, "metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}}
    cluster.api.post(words.at(cluster.namespace), body)


def add_pod(cluster: Cluster, name: str, group: str) -> None:
    cluster.make_pod(member(name, schedulingGroup={"podGroupName": group}))


def test_a_gang_is_bound_whole_when_complete_and_not_before(gated: Cluster) -> None:
    gated.add_node("a1")
    add_pod(gated, "one", "g")
    gated.until(lambda: gated.told("one").get("reason") == "PodGroupNotFound")
    missing = gated.told("one")["message"]
    declare(gated, "g", {"gang": {"minCount": 2}})
    gated.until(lambda: gated.told("one").get("reason") == "GangIncomplete")
    before = dict(gated.bound())
    add_pod(gated, "two", "g")
    gated.until(lambda: len(gated.bound()) == 2)

    assert missing.startswith(f"Group g: There is no podgroups.scheduling.k8s.io g in namespace {gated.namespace}: ")
    assert before == {}


def test_pods_of_a_basic_group_are_bound_alone(gated: Cluster) -> None:
    gated.add_node("b1", cpu="1")
    declare(gated, "loose", {"basic": {}})
    add_pod(gated, "one", "loose")
    add_pod(gated, "two", "loose")
    gated.until(lambda: len(gated.bound()) == 1)
    gated.add_node("b2", cpu="1")
    gated.until(lambda: len(gated.bound()) == 2)


def test_pods_of_a_basic_group_with_a_topology_are_bound_in_one_zone(gated: Cluster) -> None:
    for zone in "xy":
        gated.add_node(f"{zone}1", cpu="1", labels={"zone": zone})
    declare(gated, "near", {"basic": {}}, schedulingConstraints={"topology": [{"key": "zone"}]})
    add_pod(gated, "one", "near")
    add_pod(gated, "two", "near")
    gated.until(lambda: "Unschedulable" in {gated.told(name).get("reason") for name in ("one", "two")})
    [[_, first]] = gated.bound().items()
    for zone in "xy":
        gated.add_node(f"{zone}2", cpu="1", labels={"zone": zone})
    gated.until(lambda: len(gated.bound()) == 2)

    assert {node[0] for node in gated.bound().values()} == {first[0]}


def test_beside_gangscheds_own_label_it_does_not_count_and_an_event_says_so(gated: Cluster) -> None:
    gated.add_node("d1")
    declare(gated, "made", {"gang": {"minCount": 5}})
    gated.add_group("mine", min_member=2)
    for name in ("one", "two"):
        gated.add_pod(name, "mine", schedulingGroup={"podGroupName": "made"})
    gated.until_bound("", 2)
    gated.until(lambda: gated.events("mine", "NativeGroupIgnored"))


COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/{}/compositepodgroups"


def below(parent: str) -> Json:
    """The part of a spec that puts the group below this CompositePodGroup; the API server asks for a Workload then."""
    of = {"workloadRef": {"workloadName": "w", "templateName": "t"}}
    return of | ({"parentCompositePodGroupName": parent} if parent else {})


def compose(cluster: Cluster, name: str, least: int, parent: str = "", **spec: object) -> None:
    """Create a CompositePodGroup, of 1.37 on."""
    body = {"schedulingPolicy": {"gang": {"minGroupCount": least}}, **below(parent), **spec}
    head = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    cluster.api.post(COMPOSITES.format(cluster.namespace), {**head, "metadata": {"name": name}, "spec": body})


def test_a_tree_is_bound_as_its_root_says_each_group_in_a_rack_of_one_zone(gated: Cluster) -> None:
    """Two of three are enough, the oldest first; the third, for which the zone has no rack, waits as a whole."""
    for name, labels in {"y1": ("y", "y1"), "y2": ("y", "y2"), "x1": ("x", "x1"), "x2": ("x", "x2")}.items():
        gated.add_node(
            f"t{name}", cpu="1" if name == "y2" else "2", labels=dict(zip(("zone", "rack"), labels, strict=True))
        )
    rack = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    for name in ("a", "b", "c"):
        for number in range(2):
            add_pod(gated, f"{name}{number}", name)
        declare(gated, name, {"gang": {"minCount": 2}}, **below("sub" if name == "a" else "root"), **rack)
    gated.until(lambda: gated.told("a0").get("reason") == "PodGroupNotFound")
    waits = gated.told("a0")["message"]
    compose(gated, "sub", 1, "root")
    compose(gated, "root", 2, schedulingConstraints={"topology": [{"key": "zone"}]})
    gated.until(lambda: len(gated.bound()) == 4 and gated.told("a0").get("reason") == "Unschedulable")
    bound = gated.bound()
    gated.add_node("tx3", cpu="2", labels={"zone": "x", "rack": "x3"})
    gated.until(lambda: len(gated.bound()) == 6)

    assert waits.startswith(
        f"CompositePodGroup sub: There is no CompositePodGroup sub in namespace {gated.namespace}: "
    )
    assert {name[0]: node for name, node in bound.items()} == {"b": bound["b0"], "c": bound["c0"]}
    assert sorted(set(bound.values())) == ["tx1", "tx2"]


def test_the_manifest_of_its_page_ends_as_the_page_says(gated: Cluster) -> None:
    for number in range(2):
        gated.add_node(f"c{number}", cpu="2")
    text = (ROOT / "docs" / "migrate" / "native.md").read_text(encoding="utf-8")
    manifest = text.split("```yaml\n")[1].partition("```\n")[0].replace(WORDS["native"].path, native().words.path)
    gated.control_plane.kubectl("apply", "--namespace", gated.namespace, "--filename", "-", stdin=manifest)
    gated.until(lambda: len(gated.bound()) == 3)


def test_the_charts_rights_are_used_and_suffice(gated: Cluster) -> None:
    declare(gated, "g", {"gang": {"minCount": 2}})
    ours = gated.control_plane.audited(ACCOUNT)
    native = {
        entry["verb"]
        for entry in ours
        if (target := entry.get("objectRef", {})).get("apiGroup") == "scheduling.k8s.io"
        and target.get("resource") in ("podgroups", "compositepodgroups")
    }

    assert native == {"list", "watch"}
    refused = [entry["requestURI"] for entry in ours if entry.get("responseStatus", {}).get("code") in (401, 403)]
    assert refused == []


def test_without_the_gates_nothing_is_said_of_it(with_crd: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("dialects: [gangsched, native]\n")
    with Operator(with_crd, "--config", str(config)) as running:
        log = running.log

    assert "scheduling.k8s.io" not in log
    assert "another system" not in log
