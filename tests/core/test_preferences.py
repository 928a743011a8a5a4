from __future__ import annotations

import pytest

from gangsched.core.cluster.labels import ranks
from gangsched.core.objects.declaration import Preference


def by(key="cost", *, order="", values=()):
    return Preference(key, order, tuple(values))


@pytest.mark.parametrize(
    ("labels", "wish", "expected"),
    [
        pytest.param(["5", "1"], by(order="Ascending"), [1, 0], id="the lowest first"),
        pytest.param(["5", "1"], by(order="Descending"), [0, 1], id="the highest first"),
        pytest.param(["10", "9", "-1"], by(order="Ascending"), [2, 1, 0], id="as numbers, not as text"),
        pytest.param(["100", "250", None], by(order="Ascending"), [0, 1, 2], id="without the label last"),
        pytest.param(["b", "7", "a"], by(order="Ascending"), [2, 0, 1], id="numbers before text"),
        pytest.param(["b", "7", "a", None], by(order="Descending"), [1, 0, 2, 3], id="also when descending"),
        pytest.param(["3", "3", "4"], by(order="Ascending"), [0, 0, 1], id="equal values are equal"),
        pytest.param(["worst", "good", "best"], by(values=["best", "good"]), [2, 1, 0], id="named values"),
        pytest.param([None, "better", "x"], by(values=["best", "better"]), [2, 1, 2], id="others and none alike"),
        pytest.param(["good", "best"], by(values=["best", "good", "best"]), [1, 0], id="the first mention counts"),
        pytest.param(["²", "1", "٣"], by(order="Ascending"), [1, 0, 2], id="only ASCII digits are numbers"),
        pytest.param(["7", "007", "8"], by(order="Descending"), [1, 1, 0], id="equal numbers are equal"),
        pytest.param([], by(order="Ascending"), [], id="no nodes"),
    ],
)
def test_nodes_are_ordered_by_a_label(labels, wish, expected):
    nodes = [{} if value is None else {"cost": value} for value in labels]
    assert ranks(nodes, wish).tolist() == expected
