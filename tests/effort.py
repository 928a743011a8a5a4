"""How many cases tests try: one in thirty of the usual number in `make check`, twenty times as many in `make nightly`.

The name of the hypothesis profile decides this; `tests/conftest.py` defines the profiles and loads one before any test
is imported.

`make test` tries an eighth of random cases, of sweeps over many cases, and of the cases of slow tests: the rest would
take longer than everything else. `make nightly` tries all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence, Sized
from random import Random
from typing import Any, TypeVar

import hypothesis
import pytest

Of = TypeVar("Of")

_OF_PROFILE = {"check": 0.03, "mutations": 0.05, "test": 1, "nightly": 20}
"""How many cases each profile tries of one that `make test` tries."""
_FEW = 10
_MOST_KILLS = 20
_KILLS_THAT_STRIKE = 2

first_seed = 1
"""First seed of `seeded`: the value of `--hypothesis-seed` if given."""


def tries(usual: int) -> int:
    """How many cases to try in this run if `make test` tries `usual`; at least one."""
    return max(1, int(usual * _OF_PROFILE[hypothesis.settings.get_current_profile_name()]))


def examples(usual: int) -> int:
    """How many random examples, stories or seeds to try in this run; at least one."""
    return -(-usual // 8) if tries(8) == 8 else tries(usual)


def few(cases: Sequence[Of]) -> Sequence[Of]:
    """The cases of one test that a quick run tries: ten, evenly spread. Others try all."""
    return cases if tries(_FEW) >= _FEW else cases[:: -(-len(cases) // _FEW)]


def seeded(usual: int) -> Callable[[Callable[..., Any]], pytest.MarkDecorator]:
    """Call the test with `examples(usual)` values of `seed`; `make nightly` takes different values each time."""
    seeds = range(first_seed, first_seed + examples(usual))
    return lambda test: pytest.mark.explores(pytest.mark.parametrize("seed", seeds)(test))


def in_turn(
    names: str,
    cases: Iterable[Any],
    *,
    ids: Callable[[Any], object] | None = None,
    always: Container[Any] = (),
    share: tuple[int, int] | None = None,
) -> Callable[[Callable[..., Any]], pytest.MarkDecorator]:
    """Call a slow test (seconds a call) with `some` of the cases, chosen by its name, and those in `always`.

    With a `share` of (1, 3) it is every third case beginning with the second: three tests with the shares of 0, 1 and 2
    try all of them together. `make nightly` tries all. Otherwise like `pytest.mark.parametrize`.
    """

    def decorated(test: Callable[..., Any]) -> pytest.MarkDecorator:
        all_ = list(cases)
        drawn = some(all_, draw=test.__name__)
        if share is not None and len(drawn) < len(all_):
            drawn = all_[share[0] :: share[1]]
        chosen = [case for case in all_ if case in drawn or case in always]
        explored: pytest.MarkDecorator = pytest.mark.explores(pytest.mark.parametrize(names, chosen, ids=ids)(test))
        return explored

    return decorated


def in_their_turn(runs: Sequence[tuple[Hashable, Hashable]]) -> list[bool]:
    """Which runs of a case in a course to make, so that the cases take turns and each course has a case.

    With four courses a case of many has one of them, and an only case has all. A single course has every second case.
    """
    cases: dict[Hashable, int] = {}
    courses: dict[Hashable, int] = {}
    for case, course in runs:
        cases.setdefault(case, len(cases))
        courses.setdefault(course, len(courses))
    turns = min(len(cases), max(2, len(courses)))
    return [(cases[case] - courses[course]) % turns == 0 for case, course in runs]


def kills(struck: Sized) -> Iterator[int]:
    """Number the rounds of kills at random instants: three, in `make nightly` twenty, and more until two have struck.

    `struck` grows with each kill that interrupted something.

    Raises:
        AssertionError: fewer than two of twenty kills have struck, so the instants are chosen badly.
    """
    least = min(examples(_MOST_KILLS), _MOST_KILLS)
    for number in range(_MOST_KILLS):
        if number >= least and len(struck) >= _KILLS_THAT_STRIKE:
            return
        yield number
    assert len(struck) >= _KILLS_THAT_STRIKE, f"only {len(struck)} of {_MOST_KILLS} kills have struck"


def some(cases: Sequence[Of], *, draw: str) -> list[Of]:
    """An eighth of the cases, a twentieth in `make check` and all in `make nightly`; `draw` seeds the choice."""
    number = min(len(cases), examples(len(cases)))
    return [cases[index] for index in sorted(Random(draw).sample(range(len(cases)), number))]
