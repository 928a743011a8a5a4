"""Which members make the quorum where the first of them do not fit together."""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import by_age, member_order
from gangsched.core.planning.choice import choose, in_order
from gangsched.core.planning.search import Slots
from tests.builders import pod


@pytest.mark.parametrize(
    ("sizes", "room", "need", "chosen"),
    [
        pytest.param((1, 1, 1), 2, 2, [0, 1], id="the first fit"),
        pytest.param((2, 3, 1), 3, 2, [0, 2], id="the second does not fit beside the first"),
        pytest.param((3, 1, 1), 2, 2, [1, 2], id="the first fits with nobody"),
        pytest.param((2, 2, 2, 1), 3, 2, [0, 3], id="all of one kind are passed over together"),
        pytest.param((1, 3, 2, 1), 4, 2, [0, 1], id="an exact fit"),
        pytest.param((1, 3, 2, 1), 4, 3, [0, 2, 3], id="the minimum decides"),
    ],
)
def test_the_first_choice_that_fits(sizes, room, need, chosen):
    members = [pod(f"m-{at}", cpu=size) for at, size in enumerate(sizes)]
    size_of = dict(zip((each.uid for each in members), sizes, strict=True))
    accepted: list[str] = []

    def fits(first):
        others = sorted(size_of[each.uid] for each in members if each not in first)[: need - len(first)]
        if sum(size_of[each.uid] for each in first) + sum(others) > room:
            return False
        accepted[:] = [each.name for each in first]
        return True

    in_order(members, Slots.of(need, {}), kind=lambda each: size_of[each.uid], fits=fits)
    assert accepted == [f"m-{at}" for at in chosen]


def test_too_few_members_are_no_choice():
    assert choose([pod("m-0")], Slots.of(2, {}), set()) is None


def test_members_are_ordered_by_priority_creation_and_name_and_speakers_by_age():
    members = [pod("b", created=2.0, priority=5), pod("a", created=2.0, priority=5), pod("c", priority=1)]
    assert [each.name for each in sorted(members, key=member_order)] == ["a", "b", "c"]
    assert [each.name for each in sorted(members, key=by_age)] == ["c", "a", "b"]
