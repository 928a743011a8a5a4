"""Kubernetes' native groups, on an API server with the required feature gates; elsewhere these are off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from documentation.generate import ROOT
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import PutCondition
from gangsched.core.objects.podgroup import GroupCondition
from gangsched.kube.dialects.native_condition import condition_type
from gangsched.kube.writing.write_results import Outcome
from testbed import crds
from testbed.api import Json
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from testbed.workloads import member
from tests.integration.cluster import Cluster
from tests.integration.foreign import WORDS
from tests.integration.test_effects import sent
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
    with with_chart_rights(with_gates) as running:
        yield running


@contextmanager
def with_chart_rights(control_plane: ControlPlane) -> Iterator[Operator]:
    """gangsched with only the chart's rights for this dialect and its own."""
    with chart_account(control_plane, SYSTEM, "--set", "dialects={gangsched,native}"):
        account = control_plane.kubeconfig_of_service_account(SYSTEM, "gangsched")
        with Operator(control_plane, kubeconfig=account) as running:
            yield running


@pytest.fixture
def gated(with_gates: ControlPlane, chart_operator: Operator) -> Cluster:
    """A new namespace and no nodes; each test names its nodes differently, as pods of earlier tests are left."""
    assert chart_operator.get("/readyz")[0] == 200
    return Cluster.fresh(with_gates)


