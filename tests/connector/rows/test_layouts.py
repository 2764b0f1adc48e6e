"""Values of row images, encoded here as MySQL's sources describe and decoded by the generated functions."""

import json
import struct
import zlib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.rows import layouts
from rowtide.connector.rows.column_output import ColumnOutput
from rowtide.connector.rows.layouts import ColumnDecoding, ColumnLayout, column_layout
from rowtide.connector.rows.row_compiler import Column, text_rows, value_rows
from rowtide.envelope.json.text import DEFAULT_FORMAT
from rowtide.envelope.schema import STRING
from rowtide.envelope.types.column_type import ColumnType, Fallback, Kind
from rowtide.envelope.types.temporal_values import MICROS_PER_DAY, InvalidDate


def raw_type(kind: Kind) -> ColumnType:
    """A type whose Connect value is the canonical value itself, to test decoding alone."""
    return ColumnType(STRING, kind, lambda value: value, lambda v, bind, fallback: f"repr({v})")


def no_failure(value: object, error: Exception) -> None:
    raise error


def column(layout: ColumnLayout, decoding: ColumnDecoding, *, nullable: bool = False, name: str = "c") -> Column:
    output = ColumnOutput(name, raw_type(decoding.kind), Fallback("null", no_failure), None, STRING, DEFAULT_FORMAT)
    return Column(layout, decoding, nullable, output)


def decoded(layout: ColumnLayout, decoding: ColumnDecoding, data: bytes) -> Any:
    """The canonical value, decoded as a NOT NULL column and as a nullable one, whose generated code differs."""
    values = []
    for nullable in (False, True):
        rows = value_rows([column(layout, decoding, nullable=nullable)], [True])
        image = b"\x00" + data
        values.append(rows(image, 0, len(image))[0][0])
    assert values[0] == values[1]
    return values[0]


def encoded_decimal(unscaled: int, precision: int, scale: int) -> bytes:
    """``decimal2bin``: groups of nine digits, sign in the first bit, negatives inverted."""
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    digits = f"{abs(unscaled):0{precision}d}"
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    parts = []
    lead = len(whole) % 9
    if lead:
        parts.append(int(whole[:lead]).to_bytes(sizes[lead], "big"))
    parts += [int(whole[at : at + 9]).to_bytes(4, "big") for at in range(lead, len(whole), 9)]
    full = len(fraction) // 9 * 9
    parts += [int(fraction[at : at + 9]).to_bytes(4, "big") for at in range(0, full, 9)]
    if fraction[full:]:
        parts.append(int(fraction[full:]).to_bytes(sizes[len(fraction) - full], "big"))
    data = bytearray(b"".join(parts))
    if unscaled < 0:
        data = bytearray(byte ^ 0xFF for byte in data)
    data[0] ^= 0x80
    return bytes(data)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[int, int, int]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(30, precision)))
    return draw(st.integers(-(10**precision) + 1, 10**precision - 1)), precision, scale


@given(decimals())
def test_a_decimal_of_any_precision_decodes_to_its_unscaled_number(case: tuple[int, int, int]) -> None:
    unscaled, precision, scale = case
    layout = column_layout(layouts.NEWDECIMAL, precision * 256 + scale)
    assert decoded(layout, ColumnDecoding("decimal"), encoded_decimal(unscaled, precision, scale)) == unscaled


@pytest.mark.parametrize(
    ("code", "pattern", "low", "high", "unsigned"),
    [
        (layouts.TINY, "b", -128, 127, False),
        (layouts.TINY, "B", 0, 255, True),
        (layouts.SHORT, "<h", -32768, 32767, False),
        (layouts.SHORT, "<H", 0, 65535, True),
        (layouts.LONG, "<i", -(2**31), 2**31 - 1, False),
        (layouts.LONG, "<I", 0, 2**32 - 1, True),
        (layouts.LONGLONG, "<q", -(2**63), 2**63 - 1, False),
        (layouts.LONGLONG, "<Q", 0, 2**64 - 1, True),
    ],
)
def test_integers_at_their_limits(code: int, pattern: str, low: int, high: int, unsigned: bool) -> None:
    for value in (low, 0, high):
        decoding = ColumnDecoding("int", unsigned=unsigned)
        assert decoded(column_layout(code, 0), decoding, struct.pack(pattern, value)) == value


