from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.objects.duration import LONGEST_S, PATTERN, SHORTEST_S, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h30m10s", 5410),
        ("1h1s", 3601),
        ("0h0m1s", 1),
        ("007s", 7),
        ("167h59m60s", 604_800),
    ],
)
def test_a_duration_is_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "90",
        "h",
        "1.5h",
        "1d",
        "1h 30m",
        " 1s",
        "1s\n",
        "30m1h",
        "1m1m",
        "-1s",
        "+1s",
        "1H",
        "500ms",
        "٣s",
        "1111111s",
    ],
)
def test_another_form_is_refused_with_examples_of_the_right_one(text):
    with pytest.raises(ValueError, match="is not a duration: write hours, minutes and seconds such as 90s"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0s", "0h0m0s", "604801s", "168h1s", "999999h"])
def test_a_duration_out_of_range_is_refused_with_the_range(text):
    with pytest.raises(ValueError, match=re.escape("a duration here is from 1s to 168h (7 days)")):
        parse_duration(text)


def test_a_duration_that_may_be_none_says_so():
    assert parse_duration("0s", shortest_s=0) == 0
    with pytest.raises(ValueError, match=re.escape("a duration here is from 0s to 168h (7 days)")):
        parse_duration("604801s", shortest_s=0)


@given(st.integers(SHORTEST_S, LONGEST_S))
def test_a_formatted_duration_is_read_as_the_same(seconds):
    text = format_duration(seconds)
    assert parse_duration(text) == seconds
    assert re.fullmatch(PATTERN, text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1, "1s"),
        (0.4, "0.4s"),
        (45, "45s"),
        (60, "1m"),
        (90, "90s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (600.5, "10m0.5s"),
        (3600, "1h"),
        (3661, "1h1m1s"),
        (5400, "1h30m"),
        (604_800, "168h"),
        (float("inf"), "infs"),
    ],
)
def test_a_duration_is_written_as_people_write_it(seconds, text):
    assert format_duration(seconds) == text
