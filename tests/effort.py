"""How much the tests try: a tenth of the usual in `make check`, twenty times as much in `make nightly`.

The hypothesis profile says it (`tests/conftest.py` has the three), by how many examples it gives a property that names
no number of its own; 100 is the usual. It is loaded before any test is imported.

`make test` tries three tenths of what is random and of sweeps over many cases: the rest took half of its time.
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
"""Where the seeds of `seeded` begin: `--hypothesis-seed`, where it is given."""


def tries(usual: int) -> int:
    """How often to try in this run what `make test` tries so often; at least once."""
    return max(1, usual * hypothesis.settings().max_examples // _USUAL)


def examples(usual: int) -> int:
    """How many random examples, stories or seeds to try in this run; at least one."""
    return -(-usual * 3 // 10) if tries(_USUAL) == _USUAL else tries(usual)


def seeded(usual: int) -> Callable[[Callable[..., Any]], pytest.MarkDecorator]:
    """Calls the test with as many values of `seed`; `make nightly` takes other values each time."""
    seeds = range(first_seed, first_seed + examples(usual))
    return lambda test: pytest.mark.explores(pytest.mark.parametrize("seed", seeds)(test))


def in_turn(
    names: str, cases: Iterable[Any], *, ids: Callable[[Any], object] | None = None
) -> Callable[[Callable[..., Any]], pytest.MarkDecorator]:
    """Calls the test, each call of which takes seconds, with a third of the cases, which follows from its name.

    `make nightly` tries all. Otherwise as `pytest.mark.parametrize`.
    """

    def decorated(test: Callable[..., Any]) -> pytest.MarkDecorator:
        all_ = list(cases)
        number = len(all_) if tries(_USUAL) > _USUAL else -(-len(all_) // 3)
        chosen = [all_[index] for index in sorted(Random(test.__name__).sample(range(len(all_)), number))]
        explored: pytest.MarkDecorator = pytest.mark.explores(pytest.mark.parametrize(names, chosen, ids=ids)(test))
        return explored

    return decorated


def some(cases: Sequence[Of], *, draw: str) -> list[Of]:
    """Three tenths of the cases, a tenth in `make check` and all in `make nightly`; the draw decides which."""
    number = min(len(cases), examples(len(cases)))
    return [cases[index] for index in sorted(Random(draw).sample(range(len(cases)), number))]
