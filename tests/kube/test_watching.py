from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from gangsched.kube.client.line_splitter import LineSplitter


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b" ")), max_size=10),
    size=st.integers(1, 30),
)
def test_pieces_of_any_size_give_the_same_lines_without_empty_ones(lines: list[bytes], size: int) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    found = [line for start in range(0, len(whole), size) for line in splitter.feed(whole[start : start + size])]
    assert found == [line for line in lines if line]


def test_a_line_comes_out_with_the_piece_that_ends_it() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"ab") == []
    assert splitter.feed(b"cd\nef") == [b"abcd"]
    assert splitter.feed(b"\n") == [b"ef"]
    assert splitter.feed(b"") == []


def test_the_cost_of_a_huge_line_is_linear() -> None:
    splitter = LineSplitter()
    begun = time.process_time()
    for _ in range(20_000):
        splitter.feed(b"x" * 1024)
    [line] = splitter.feed(b"\n")
    assert len(line) == 20_000 * 1024
    assert time.process_time() - begun < 5
