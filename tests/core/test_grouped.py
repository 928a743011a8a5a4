"""Items in groups are found from both sides."""

from __future__ import annotations

from gangsched.core.objects.indexes import Grouped


def test_an_item_is_found_in_the_group_that_it_was_put_into_last():
    grouped = Grouped[str, int]()
    grouped.put("a", 1)
    grouped.put("b", 1)
    grouped.put("a", 1)
    assert ([*grouped.of(1)], grouped.group_of("a"), "a" in grouped) == (["a", "b"], 1, True)
    grouped.put("a", 2)
    assert ([*grouped.of(1)], [*grouped.of(2)], [*grouped.items()]) == (["b"], ["a"], [("b", 1), ("a", 2)])


def test_nothing_is_left_of_a_group_without_items():
    grouped = Grouped[str, int]()
    grouped.put("a", 1)
    grouped.drop("a")
    grouped.drop("a")
    assert ([*grouped.groups()], [*grouped.of(1)], grouped.group_of("a"), "a" in grouped) == ([], [], None, False)
