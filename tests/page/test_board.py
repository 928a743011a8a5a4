"""The updates sent to followers of a board."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gangsched.page import board as module
from gangsched.page.board import Board


async def hear(heard) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await asyncio.wait_for(anext(heard), 5))
    return found


async def test_everything_comes_first_and_then_what_changes():
    board = Board()
    board.show({"a": b"1", "b": b"2"})
    heard = board.follow(silent_s=60)
    assert await hear(heard) == {"whole": True, "set": {"a": 1, "b": 2}, "gone": []}
    board.show({"a": b"1", "c": b"3"})
    assert await hear(heard) == {"whole": False, "set": {"c": 3}, "gone": ["b"]}
    board.note("a", b"4")
    assert await hear(heard) == {"whole": False, "set": {"a": 4}, "gone": []}


async def test_who_follows_hears_something_though_nothing_changes():
    board = Board()
    board.show({"a": b"1"})
    heard = board.follow(silent_s=0.01)
    await hear(heard)
    assert await anext(heard) == b""
    board.show({"a": b"1"})
    assert await anext(heard) == b""


async def test_who_is_slow_misses_what_is_outdated_and_nothing_else():
    board = Board()
    board.show({"a": b"1"})
    heard = board.follow(silent_s=60)
    await hear(heard)
    board.show({"a": b"2", "b": b"1"})
    board.show({"a": b"3"})
    board.show({"a": b"3", "c": b"1"})
    assert await hear(heard) == {"whole": False, "set": {"a": 3, "c": 1}, "gone": ["b"]}


async def test_who_missed_more_than_is_remembered_is_sent_everything(monkeypatch):
    monkeypatch.setattr(module, "MOST_GONE", 2)
    board = Board()
    board.show(dict.fromkeys("abcd", b"1"))
    heard = board.follow(silent_s=60)
    await hear(heard)
    board.show({"d": b"1"})
    assert await hear(heard) == {"whole": True, "set": {"d": 1}, "gone": []}
    board.show({"d": b"2"})
    assert await hear(heard) == {"whole": False, "set": {"d": 2}, "gone": []}


views = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([b"1", b"2", b"3"]), min_size=1)


@given(st.lists(st.tuples(views, st.booleans()), min_size=1, max_size=12), st.integers(1, 8))
def test_whoever_applies_the_changes_sees_what_is_shown(shown, remembered):
    async def play() -> None:
        board = Board()
        heard = board.follow(silent_s=0.001)
        seen: dict[str, int] = {}
        for view, is_heard in shown:
            board.show(view)
            if is_heard and (said := await anext(heard)):
                change = json.loads(said)
                seen = {} if change["whole"] else {name: seen[name] for name in seen.keys() - set(change["gone"])}
                seen.update(change["set"])
                assert seen == {name: int(thing) for name, thing in view.items()}

    before, module.MOST_GONE = module.MOST_GONE, remembered
    try:
        asyncio.run(play())
    finally:
        module.MOST_GONE = before


async def test_nobody_looks_unless_somebody_follows():
    board = Board()
    waiting = asyncio.create_task(board.followed())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    board.show({"a": b"1"})
    heard = board.follow(silent_s=60)
    await hear(heard)
    await asyncio.wait_for(waiting, 5)
    assert board.followers == 1
    await heard.aclose()
    assert board.followers == 0
    again = asyncio.create_task(board.followed())
    await asyncio.sleep(0.01)
    assert not again.done()
    again.cancel()
