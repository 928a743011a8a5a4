"""How many cases tests try: a tenth of the usual number in `make check`, twenty times as many in `make nightly`.

The hypothesis profile decides this by its default number of examples, usually 100; `tests/conftest.py`
defines the profiles and loads one before any test is imported.

`make test` tries three tenths of random cases and of sweeps over many cases: the rest took half of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar

import hypothesis
import pytest

Of = TypeVar("Of")

_USUAL = 100

first_seed = 1
"""First seed of `seeded`: the value of `--hypothesis-seed` if given."""


def tries(usual: int) -> int:
    """How many cases to try in this run if `make test` tries `usual`; at least one."""
    return max(1, usual * hypothesis.settings().max_examples // _USUAL)


def examples(usual: int) -> int:
    """How many random examples, stories or seeds to try in this run; at least one."""
    return -(-usual * 3 // 10) if tries(_USUAL) == _USUAL else tries(usual)


def seeded(usual: int) -> Callable[[Callable[..., Any]], pytest.MarkDecorator]:
    """Call the test with `examples(usual)` values of `seed`; `make nightly` takes different values each time."""
    seeds = range(first_seed, first_seed + examples(usual))
    return lambda test: pytest.mark.explores(pytest.mark.parametrize("seed", seeds)(test))


def in_turn(
    names: str, cases: Iterable[Any], *, ids: Callable[[Any], object] | None = None
) -> Callable[[Callable[..., Any]], pytest.MarkDecorator]:
    """Call a slow test (seconds a call) with a third of the cases, chosen by the test's name.

    `make nightly` tries all cases. Otherwise like `pytest.mark.parametrize`.
    """

    def decorated(test: Callable[..., Any]) -> pytest.MarkDecorator:
        all_ = list(cases)
        number = len(all_) if tries(_USUAL) > _USUAL else -(-len(all_) // 3)
        chosen = [all_[index] for index in sorted(Random(test.__name__).sample(range(len(all_)), number))]
        explored: pytest.MarkDecorator = pytest.mark.explores(pytest.mark.parametrize(names, chosen, ids=ids)(test))
        return explored

    return decorated


def some(cases: Sequence[Of], *, draw: str) -> list[Of]:
    """Three tenths of the cases, a tenth in `make check` and all in `make nightly`; `draw` seeds the choice."""
    number = min(len(cases), examples(len(cases)))
    return [cases[index] for index in sorted(Random(draw).sample(range(len(cases)), number))]
