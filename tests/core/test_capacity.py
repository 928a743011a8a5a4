from __future__ import annotations

import numpy as np
import pytest

from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.quantity import MAX_AMOUNT, clip
from gangsched.core.objects.shape import PODS
from tests.builders import GPU, amounts


def capacity_of(**nodes):
    capacity = Capacity()
    for name, allocatable in nodes.items():
        capacity.set_node(name, amounts(allocatable))
    return capacity


def test_every_pod_takes_one_of_the_pod_count_besides_what_it_requests():
    capacity = capacity_of(n1={"cpu": 8, "pods": 10})
    capacity.count(0, amounts({"cpu": "1500m"}))
    capacity.count(0, ())
    assert capacity.free_of(0, "cpu") == 6500
    assert capacity.free_of(0, PODS) == 8
    assert capacity.free[0, capacity.columns["cpu"]] == 6500
    assert capacity.free[0, capacity.columns[PODS]] == 8


def test_a_resource_that_no_node_has_has_no_column_until_one_has():
    capacity = capacity_of(n1={"cpu": 8, "pods": 10})
    capacity.count(0, amounts({GPU: 2}))
    assert capacity.column(GPU) is None
    assert capacity.free_of(0, GPU) == -2
    capacity.set_node("n2", amounts({GPU: 8}))
    column = capacity.column(GPU)
    assert column is not None
    assert capacity.free[:2, column].tolist() == [-2, 8]
    assert capacity.mismatches([("n1", amounts({GPU: 2}))]) == []


def test_a_row_that_was_given_up_is_reused_without_memory_of_its_former_node():
    capacity = capacity_of(n1={"cpu": 8, GPU: 4, "pods": 10}, n2={"cpu": 8, "pods": 10})
    capacity.count(0, amounts({"cpu": 2, GPU: 1}))
    assert capacity.remove_node("n1") == 0
    assert capacity.names == ["", "n2"]
    assert not capacity.free[0].any()
    assert not capacity.allocatable[0].any()
    assert capacity.set_node("n3", amounts({"cpu": 1, "pods": 1})) == 0
    assert capacity.names == ["n3", "n2"]
    assert capacity.free_of(0, "cpu") == 1000
    assert capacity.free[0, capacity.columns[GPU]] == 0
    assert capacity.mismatches([]) == []


def test_it_grows_in_both_directions():
    capacity = Capacity()
    expected = {}
    for at in range(40):
        allocatable = amounts({"cpu": at + 1, "pods": 3, f"x.io/r{at}": at + 1})
        expected[f"n{at}"] = allocatable
        assert capacity.set_node(f"n{at}", allocatable) == at
    for at in range(40):
        capacity.count(at, expected[f"n{at}"])
    assert capacity.mismatches(list(expected.items())) == []
    assert all(capacity.free_of(at, f"x.io/r{at}") == 0 for at in range(40))
    assert capacity.allocatable[39, capacity.columns["x.io/r39"]] == 40


@pytest.mark.parametrize(
    ("amount", "held"),
    [
        (0, 0),
        (-7, -7),
        (MAX_AMOUNT, MAX_AMOUNT),
        (MAX_AMOUNT + 1, MAX_AMOUNT),
        (-(10**30), -MAX_AMOUNT),
        (10**30, MAX_AMOUNT),
    ],
)
def test_the_matrix_holds_every_amount_that_can_be_given_and_clips_the_rest(amount, held):
    assert clip(amount) == held
    assert np.array([held], dtype=np.int64)[0] == held


def test_absurd_requests_are_summed_exactly():
    capacity = capacity_of(n1={"memory": MAX_AMOUNT, "pods": 10})
    huge = (("memory", MAX_AMOUNT),)
    for _ in range(5):
        capacity.count(0, huge)
    assert capacity.free_of(0, "memory") == -4 * MAX_AMOUNT
    assert capacity.free[0, capacity.columns["memory"]] == -MAX_AMOUNT
    for _ in range(4):
        capacity.count(0, huge, -1)
    assert capacity.free[0, capacity.columns["memory"]] == 0
    assert capacity.mismatches([("n1", huge)]) == []


def test_mismatches_names_the_node_and_what_is_held_wrongly():
    capacity = capacity_of(n1={"cpu": 8, "pods": 10}, n2={"cpu": 8, "pods": 10})
    capacity.count(0, amounts({"cpu": 1}))
    assert capacity.mismatches([("n1", amounts({"cpu": 1}))]) == []
    (wrong,) = capacity.mismatches([])
    assert wrong.startswith("n1: taken {'cpu': 1000, 'pods': 1}, expected {}")
    capacity.free[1, capacity.columns["cpu"]] = 5
    assert "n2: the matrix holds 5 of 8000 cpu" in capacity.mismatches([("n1", amounts({"cpu": 1}))])
