"""`make nightly`: each part tells the seed that repeats it, and one that fails stops none of the others."""

from __future__ import annotations

import re
import sys

import pytest

from tests.nightly import Part, night, run


def part(name: str, code: str, seed: int = 7) -> Part:
    return Part(name=name, seed=seed, command=(sys.executable, "-c", code, "--seed", str(seed)))


@pytest.mark.slow
def test_a_part_that_fails_is_named_with_what_repeats_it_and_the_others_run(
    capfd: pytest.CaptureFixture[str],
) -> None:
    failed = part("first", "import sys; print('told'); sys.exit(3)")
    assert run([failed, part("second", "print('done', __import__('sys').argv[2])")]) == 1
    before, told, *_, done, first, second = capfd.readouterr().out.splitlines()
    assert before == f"== first, seed 7; again with: {failed.line()}"
    assert (told, done) == ("told", "done 7")
    assert re.fullmatch(re.escape(f"FAILED after 0 min with seed 7: first; again with: {failed.line()}"), first)
    assert second == "passed after 0 min with seed 7: second"


@pytest.mark.slow
def test_a_night_in_which_all_passes_ends_with_0() -> None:
    assert run([part("only", "")]) == 0


def test_every_part_gets_the_seed_and_the_soak_its_time() -> None:
    parts = night(seed=123456, soak_s=90)
    assert {each.seed for each in parts} == {123456}
    assert all("123456" in each.line() for each in parts)
    [soak] = [each for each in parts if "tests.faults.soak" in each.command]
    assert "--duration 90 " in soak.line()