@given(st.integers(-(2**23), 2**23 - 1))
def test_a_mediumint_has_three_bytes(value: int) -> None:
    assert (
        decoded(column_layout(layouts.INT24, 0), ColumnDecoding("int"), value.to_bytes(3, "little", signed=True))
        == value
    )


@given(st.integers(0, 6), st.integers(-3_020_399_000_000, 3_020_399_000_000))
def test_a_time_keeps_sign_and_fraction(fsp: int, micros: int) -> None:
    unit = 10 ** (6 - fsp)
    micros = abs(micros) // unit * unit * (-1 if micros < 0 else 1)
    second, fraction = divmod(abs(micros), 1_000_000)
    hms = second // 3600 << 12 | second // 60 % 60 << 6 | second % 60
    packed = (hms << 24 | fraction) * (-1 if micros < 0 else 1)
    size = (fsp + 1) // 2
    # my_time_packed_to_binary: the whole part is floored, the fraction keeps the sign of C's remainder
    whole = packed >> 24
    rest = abs(packed) % (1 << 24) * (-1 if packed < 0 else 1)
    scaled = int(rest / (10_000, 10_000, 100, 1)[size]) if size else 0
    data = (
        (packed + 0x800000000000).to_bytes(6, "big")
        if size == 3
        else (whole + 0x800000 + (1 if size == 0 and rest < 0 else 0)).to_bytes(3, "big")
        + (scaled & ((1 << size * 8) - 1)).to_bytes(size, "big")
    )
    assert decoded(column_layout(layouts.TIME2, fsp), ColumnDecoding("time"), data) == micros


@given(st.integers(0, 6), st.datetimes())
def test_a_datetime_is_microseconds_since_1970(fsp: int, value: Any) -> None:
    unit = 10 ** (6 - fsp)
    micros = value.microsecond // unit * unit
    ym = value.year * 13 + value.month
    hms = value.hour << 12 | value.minute << 6 | value.second
    packed = (ym << 5 | value.day) << 17 | hms
    size = (fsp + 1) // 2
    fraction = micros // (1, 10_000, 100, 1)[size]
    data = (packed + 0x8000000000).to_bytes(5, "big") + fraction.to_bytes(size, "big")
    days = value.toordinal() - 719_163
    expected = days * MICROS_PER_DAY + ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + micros
    assert decoded(column_layout(layouts.DATETIME2, fsp), ColumnDecoding("datetime"), data) == expected


@pytest.mark.parametrize(("year", "month", "day"), [(0, 0, 0), (2024, 0, 10), (2024, 2, 31), (0, 10, 10)])
def test_an_invalid_date_keeps_its_parts(year: int, month: int, day: int) -> None:
    packed = year << 9 | month << 5 | day
    assert decoded(column_layout(layouts.DATE, 0), ColumnDecoding("date"), packed.to_bytes(3, "little")) == InvalidDate(
        year, month, day
    )
    stamp = ((year * 13 + month) << 5 | day) << 17 | 1 << 12 | 2 << 6 | 3
    data = (stamp + 0x8000000000).to_bytes(5, "big")
    expected = InvalidDate(year, month, day, 3_723_000_000)
    assert decoded(column_layout(layouts.DATETIME2, 0), ColumnDecoding("datetime"), data) == expected


def test_the_zero_timestamp_is_an_invalid_date() -> None:
    assert decoded(column_layout(layouts.TIMESTAMP2, 6), ColumnDecoding("timestamp"), bytes(7)) == InvalidDate(0, 0, 0)
    one = (1).to_bytes(4, "big") + (250_000).to_bytes(3, "big")
    assert decoded(column_layout(layouts.TIMESTAMP2, 6), ColumnDecoding("timestamp"), one) == 1_250_000


