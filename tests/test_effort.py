"""How many rounds of kills are played."""

from __future__ import annotations

import pytest

from tests.effort import kills, some


@pytest.mark.parametrize(
    ("striking", "rounds"),
    [
        ({0, 1}, 2),
        ({0, 4}, 5),
        ({3, 4, 5}, 5),
        ({18, 19}, 20),
    ],
)
def test_kills_go_on_until_two_have_struck(striking: set[int], rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.effort.examples", lambda usual: usual // 10)
    struck: list[int] = []
    played = []
    for number in kills(struck):
        played.append(number)
        if number in striking:
            struck.append(number)
    assert played == list(range(rounds))


def test_kills_that_do_not_strike_fail() -> None:
    with pytest.raises(AssertionError, match="only 1 of 20 kills have struck"):
        list(kills([7]))


def test_some_cases_are_the_same_each_time_and_in_order() -> None:
    cases = [*range(1000)]
    chosen = some(cases, draw="a test")
    assert chosen == some(cases, draw="a test") == sorted(chosen)
    assert chosen != some(cases, draw="another test")
