"""How many rounds of kills are played, and which cases of a story."""

from __future__ import annotations

import pytest

from tests.effort import in_their_turn, kills, some


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


@pytest.mark.parametrize(
    ("cases", "courses", "made"),
    [
        ("a", "1234", "a1 a2 a3 a4"),
        ("ab", "1234", "a1 a3 b2 b4"),
        ("abc", "1234", "a1 a4 b2 c3"),
        ("abcde", "1234", "a1 b2 c3 d4 e1"),
        ("abcd", "12", "a1 b2 c1 d2"),
        ("a", "1", "a1"),
        ("abcde", "1", "a1 c1 e1"),
        ("abc", "", ""),
    ],
)
def test_cases_take_turns_in_the_courses_and_each_course_has_a_case(cases: str, courses: str, made: str) -> None:
    by_course = [(case, course) for course in courses for case in cases]
    for runs in (by_course, sorted(by_course)):
        kept = [case + course for (case, course), is_kept in zip(runs, in_their_turn(runs), strict=True) if is_kept]
        assert " ".join(sorted(kept)) == made
