from __future__ import annotations

import re
from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from gangsched.core.objects.quantity import (
    MAX_AMOUNT,
    InvalidQuantity,
    amount,
    billionths,
    format_amount,
    from_billionths,
    milli,
    whole,
)
from tests.strategies import SUFFIXES, quantities

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
PARTS = re.compile(r"([+-]?[0-9.]+)(.*)")


def rounded(value: Fraction) -> int:
    size = min(-(-abs(value).numerator // value.denominator), MAX_AMOUNT)
    return size if value >= 0 else -size


def oracle(text: str) -> Fraction:
    """The quantity, rounded away from zero to a multiple of 1e-9, by arithmetic on fractions."""
    match = PARTS.fullmatch(text)
    assert match
    number, suffix = match.groups()
    value = Fraction(number)
    if suffix.endswith("i"):
        value *= 1024 ** (1 + "KMGTPE".index(suffix[0]))
        value = max(min(value, Fraction(MAX_AMOUNT)), Fraction(-MAX_AMOUNT))
    elif suffix in DECIMAL:
        value *= Fraction(10) ** DECIMAL[suffix]
    else:
        value *= Fraction(10) ** int(suffix[1:])
    nanos = value * 10**9
    size = -(-abs(nanos).numerator // nanos.denominator)
    return Fraction(size if value >= 0 else -size, 10**9)


@given(st.integers(0, MAX_AMOUNT))
@example(30 * 10**9 << 30)
@example(0)
def test_billionths_written_for_the_api_read_back_as_they_were(size):
    assert billionths(from_billionths(size)) == size


@given(quantities)
@example("0.99999999999999999999Ei")
@example("-9223372036854775807.9")
def test_every_notation_agrees_with_arithmetic_on_fractions(text):
    exact = oracle(text)
    assert milli(text) == rounded(exact * 1000)
    assert whole(text) == rounded(exact)


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=8) | st.text(max_size=4))
def test_any_text_is_read_or_refused_with_a_message_that_names_it(text):
    try:
        assert abs(whole(text)) <= MAX_AMOUNT
    except InvalidQuantity as error:
        message = str(error)
        assert message.startswith(repr(text))


@given(st.integers(-MAX_AMOUNT, MAX_AMOUNT))
def test_cpu_written_for_a_person_reads_back_as_it_was(value):
    assert amount("cpu", format_amount("cpu", value)) == value


@given(st.integers(0, MAX_AMOUNT))
def test_memory_written_for_a_person_is_off_by_at_most_half_a_hundredth_of_its_unit(value):
    text = format_amount("memory", value)
    match = PARTS.fullmatch(text)
    assert match
    unit = 1024 ** ("KMGTPE".index(match[2][0]) + 1) if match[2] else 1
    assert abs(oracle(text) - value) <= (Fraction(unit, 200) if unit > 1 else 0)


@given(st.integers(1, 1023), st.sampled_from([suffix for suffix in SUFFIXES if suffix.endswith("i")]))
def test_memory_in_a_whole_binary_unit_round_trips_as_text(count, suffix):
    text = f"{count}{suffix}"
    if (value := whole(text)) < MAX_AMOUNT:
        assert format_amount("memory", value) == text


@given(quantities, quantities)
def test_rounding_keeps_order(one, other):
    if oracle(one) <= oracle(other):
        assert milli(one) <= milli(other)
        assert whole(one) <= whole(other)
