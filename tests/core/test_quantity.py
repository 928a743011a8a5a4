from __future__ import annotations

import pytest

from gangsched.core.objects.quantity import MAX_AMOUNT, InvalidQuantity, amount, format_amount, milli, whole

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "thousandths", "units"),
    [
        pytest.param(".5", 500, 1, id="decimals without integer part"),
        pytest.param("1n", 1, 1, id="nano rounds up"),
        pytest.param("0.5m", 1, 1, id="half a milli rounds up"),
        pytest.param("2E", MAX_AMOUNT, 2 * 10**18, id="exa, thousandths saturate"),
        pytest.param("-7.3Ki", -7_475_200, -7476, id="negative fraction of a binary unit rounds away from zero"),
        pytest.param("1E3", 10**6, 1000, id="exponent with a capital"),
        pytest.param("15e-1", 1500, 2, id="negative exponent"),
        pytest.param("1E", MAX_AMOUNT, 10**18, id="a bare E is exa"),
        pytest.param("1e-30", 1, 1, id="below a nano rounds up to one nano"),
        pytest.param("1e-999999999", 1, 1, id="far below a nano"),
        pytest.param("1e999999999", MAX_AMOUNT, MAX_AMOUNT, id="far above the bound"),
        pytest.param("-1e999999999", -MAX_AMOUNT, -MAX_AMOUNT, id="far below the negative bound"),
        pytest.param("9223372036854775807", MAX_AMOUNT, MAX_AMOUNT, id="the bound itself"),
        pytest.param("9223372036854775808", MAX_AMOUNT, MAX_AMOUNT, id="one above the bound"),
        pytest.param("9223372036854775808m", MAX_AMOUNT, 9223372036854776, id="above the bound in thousandths only"),
        pytest.param("8Ei", MAX_AMOUNT, MAX_AMOUNT, id="binary at the bound"),
        pytest.param("1.0000000001", 1001, 2, id="finer than a nano"),
        pytest.param("1." + "0" * 200 + "1", 1001, 2, id="the last of 201 decimals still rounds up"),
        pytest.param("1." + "0" * 200 + "1Gi", GIB * 1000 + 1, GIB + 1, id="and in a binary unit"),
        pytest.param("0" * 5000 + "1", 1000, 1, id="5000 leading zeros"),
        pytest.param("1" + "0" * 5000 + "e-5000", 1000, 1, id="5000 digits scaled back"),
        pytest.param("1e" + "0" * 5000 + "3", 10**6, 1000, id="5000 leading zeros of the exponent"),
        pytest.param("m", 0, 0, id="Kubernetes takes a bare suffix for zero"),
        pytest.param(".", 0, 0, id="and a bare point"),
        pytest.param("+", 0, 0, id="and a bare sign"),
        pytest.param("Ti", 0, 0, id="and a bare Ti"),
        pytest.param(3, 3000, 3, id="a number in the manifest"),
        pytest.param(0.25, 250, 1, id="a fraction in the manifest"),
        pytest.param(1e30, MAX_AMOUNT, MAX_AMOUNT, id="a huge float"),
    ],
)
def test_a_quantity_is_read_exactly_and_rounded_away_from_zero(text, thousandths, units):
    """What tests/properties/test_quantity_properties.py does not draw."""
    assert (milli(text), whole(text)) == (thousandths, units)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "abc", "1 Gi", " 1", "1 ", "1\n", "1Gi\n", "--1", "+-1", "1.5.2", "1,5", "1_000", "0x10", "\u0661",
        "1\u00b2",
        "1K", "1ki", "1mi", "1kM", "1Kii", "1i", "1KiB", "1e", "1e+", "1e1.5", "1ee3", "1k3", "1-3", "1e5i", "1e--1",
        "inf", "nan", "1e9223372036854775808", "0e99999999999999999999", "1e" + "9" * 5000,
        "Ei", "-Pi", "e-10",
        True, False, float("inf"), float("nan"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("read", [milli, whole])
def test_what_kubernetes_refuses_is_refused(read, text):
    with pytest.raises(InvalidQuantity):
        read(text)


def test_the_refusal_of_a_long_text_stays_short():
    with pytest.raises(InvalidQuantity, match=r"^'x{63}… is not a quantity"):
        milli("x" * 5000)


def test_a_refusal_is_not_confused_with_an_equal_number_read_before():
    assert whole(1.0) == whole(1) == 1
    with pytest.raises(InvalidQuantity):
        whole(True)


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "1500m", 1500),
        ("cpu", "0.5m", 1),
        ("memory", "1500m", 2),
        ("nvidia.com/gpu", "4", 4),
        ("pods", "110", 110),
        ("hugepages-2Mi", "4Mi", 4 * 2**20),
        ("example.com/cpu", "2", 2),
    ],
)
def test_cpu_is_counted_in_thousandths_and_everything_else_in_units(resource, text, expected):
    assert amount(resource, text) == expected


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 1, "0.001"),
        ("cpu", -250, "-0.25"),
        ("memory", 0, "0"),
        ("memory", 1023, "1023"),
        ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", GIB + 1, "1Gi"),
        ("memory", 1_000_000_000, "953.67Mi"),
        ("memory", -GIB, "-1Gi"),
        ("ephemeral-storage", 2**40, "1Ti"),
        ("hugepages-1Gi", 2 * GIB, "2Gi"),
        ("nvidia.com/gpu", 2048, "2048"),
    ],
)
def test_an_amount_is_written_for_a_person(resource, value, text):
    assert format_amount(resource, value) == text
