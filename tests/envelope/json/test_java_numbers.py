"""Numbers as Java prints them: recorded from Java 17, and properties of every number."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.json.java_numbers import decimal_number_text, decimal_text, double_text, float_text, to_float32

# The bits of a double or float in hexadecimal, and the result of toString in Java 17.
DOUBLES = [
    ("3f50624dd2f1a9fc", "0.001"),
    ("3f50624dd2f1a9fb", "9.999999999999998E-4"),
    ("416312cfffffffff", "9999999.999999998"),
    ("416312d000000000", "1.0E7"),
    ("44b52d02c7e14af6", "9.999999999999999E22"),
    ("44c52d02c7e14af6", "1.9999999999999998E23"),
    ("447c7e83209e90b2", "8.409999999999999E21"),
    ("3d30000000000000", "5.6843418860808015E-14"),
    ("0000000000000001", "4.9E-324"),
    ("0000000000000003", "1.5E-323"),
    ("0010000000000000", "2.2250738585072014E-308"),
    ("7fefffffffffffff", "1.7976931348623157E308"),
    ("4340000000000000", "9.007199254740992E15"),
    ("4340000000000001", "9.007199254740994E15"),
    ("43b0000000000000", "1.15292150460684698E18"),
    ("43d0000000000004", "4.611686018427392E18"),
    ("43e0000000000000", "9.223372036854776E18"),
    ("4341c37937e08000", "1.0E16"),
    ("437b69b4ba630f35", "1.2345678901234568E17"),
    ("0000000000000001", "4.9E-324"),
    ("3ee4f8b588e368f1", "1.0E-5"),
    ("3eff75104d551d69", "3.0E-5"),
    ("3fd3333333333334", "0.30000000000000004"),
    ("3fd5555555555555", "0.3333333333333333"),
    ("3f45d867c3ece2a5", "6.666666666666666E-4"),
    ("44b52d02c7e14af6", "9.999999999999999E22"),
    ("bff8000000000000", "-1.5"),
    ("01a792bc89ab7215", "1.1E-300"),
    ("2d30000000000000", "4.9090934652977266E-91"),
    ("4630000000000000", "1.2676506002282294E30"),
    ("4480f0cf064dd592", "1.0E22"),
    ("4340e0198eaee000", "9.5E15"),
    ("4011666666666666", "4.35"),
    ("4059000000000000", "100.0"),
    ("4132d68700000000", "1234567.0"),
    ("41678c29c0000000", "1.2345678E7"),
    ("3f35d867c3ece2a5", "3.333333333333333E-4"),
    ("000000000000002d", "2.2E-322"),
    ("000080dbd0164b2d", "7.0E-310"),
    ("7fe0000000000000", "8.98846567431158E307"),
    ("3f50000000000000", "9.765625E-4"),
    ("3ea0c6f7a0b5ed8d", "5.0E-7"),
    ("3e7ad7f29abcaf48", "1.0E-7"),
    ("4330000000000002", "4.503599627370498E15"),
    ("3fb1eb851eb851ec", "0.07"),
    ("3fad13730d97f9be", "0.056789012345678"),
]
FLOATS = [
    ("3dcccccd", "0.1"),
    ("3de147ae", "0.11"),
    ("4048f5c3", "3.14"),
    ("4b800000", "1.6777216E7"),
    ("4b800000", "1.6777216E7"),
    ("4c000000", "3.3554432E7"),
    ("4b189680", "1.0E7"),
    ("4b18967f", "9999999.0"),
    ("501502f9", "1.0E10"),
    ("00800000", "1.17549435E-38"),
    ("00000001", "1.4E-45"),
    ("7f7fffff", "3.4028235E38"),
    ("00000007", "9.8E-45"),
    ("3e99999a", "0.3"),
    ("3eaaaaab", "0.33333334"),
    ("4b000000", "8388608.0"),
    ("00800000", "1.17549435E-38"),
    ("35800000", "9.536743E-7"),
    ("4e800000", "1.07374182E9"),
    ("5e800000", "4.611686E18"),
    ("65a96816", "1.0E23"),
    ("37388ca4", "1.1E-5"),
    ("3a83126f", "0.001"),
    ("3a81c2e3", "9.9E-4"),
    ("50061c46", "8.9999995E9"),
    ("4eee6b28", "2.0E9"),
    ("514ce416", "5.4999998E10"),
    ("47f12065", "123456.79"),
    ("497423ff", "999999.94"),
    ("3f733333", "0.95"),
    ("47023555", "33333.332"),
    ("39aec33e", "3.3333333E-4"),
    ("00000007", "9.8E-45"),
    ("62800000", "1.1805916E21"),
    ("4c800000", "6.7108864E7"),
]
# Unscaled value, scale, BigDecimal.toString, BigDecimal.toPlainString
DECIMALS = [
    (0, 0, "0", "0"),
    (0, 2, "0.00", "0.00"),
    (0, 7, "0E-7", "0.0000000"),
    (0, 10, "0E-10", "0.0000000000"),
    (1, 10, "1E-10", "0.0000000001"),
    (12345, 2, "123.45", "123.45"),
    (-1, 7, "-1E-7", "-0.0000001"),
    (1, -3, "1E+3", "1000"),
    (15, -3, "1.5E+4", "15000"),
    (0, -3, "0E+3", "0"),
    (-12300, 0, "-12300", "-12300"),
    (10, 21, "1.0E-20", "0.000000000000000000010"),
    (-105, 8, "-0.00000105", "-0.00000105"),
    (-105, 9, "-1.05E-7", "-0.000000105"),
]


@pytest.mark.parametrize(("bits", "text"), DOUBLES)
def test_a_double_has_the_digits_of_java(bits: str, text: str) -> None:
    assert double_text(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@pytest.mark.parametrize(("bits", "text"), FLOATS)
def test_a_float_has_the_digits_of_java(bits: str, text: str) -> None:
    assert float_text(struct.unpack(">f", bytes.fromhex(bits))[0]) == text


@pytest.mark.parametrize("text", [double_text, float_text])
def test_zeros_keep_their_sign_and_nan_and_infinity_are_quoted(text) -> None:
    values = (0.0, -0.0, float("nan"), float("inf"), float("-inf"))
    assert [text(value) for value in values] == ["0.0", "-0.0", '"NaN"', '"Infinity"', '"-Infinity"']


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back_as_the_same_double(x: float) -> None:
    # Java's digits of 2**-44 and other powers of two are one unit off, and so is its rounding of long integers.
    read = float(double_text(x))
    assert read == x or abs(read - x) <= abs(x) * 2.0**-52
    assert double_text(-x) == ("-" + double_text(x)).replace("--", "")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back_as_the_same_float(x: float) -> None:
    read = to_float32(float(float_text(x)))
    assert read == x or abs(read - x) <= abs(x) * 2.0**-23


@given(st.floats(min_value=0.001, max_value=9e6))
def test_common_doubles_have_the_shortest_digits(x: float) -> None:
    assert double_text(x) == repr(x)


@pytest.mark.parametrize(("unscaled", "scale", "text", "plain"), DECIMALS)
def test_a_decimal_has_the_text_of_big_decimal(unscaled: int, scale: int, text: str, plain: str) -> None:
    assert decimal_number_text(unscaled, scale) == text
    assert decimal_text(unscaled, scale) == plain


def test_a_number_beyond_the_range_of_floats_becomes_infinite() -> None:
    assert to_float32(1e39) == float("inf")
    assert to_float32(-1e39) == float("-inf")
    assert to_float32(0.1) == 0.10000000149011612