def declare(cluster: Cluster, name: str, policy: Json, **spec: object) -> None:
    words = native().words
    body = {**words.body, "metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}}
    cluster.api.post(words.at(cluster.namespace), body)


def add_pod(cluster: Cluster, name: str, group: str) -> None:
    cluster.make_pod(member(name, schedulingGroup={"podGroupName": group}))


def conditions(cluster: Cluster, name: str = "g") -> dict[str, Json]:
    """The conditions of the PodGroup by type."""
    found = cluster.api.get(f"{native().words.at(cluster.namespace)}/{name}").get("status", {}).get("conditions", [])
    return {each["type"]: each for each in found}


def condition(cluster: Cluster, name: str = "g") -> Json:
    """The condition that says whether the group was scheduled; empty if there is none."""
    return conditions(cluster, name).get(condition_type(native().versions[0]), {})


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
    missing = f"CompositePodGroup sub: There is no CompositePodGroup sub in namespace {gated.namespace}: "
    gated.until(lambda: gated.told("a0").get("message", "").startswith(missing))
    assert gated.told("a0")["reason"] == "PodGroupNotFound"
    compose(gated, "sub", 1, "root")
    compose(gated, "root", 2, schedulingConstraints={"topology": [{"key": "zone"}]})
    gated.until(lambda: len(gated.bound()) == 4 and gated.told("a0").get("reason") == "Unschedulable")
    bound = gated.bound()
    gated.add_node("tx3", cpu="2", labels={"zone": "x", "rack": "x3"})
    gated.until(lambda: len(gated.bound()) == 6)

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
    gated.add_node("r1")
    declare(gated, "g", {"gang": {"minCount": 1}})
    add_pod(gated, "one", "g")
    gated.until(lambda: condition(gated).get("status") == "True")
    ours = gated.control_plane.audited(ACCOUNT)
    native = {
        (entry["verb"], target.get("subresource", ""))
        for entry in ours
        if (target := entry.get("objectRef", {})).get("apiGroup") == "scheduling.k8s.io"
        and target.get("resource") in ("podgroups", "compositepodgroups")
    }

    assert native == {("list", ""), ("watch", ""), ("patch", "status")}
    refused = [entry["requestURI"] for entry in ours if entry.get("responseStatus", {}).get("code") in (401, 403)]
    assert refused == []


def test_a_min_count_that_is_lowered_while_the_gang_waits_counts_at_once(gated: Cluster) -> None:
    gated.add_node("v1")
    declare(gated, "g", {"gang": {"minCount": 3}})
    for name in ("one", "two"):
        add_pod(gated, name, "g")
    gated.until(lambda: gated.told("two").get("reason") == "GangIncomplete")
    lowered = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    gated.api.merge(f"{native().words.at(gated.namespace)}/g", lowered)
    gated.until(lambda: len(gated.bound()) == 2)


def test_the_priority_that_admission_writes_without_a_class_is_not_the_groups(gated: Cluster) -> None:
    """The group's pods have a higher priority than the group that was there before it."""
    high: Json = {"metadata": {"name": f"high-{gated.namespace}"}, "value": 1000}
    gated.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", high)
    near: Json = {"nodeSelector": {"for": gated.namespace}}
    gated.add_group("before", min_member=1, priority=500)
    gated.add_pod("before-0", "before", **near)
    declare(gated, "g", {"gang": {"minCount": 1}}, disruptionMode={"all": {}})
    spec = gated.api.get(f"{native().words.at(gated.namespace)}/g")["spec"]
    named = {"schedulingGroup": {"podGroupName": "g"}, "priorityClassName": high["metadata"]["name"]}
    gated.make_pod(member("one", **near, **named))
    gated.until(lambda: gated.told("one") and gated.told("before-0"))
    gated.add_node("w1", cpu="1", labels=near["nodeSelector"])
    gated.until(gated.bound)

    assert (spec["priority"], spec.get("priorityClassName", "")) == (0, "")
    assert (spec["disruptionMode"], spec["preemptionPolicy"]) == ({"all": {}}, "PreemptLowerPriority")
    assert set(gated.bound()) == {"one"}


def test_the_condition_is_false_with_what_is_lacking_then_true_for_ever_and_others_stay(gated: Cluster) -> None:
    gated.add_node("s1", cpu="1")
    declare(gated, "g", {"gang": {"minCount": 2}})
    add_pod(gated, "one", "g")
    gated.until(lambda: gated.told("one").get("reason") == "GangIncomplete")
    waiting = conditions(gated)
    # The API server counts no generations of PodGroups up to 1.37, so kube-scheduler's condition has none either.
    generation = gated.api.get(f"{native().words.at(gated.namespace)}/g")["metadata"].get("generation", 0)
    other = {"type": "DisruptionTarget", "status": "False", "reason": "Test", "message": ""}
    other["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    gated.api.merge(f"{native().words.at(gated.namespace)}/g/status", {"status": {"conditions": [other]}})
    add_pod(gated, "two", "g")
    gated.until(lambda: condition(gated).get("status") == "False")
    refused = condition(gated)
    gated.add_node("s2", cpu="1")
    gated.until(lambda: condition(gated).get("status") == "True")
    scheduled = conditions(gated)
    gated.delete_pod("one")
    add_pod(gated, "three", "g")
    gated.until(lambda: "three" in gated.bound())

    assert waiting == {}
    assert refused["reason"] == "Unschedulable"
    assert refused.get("observedGeneration", 0) == generation
    assert refused["message"].startswith("Only 1 of 2 members fit")
    assert condition(gated)["reason"] == "Scheduled"
    assert condition(gated)["lastTransitionTime"] >= refused["lastTransitionTime"] > "2026"
    assert scheduled["DisruptionTarget"] == other
    assert conditions(gated) == scheduled


def test_another_podgroup_of_the_name_does_not_get_the_condition(gated: Cluster) -> None:
    declare(gated, "g", {"gang": {"minCount": 2}})
    said = GroupCondition(scheduled=True, reason="Scheduled", generation=1)
    effect = PutCondition(GroupKey(gated.namespace, "g"), "another-uid", said, native().versions[0], since=1.0)
    account = gated.control_plane.kubeconfig_of_service_account(SYSTEM, "gangsched")

    assert sent(gated, effect, account).result == Outcome.GONE
    assert conditions(gated) == {}


def test_without_the_right_groups_are_scheduled_and_the_log_says_once_what_is_missing(
    gated: Cluster, tmp_path: Path
) -> None:
    gated.add_node("u1")
    system = f"{gated.namespace}-op"
    config = tmp_path / "config.yaml"
    config.write_text("{schedulerNames: [late], dialects: [gangsched, native]}")
    values = ("--set", "dialects={gangsched,native}", "--set", "config.native.writeCondition=false")
    with chart_account(gated.control_plane, system, *values):
        account = gated.control_plane.kubeconfig_of_service_account(system, "gangsched")
        with Operator(gated.control_plane, "--config", str(config), kubeconfig=account) as running:
            for name in ("g", "h"):
                declare(gated, name, {"gang": {"minCount": 1}})
                gated.make_pod(member(f"{name}-0", scheduler="late", schedulingGroup={"podGroupName": name}))
            gated.until(lambda: len(gated.bound()) == 2)
            gated.until(lambda: running.metric("gangsched_writes_total", kind="PutCondition", result="Refused") == 2)
            said = [line for line in running.log.splitlines() if "native.writeCondition" in line]
        denied = gated.control_plane.not_permitted(f"system:serviceaccount:{system}:gangsched")

    assert len(said) == len(denied) == 1
    assert conditions(gated) == conditions(gated, "h") == {}


@pytest.mark.parametrize(
    ("values", "verbs"),
    [
        ("dialects={gangsched,native}", [["patch"]]),
        ("dialects={gangsched,native},config.native.writeCondition=true", [["patch"]]),
        ("dialects={gangsched,native},config.native.writeCondition=false", []),
        ("dialects={gangsched,volcano}", []),
    ],
)
def test_the_chart_grants_the_condition_with_the_dialect_unless_it_is_not_written(
    with_gates: ControlPlane, values: str, verbs: list[list[str]]
) -> None:
    chosen = ("--set", f"image.repository=none,{values}", "--show-only=templates/rbac.yaml")
    text = with_gates.helm("template", "gangsched", ROOT / "charts" / "gangsched", *chosen)
    rules = [rule for each in yaml.safe_load_all(text) if each for rule in each.get("rules", [])]
    of_status = [rule for rule in rules if "podgroups/status" in rule["resources"]]

    assert [rule["verbs"] for rule in of_status if rule["apiGroups"] == ["scheduling.k8s.io"]] == verbs
