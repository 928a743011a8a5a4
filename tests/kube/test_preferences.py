from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.shape import NodeTerm, PodTerm, Requirement, Soft, Spread
from gangsched.kube.terms.unsupported import MOST_TERMS
from tests.kube.test_convert import node, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def liking(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {PREFERRED: list(terms)}}}


def test_preferred_terms_are_read_with_their_weights() -> None:
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    found = pod(liking({"weight": 70, "preference": fast}, {"weight": 5, "preference": named}))
    assert found.soft == Soft(
        (
            (70, NodeTerm((Requirement("disk", "In", ("ssd",)),))),
            (5, NodeTerm(fields=(Requirement("metadata.name", "In", ("n1",)),))),
        )
    )


@pytest.mark.parametrize(
    "spec",
    [
        {},
        liking(),
        liking({"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
        liking({"weight": 1, "preference": {}}),
        liking({"weight": 1}),
        {"containers": [{"name": "c"}], "volumes": [{"emptyDir": {}}, {"image": {}}]},
    ],
)
def test_what_cannot_tell_nodes_apart_is_no_preference(spec: dict[str, Any]) -> None:
    assert pod(spec).soft is None


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("app", "app:latest"),
        ("app:1", "app:1"),
        ("example.com:5000/app", "example.com:5000/app:latest"),
        ("example.com:5000/app:1", "example.com:5000/app:1"),
        ("app@sha256:0", "app@sha256:0"),
    ],
)
def test_an_image_is_named_as_the_kubelet_names_it(image: str, name: str) -> None:
    assert pod({"containers": [{"image": image}]}).soft == Soft((), (name,), 1)


def test_images_of_containers_init_containers_and_volumes_count_each() -> None:
    spec = {
        "initContainers": [{"image": "b:1"}],
        "containers": [{"image": "c:1"}, {"image": "b:1"}],
        "volumes": [{"image": {"reference": "a:1"}}],
    }
    assert pod(spec).soft == Soft((), ("a:1", "b:1", "b:1", "c:1"), 4)
    assert pod(spec).shape.unsupported == ()


def test_members_that_prefer_the_same_share_it() -> None:
    spec = {"containers": [{"image": "a:1"}]}
    assert pod(spec).soft is pod(spec).soft


def test_a_nodes_images_are_read_by_each_name_and_shared() -> None:
    status = {"images": [{"names": ["b:1", "a:2"], "sizeBytes": 7}, {}, {"names": ["a:1"], "sizeBytes": 9}]}
    found = node(status=status)
    assert found.images == (("a:1", 9), ("a:2", 7), ("b:1", 7))
    assert all(one is other for one, other in zip(found.images, node(status=status).images, strict=True))
    assert node(status={"images": [{}]}).images == ()


def of_pods(*terms: tuple[int, str], kind: str = "podAffinity") -> dict[str, Any]:
    """Preferred terms about pods with these values of the label `app`, each with its weight."""
    found = [
        {"weight": weight, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}}
        for weight, app in terms
    ]
    return {kind: {PREFERRED: found}}


def about(app: str) -> PodTerm:
    return PodTerm("zone", (Requirement("app", "In", (app,)),), ("team",))


def test_preferred_terms_about_pods_are_read_and_those_of_anti_affinity_count_against_a_node() -> None:
    affinity = of_pods((7, "a"), (9, "b")) | of_pods((3, "c"), kind="podAntiAffinity")
    found = pod({"affinity": affinity})
    assert found.soft == Soft(pod_terms=((9, about("b")), (7, about("a")), (-3, about("c"))))
    assert (found.shape.affinity, found.shape.anti_affinity) == ((), ())


def test_a_term_about_pods_without_weight_or_term_is_no_preference() -> None:
    empty = {"podAffinity": {PREFERRED: [{"weight": 1}]}}
    assert pod({"affinity": of_pods((0, "a"))}).soft is None
    assert pod({"affinity": empty}).soft is None


def test_a_spread_with_schedule_anyway_is_a_preference_and_any_other_is_none() -> None:
    selector = {"labelSelector": {"matchLabels": {"app": "a"}}}
    either = [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": when, **selector}
        for when in ("ScheduleAnyway", "DoNotSchedule")
    ]
    found = pod({"topologySpreadConstraints": either})
    assert found.soft == Soft(spread=(Spread(about("a"), 2),))
    assert found.shape.spread == (Spread(about("a"), 2),)


def test_of_many_preferences_about_pods_the_heaviest_count_and_none_is_refused() -> None:
    many = [(weight, f"a{weight}") for weight in range(1, 2 * MOST_TERMS + 1)]
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    found = pod({"affinity": of_pods(*many), "topologySpreadConstraints": [spread] * 2 * MOST_TERMS})
    assert found.soft is not None
    assert [weight for weight, _ in found.soft.pod_terms] == list(range(2 * MOST_TERMS, MOST_TERMS, -1))
    assert len(found.soft.spread) == MOST_TERMS
    assert found.shape.unsupported == ()