def test_the_types_of_old_servers() -> None:
    assert decoded(
        column_layout(layouts.OLD_DATETIME, 0), ColumnDecoding("datetime"), struct.pack("<q", 19700102000001)
    ) == (MICROS_PER_DAY + 1_000_000)
    time = (-1_02_03).to_bytes(3, "little", signed=True)
    assert decoded(column_layout(layouts.OLD_TIME, 0), ColumnDecoding("time"), time) == -3_723_000_000
    assert (
        decoded(column_layout(layouts.OLD_TIMESTAMP, 0), ColumnDecoding("timestamp"), struct.pack("<I", 60))
        == 60_000_000
    )


def test_year_zero_is_zero() -> None:
    assert decoded(column_layout(layouts.YEAR, 0), ColumnDecoding("year"), b"\x00") == 0
    assert decoded(column_layout(layouts.YEAR, 0), ColumnDecoding("year"), b"\x01") == 1901
    assert decoded(column_layout(layouts.YEAR, 0), ColumnDecoding("year"), b"\xff") == 2155


def test_labels_of_enum_and_set() -> None:
    labels = ("a", "b", "c")
    assert decoded(column_layout(layouts.ENUM, 1), ColumnDecoding("enum", labels=labels), b"\x02") == "b"
    assert decoded(column_layout(layouts.ENUM, 1), ColumnDecoding("enum", labels=labels), b"\x00") == ""
    assert decoded(column_layout(layouts.SET, 1), ColumnDecoding("set", labels=labels), b"\x05") == "a,c"
    assert decoded(column_layout(layouts.SET, 1), ColumnDecoding("set", labels=labels), b"\x00") == ""


@pytest.mark.parametrize(("metadata", "prefix"), [(255, 1), (256, 2)])
def test_the_length_prefix_of_a_varchar(metadata: int, prefix: int) -> None:
    text = "Grüße".encode()
    data = len(text).to_bytes(prefix, "little") + text
    assert decoded(column_layout(layouts.VARCHAR, metadata), ColumnDecoding("text"), data) == "Grüße"


def test_a_binary_gets_its_trailing_zeros_back() -> None:
    data = b"\x02\x01\x02"
    assert decoded(column_layout(layouts.STRING, 4), ColumnDecoding("bytes", pad=4), data) == b"\x01\x02\x00\x00"


def test_bits_and_vectors() -> None:
    assert decoded(column_layout(layouts.BIT, 10), ColumnDecoding("bit"), b"\x02\x01") == 0x201
    stored = struct.pack("<2f", 1.5, -2.0)
    assert decoded(column_layout(layouts.VECTOR, 4), ColumnDecoding("vector"), struct.pack("<I", 8) + stored) == [
        1.5,
        -2.0,
    ]


def test_damaged_values_are_refused_without_showing_them() -> None:
    stored = layouts.COMPRESSED_VARCHAR
    with pytest.raises(ValueError, match="cannot be decompressed") as caught:
        decoded(column_layout(stored, 20), ColumnDecoding("text"), b"\x08\x81\x06secret")
    assert "secret" not in str(caught.value)
    for stated in (5, 7):
        with pytest.raises(ValueError, match=f"does not have the {stated} bytes that its header states"):
            layouts.uncompressed(bytes((0x81, stated)) + zlib.compress(b"secret"))
    assert layouts.uncompressed(b"\x81\x06" + zlib.compress(b"secret")) == b"secret"
    for decode, size in ((layouts.inet4_text, 4), (layouts.inet6_text, 16)):
        with pytest.raises(ValueError, match=f"of {size + 6} bytes") as caught:
            decode(b"secret".ljust(size + 6, b"x"))
        assert "secret" not in str(caught.value)


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(ValueError, match="column type 99"):
        column_layout(99, 0)


