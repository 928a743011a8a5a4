from __future__ import annotations

import pytest

from gangsched.core.objects.quantity import MAX_AMOUNT, unrounded
from gangsched.core.objects.requests import InitContainer, aggregated, counted, counted_amounts, held, pod_requests


def init(**requests):
    return InitContainer(requests)


def sidecar(**requests):
    return InitContainer(requests, sidecar=True)


@pytest.mark.parametrize(
    ("containers", "init_containers", "cpu"),
    [
        pytest.param([], [], 0, id="nothing"),
        pytest.param([{"cpu": 100}, {"cpu": 200}, {}], [], 300, id="containers add up, a missing request is zero"),
        pytest.param([{"cpu": 100}], [init(cpu=500)], 500, id="an init container alone can be the most"),
        pytest.param([{"cpu": 100}], [init(cpu=50), init(cpu=80)], 100, id="init containers do not add up"),
        pytest.param([{"cpu": 100}], [sidecar(cpu=50), sidecar(cpu=20)], 170, id="sidecars add to containers"),
        pytest.param([{"cpu": 100}], [sidecar(cpu=50), init(cpu=200)], 250, id="init beside the sidecar before it"),
        pytest.param([{"cpu": 100}], [init(cpu=200), sidecar(cpu=50)], 200, id="init before the sidecar starts"),
        pytest.param(
            [{"cpu": 1}],
            [sidecar(cpu=10), init(cpu=100), sidecar(cpu=20), init(cpu=95)],
            125,
            id="each init container beside the sidecars with a lower index only",
        ),
        pytest.param([], [sidecar(cpu=50), sidecar(cpu=30)], 80, id="sidecars starting count those before them"),
        pytest.param([{}], [init(cpu=10)], 10, id="only the init container asks"),
    ],
)
def test_a_pod_asks_for_the_most_it_takes_at_any_moment(containers, init_containers, cpu):
    expected = (("cpu", cpu),) if cpu else ()
    assert pod_requests(aggregated(containers, init_containers)) == expected


def test_each_resource_has_its_own_most():
    assert pod_requests(
        aggregated([{"cpu": 300, "memory": 10}], [InitContainer({"cpu": 100, "memory": 50, "a.b/c": 1})])
    ) == (("a.b/c", 1), ("cpu", 300), ("memory", 50))


@pytest.mark.parametrize(
    ("pod_level", "overhead", "expected"),
    [
        pytest.param(None, {}, (("cpu", 1000), ("e.com/gpu", 2), ("memory", 64)), id="neither"),
        pytest.param({}, {}, (("cpu", 1000), ("e.com/gpu", 2), ("memory", 64)), id="empty pod level"),
        pytest.param({"cpu": 4000}, {}, (("cpu", 4000), ("e.com/gpu", 2), ("memory", 64)), id="more replaces"),
        pytest.param(
            {"cpu": 1}, {}, (("cpu", 1), ("e.com/gpu", 2), ("memory", 64)), id="less replaces too, no maximum"
        ),
        pytest.param({"cpu": 0}, {}, (("e.com/gpu", 2), ("memory", 64)), id="zero replaces too"),
        pytest.param(
            {"hugepages-2Mi": 8},
            {},
            (("cpu", 1000), ("e.com/gpu", 2), ("hugepages-2Mi", 8), ("memory", 64)),
            id="hugepages are supported",
        ),
        pytest.param(
            {"e.com/gpu": 9, "ephemeral-storage": 7},
            {},
            (("cpu", 1000), ("e.com/gpu", 2), ("memory", 64)),
            id="other resources stay the sum of the containers",
        ),
        pytest.param(
            None, {"cpu": 250, "memory": 6}, (("cpu", 1250), ("e.com/gpu", 2), ("memory", 70)), id="overhead on top"
        ),
        pytest.param(
            {"cpu": 500}, {"cpu": 250}, (("cpu", 750), ("e.com/gpu", 2), ("memory", 64)), id="also of the pod level"
        ),
        pytest.param(
            None,
            {"ephemeral-storage": 5},
            (("cpu", 1000), ("e.com/gpu", 2), ("ephemeral-storage", 5), ("memory", 64)),
            id="overhead of a resource that no container asks for",
        ),
    ],
)
def test_pod_level_requests_replace_and_overhead_comes_last(pod_level, overhead, expected):
    containers = [{"cpu": 600, "memory": 64, "e.com/gpu": 2}, {"cpu": 400}]
    assert pod_requests(aggregated(containers), pod_level=pod_level, overhead=overhead) == expected


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cpu", True),
        ("memory", True),
        ("ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-ebs", True),
        ("nvidia.com/gpu", True),
        ("example.com/foo", True),
        ("kubernetes.io/batch-cpu", True),
        ("sub.kubernetes.io/thing", True),
        ("requests.kubernetes.io/thing", True),
        ("requests.nvidia.com/gpu", False),
        ("storage", False),
        ("pods", False),
        ("gpu", False),
        ("", False),
    ],
)
def test_only_resources_that_the_scheduler_counts_are_kept(name, counts):
    assert counted(name) is counts
    assert pod_requests({name: 3}) == (((name, 3),) if counts else ())


def test_amounts_are_sorted_by_name_and_hold_no_zero():
    assert counted_amounts({"memory": 2, "cpu": 1, "a.b/c": 0, "storage": 9}) == (("cpu", 1), ("memory", 2))


def test_a_sum_stays_within_64_bits():
    assert pod_requests(aggregated([{"cpu": MAX_AMOUNT}, {"cpu": 1}])) == (("cpu", MAX_AMOUNT),)


def test_the_mappings_of_the_caller_are_left_as_they_were():
    container, first, overhead = {"cpu": 1}, {"cpu": 5}, {"cpu": 2}
    aggregated([container, container], [InitContainer(first, sidecar=True), InitContainer(first)])
    pod_requests(container, pod_level={"memory": 1}, overhead=overhead)
    held(container, first, overhead)
    assert (container, first, overhead) == ({"cpu": 1}, {"cpu": 5}, {"cpu": 2})


@pytest.mark.parametrize(
    ("actuated", "allocated", "infeasible", "cpu"),
    [
        pytest.param(100, 100, False, 300, id="growing: the wish counts"),
        pytest.param(500, 300, False, 500, id="shrinking: what still runs counts"),
        pytest.param(300, 400, False, 400, id="admitted and not yet running counts"),
        pytest.param(100, 100, True, 100, id="an infeasible wish does not count"),
        pytest.param(100, 200, True, 200, id="infeasible: admitted or running, the more"),
    ],
)
def test_what_is_being_resized_holds_the_greatest_of_its_sizes(actuated, allocated, infeasible, cpu):
    assert held({"cpu": 300}, {"cpu": actuated}, {"cpu": allocated}, infeasible=infeasible) == {"cpu": cpu}


def test_a_resize_is_judged_for_each_resource():
    found = held({"cpu": 300, "memory": 5}, {"cpu": 100, "memory": 9, "a.b/c": 1})
    assert found == {"cpu": 300, "memory": 9, "a.b/c": 1}


def test_fractions_are_added_before_they_are_rounded() -> None:
    """Two containers of a half each take one unit, not two: the pod's sum is rounded, not each container's request."""
    half = {"memory": unrounded("memory", "500m")}

    assert pod_requests(aggregated([half, half])) == (("memory", 1),)
    assert pod_requests(aggregated([half, half, half])) == (("memory", 2),)