def test_addresses_and_uuids_of_mariadb() -> None:
    assert layouts.uuid_text(bytes(range(16))) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert layouts.inet4_text(b"\x7f\x00\x00\x01") == "127.0.0.1"


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("", "::"),
        ("0000 0000 0000 0000 0000 0000 0000 0001", "::1"),
        ("0000 0000 0000 0000 0000 ffff 0a00 0001", "::ffff:10.0.0.1"),
        ("0000 0000 0000 0000 0000 0000 0a00 0001", "::10.0.0.1"),
        ("0000 0000 0000 0000 0001 ffff 0a00 0001", "::1:ffff:a00:1"),
        ("0f18 4f72 d2ce 0000 0214 3fae 27c2 eab3", "f18:4f72:d2ce::214:3fae:27c2:eab3"),
        ("0001 0000 0002 0000 0003 0000 0000 0000", "1:0:2:0:3::"),
        ("0000 0002 0000 0004 0005 0006 0007 0008", "::2:0:4:5:6:7:8"),
        ("0001 0002 0003 0004 0005 0006 0007 0008", "1:2:3:4:5:6:7:8"),
    ],
)
def test_addresses_are_those_that_mariadb_prints(stored: str, text: str) -> None:
    """As a MariaDB 11.4 server printed them. It also omits a single group of zeros, unlike RFC 5952."""
    assert layouts.inet6_text(bytes.fromhex(stored)) == text


@given(st.lists(st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=20)), max_size=20))
def test_rows_with_nulls_keep_their_columns_apart(rows: list[tuple[int | None, str | None]]) -> None:
    columns = [
        column(column_layout(layouts.LONG, 0), ColumnDecoding("int"), nullable=True, name="n"),
        column(column_layout(layouts.VARCHAR, 1000), ColumnDecoding("text"), nullable=True, name="t"),
    ]
    data = b""
    for number, text in rows:
        data += bytes([(number is None) | (text is None) << 1])
        if number is not None:
            data += struct.pack("<i", number)
        if text is not None:
            data += struct.pack("<H", len(text.encode())) + text.encode()
    assert value_rows(columns, [True, True])(data, 0, len(data)) == rows


def test_a_row_that_does_not_fit_the_structure_is_an_error() -> None:
    rows = text_rows([column(column_layout(layouts.LONG, 0), ColumnDecoding("int"))], [0], [True])
    with pytest.raises(ValueError, match="the structure does not fit"):
        rows(b"\x00\x01\x00\x00\x00\x00" + b"checksum", 0, 6)


@pytest.mark.parametrize("images", [1, 2])
def test_images_without_columns_are_one_row_and_have_no_bytes(images: int) -> None:
    """INSERT INTO t () VALUES () with binlog_row_image=NOBLOB, into a table of TEXT columns only."""
    some = column(column_layout(layouts.BLOB, 2), ColumnDecoding("text"))
    rows = text_rows([some], [], *[[False]] * images)
    assert rows(b"head", 4, 4) == [("{}", '{"c":null}')] * images
    with pytest.raises(ValueError, match=r"the row images end at byte 5 .* ends at byte 4"):
        rows(b"head\x00", 4, 5)


@pytest.mark.parametrize("name", ["a'b", 'a"b', "a{b}", "a\\b", "a\nb", "ünï", "😀", "{0}"])
def test_any_column_name_is_written_unchanged(name: str) -> None:
    rows = text_rows([column(column_layout(layouts.LONG, 0), ColumnDecoding("int"), name=name)], [0], [True])
    key, row = rows(b"\x00\x07\x00\x00\x00", 0, 5)[0]
    assert key == row

    assert json.loads(row) == {name: "7"} or json.loads(row) == {name: 7}


def test_the_reference_encoder_is_correct() -> None:
    assert encoded_decimal(int(Decimal("1234567890.1234").scaleb(4)), 14, 4) == bytes.fromhex("810dfb38d204d2")
