"""Binary JSON to text in both styles, differences, damaged documents."""

import gzip
import json
import struct
import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.errors import ProtocolError, RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import Rows, RowsKind, TableMap
from rowtide.connector.protocol.json.binary import SERVER, STREAM, JsonStyle, json_text, patched_json_text
from rowtide.connector.protocol.json.values import server_double, stream_double
from tests.support.mysql.json_documents import encode, size
from tests.support.mysql.packets import golden_files, golden_packets

GOLDEN = Path(golden_files()[0]).parents[3]


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@settings(deadline=None)
@given(DOCUMENTS, st.booleans())
def test_every_document_round_trips_in_both_styles(document: object, large: bool) -> None:
    data = encode(document, large=large)
    for style in (STREAM, SERVER):
        assert json.loads(json_text(data, style)) == document


@settings(deadline=None)
@given(DOCUMENTS, st.booleans(), st.integers(0, 1000), st.integers(0, 255))
def test_damaged_json_never_crashes(document: object, large: bool, at: int, byte: int) -> None:
    data = bytearray(encode(document, large=large))
    data[at % len(data)] = byte
    for damaged in (bytes(data), bytes(data[: at % len(data)])):
        try:
            json_text(damaged)
        except ProtocolError as error:
            assert str(error)  # noqa: PT017 - either outcome is right


def test_a_document_that_contains_itself_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="damaged"):
        json_text(b"\x02" + struct.pack("<HHBH", 1, 7, 2, 0))


def doubled(levels: int) -> bytes:
    """Arrays of two elements, both of them the next array: a text of 2**levels brackets in 10 bytes for each level."""
    return b"\x02" + struct.pack("<HHBHBH", 2, 10, 2, 10, 2, 10) * levels + struct.pack("<HH", 0, 4)


@pytest.mark.parametrize("style", [STREAM, SERVER])
def test_values_that_overlap_are_refused(style: JsonStyle) -> None:
    message = "values overlap"
    assert json_text(doubled(0), style) == "[]"
    for document in (doubled(1), doubled(2), doubled(90)):
        with pytest.raises(RemoteProtocolError, match=message):
            json_text(document, style)
        with pytest.raises(RemoteProtocolError, match=message):
            patched_json_text(document, difference(1, "$[0]", 1), style)
    text = encode(["x" * 1000], large=False)
    shared = b"\x02" + struct.pack("<HH", 50, 4 + 150) + struct.pack("<BH", 12, 4 + 150) * 50 + text[8:]
    with pytest.raises(RemoteProtocolError, match=message):
        json_text(shared, style)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("style", [STREAM, SERVER])
def test_a_double_that_json_lacks_is_refused(value: float, style: JsonStyle) -> None:
    with pytest.raises(RemoteProtocolError, match="is not a JSON number"):
        json_text(b"\x0b" + struct.pack("<d", value), style)


@pytest.mark.parametrize("path", ["$[" + "9" * 5000 + "]", '$."\\x"', '$."\\ud800"', "$" + "[0]" * 5000])
def test_a_hostile_path_is_refused(path: str) -> None:
    raw = path.encode()
    written = b"\0\xfd" + len(raw).to_bytes(3, "little") + raw + b"\x02\x04\x01"
    with pytest.raises(ProtocolError):
        patched_json_text(encode([1], large=False), written)


def test_no_bytes_are_null_and_an_unknown_type_is_refused() -> None:
    assert json_text(b"") == "null"
    with pytest.raises(UnsupportedEvent, match="type 0x0d"):
        json_text(b"\x0d\x00")


@pytest.mark.parametrize(
    ("value", "stream", "server"),
    [
        (0.0, "0.0", "0.0"),
        (-0.0, "-0.0", "-0.0"),
        (0.001, "0.001", "0.001"),
        (0.00099, format(__import__("decimal").Decimal(0.00099), "f"), "0.00099"),
        (9999999.0, "9999999.0", "9999999.0"),
        (1e7, "10000000", "10000000.0"),
        (123456789012345.0, "123456789012345", "123456789012345.0"),
        (1e15, "1000000000000000", "1e15"),
        (1.5e300, str(int(1.5e300)), "1.5e300"),
        (-2.5e-15, format(__import__("decimal").Decimal(-2.5e-15), "f"), "-0.0000000000000025"),
        (2.5e-16, format(__import__("decimal").Decimal(2.5e-16), "f"), "2.5e-16"),
    ],
)
def test_doubles(value: float, stream: str, server: str) -> None:
    assert (stream_double(value), server_double(value)) == (stream, server)


def opaque(kind: int, data: bytes) -> bytes:
    return bytes([0x0F, kind]) + size(len(data)) + data


def temporal(kind: int, hms: int, micros: int, negative: bool = False) -> bytes:
    packed = hms << 24 | micros
    return opaque(kind, struct.pack("<q", -packed if negative else packed))


LEAP_DAY = ((2024 * 13 + 2) << 5 | 29) << 17
CLOCK = 12 << 12 | 34 << 6 | 56


@pytest.mark.parametrize(
    ("data", "stream", "server"),
    [
        (temporal(10, LEAP_DAY, 0), '"2024-02-29"', '"2024-02-29"'),
        (temporal(12, LEAP_DAY | CLOCK, 0), '"2024-02-29 12:34:56"', '"2024-02-29 12:34:56.000000"'),
        (temporal(7, LEAP_DAY | CLOCK, 100), '"2024-02-29 12:34:56.0001"', '"2024-02-29 12:34:56.000100"'),
        (temporal(12, 0, 0), '"0000-00-00 00:00:00"', '"0000-00-00 00:00:00.000000"'),
        (temporal(11, CLOCK, 500_000), '"12:34:56.5"', '"12:34:56.500000"'),
        (temporal(11, CLOCK, 500_000, negative=True), '"-12:34:56.5"', '"-12:34:56.500000"'),
        (temporal(19, 838 << 12 | 59 << 6 | 59, 0, negative=True), '"-838:59:59"', '"-838:59:59.000000"'),
        (temporal(11, 0, 1, negative=True), '"-00:00:00.000001"', '"-00:00:00.000001"'),
        (opaque(246, bytes([10, 4, 0x80, 0x00, 0x7B, 0x11, 0x94])), "123.4500", "123.4500"),
        (opaque(246, bytes([10, 3, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE])), "-0.001", "-0.001"),
        (opaque(15, b"\xca\xfe"), '"yv4="', '"base64:type15:yv4="'),
        (opaque(16, b""), '""', '"base64:type16:"'),
        (
            opaque(252, b"x" * 60),
            f'"{b64encode(b"x" * 60).decode()}"',
            '"base64:type252:' + b64encode(b"x" * 57).decode() + "\\n" + b64encode(b"x" * 3).decode() + '"',
        ),
    ],
)
def test_opaque_values(data: bytes, stream: str, server: str) -> None:
    assert (json_text(data), json_text(data, SERVER)) == (stream, server)


def test_control_characters_are_escaped_in_each_style() -> None:
    data = encode('\x1f\\u00af"/\x7f\n', large=False)
    assert json_text(data) == '"\\u001F\\\\u00af\\"/\x7f\\n"'
    assert json_text(data, SERVER) == '"\\u001f\\\\u00af\\"/\x7f\\n"'


def difference(operation: int, path: str, value: object = None) -> bytes:
    raw = path.encode()
    head = bytes([operation, len(raw)]) + raw
    if operation == 2:
        return head
    encoded = encode(value, large=False)
    return head + bytes([len(encoded)]) + encoded


@pytest.mark.parametrize(
    ("operation", "path", "value", "expected"),
    [
        (0, "$.a", 9, {"a": 9, "b": [1, [2]], "é": {}}),
        (0, "$", [], []),
        (0, "$.b[1][0]", "x", {"a": 1, "b": [1, ["x"]], "é": {}}),
        (0, "$.b[last][last]", "x", {"a": 1, "b": [1, ["x"]], "é": {}}),
        (0, "$.a[0]", 9, {"a": 9, "b": [1, [2]], "é": {}}),
        (1, "$.c", None, {"a": 1, "b": [1, [2]], "c": None, "é": {}}),
        (1, '$."é"."q\\"x y"', 1, {"a": 1, "b": [1, [2]], "é": {'q"x y': 1}}),
        (1, "$.b[0]", 0, {"a": 1, "b": [0, 1, [2]], "é": {}}),
        (1, "$.b[77]", 0, {"a": 1, "b": [1, [2], 0], "é": {}}),
        (1, "$.b[last-7]", 0, {"a": 1, "b": [0, 1, [2]], "é": {}}),
        (2, "$.a", None, {"b": [1, [2]], "é": {}}),
        (2, "$.b[last-1]", None, {"a": 1, "b": [[2]], "é": {}}),
        (2, "$ . b [ 1 ]", None, {"a": 1, "b": [1], "é": {}}),
    ],
)
@pytest.mark.parametrize("large", [True, False])
def test_a_difference(operation: int, path: str, value: object, expected: object, large: bool) -> None:
    data = encode({"a": 1, "b": [1, [2]], "é": {}}, large=large)
    text = patched_json_text(data, difference(operation, path, value))
    assert json.loads(text) == expected
    assert text == json_text(encode(expected, large=False))


def test_differences_apply_in_sequence_and_keep_the_order_of_keys() -> None:
    data = encode({"bb": 1}, large=False)
    diffs = difference(1, "$.a", []) + difference(1, "$.a[0]", 5) + difference(1, "$.c", 2) + difference(2, "$.bb")
    assert patched_json_text(data, diffs, SERVER) == '{"a": [5], "c": 2}'
    assert patched_json_text(data, b"") == '{"bb":1}'


@pytest.mark.parametrize(
    ("diffs", "error", "message"),
    [
        (difference(2, "$.x"), RemoteProtocolError, r"operation 2\) at '\$.x' does not apply"),
        (difference(1, "$.a", 1), RemoteProtocolError, "does not apply"),
        (difference(0, "$.a[1]", 1), RemoteProtocolError, "does not apply"),
        (difference(0, "$.b[2]", 1), RemoteProtocolError, "does not apply"),
        (difference(2, "$.b[last-2]"), RemoteProtocolError, "does not apply"),
        (difference(1, "$.a.c", 1), RemoteProtocolError, "does not apply"),
        (difference(2, "$"), RemoteProtocolError, "does not apply"),
        (b"\x03\x01$", UnsupportedEvent, "operation 3"),
        (difference(2, "$.*"), UnsupportedEvent, r"path '\$\.\*'"),
        (difference(2, "$**.a"), UnsupportedEvent, "unsupported path"),
        (difference(0, "$.a", 1)[:-1], RemoteProtocolError, "where 2 are left"),
    ],
)
def test_a_difference_that_does_not_apply_is_refused(diffs: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        patched_json_text(encode({"a": 1, "b": [1, 2]}, large=False), diffs)


# --- recorded rows ----------------------------------------------------------------------------------------------------


def recorded(case: str, table: str, op: str) -> list[dict[str, str | None]]:
    rows = []
    with gzip.open(GOLDEN / case / "golden" / "records.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            if record["topic"].endswith(f".{table}") and record["value"]:
                payload = json.loads(record["value"])["payload"]
                if payload["op"] == op:
                    rows.append(payload["after"])
    return rows


def inserted(case: str, table: str) -> Iterator[tuple[int, list[bytes | None]]]:
    """The rows of a table ``(id int, json, json)`` that a recorded binlog inserts."""
    decoder, current = EventDecoder(), ""
    for packet in golden_packets(GOLDEN / case / "golden" / "binlog" / "binlog.000001.gz"):
        event = decoder.decode(packet)
        if isinstance(event, TableMap):
            current = event.structure.table
        if isinstance(event, Rows) and event.kind is RowsKind.WRITE and current == table:
            data, pos = event.buffer, event.start
            while pos < event.end:
                nulls, (key,), pos = data[pos], struct.unpack_from("<i", data, pos + 1), pos + 5
                values: list[bytes | None] = []
                for bit in (2, 4):
                    length = 0 if nulls & bit else int.from_bytes(data[pos : pos + 4], "little") + 4
                    values.append(data[pos + 4 : pos + length] if length else None)
                    pos += length
                yield key, values


@pytest.mark.parametrize(("op", "offset", "style"), [("c", 0, STREAM), ("r", 100, SERVER)])
def test_recorded_documents_match_debeziums_text(op: str, offset: int, style: JsonStyle) -> None:
    expected = {row["id"]: row for row in recorded("enum-set-json", "j", op)}
    compared = 0
    for key, values in inserted("enum-set-json", "j"):
        row = expected.get(key - offset)  # type: ignore[call-overload]
        for name, value in zip(("j", "jn"), values, strict=True):
            if row is None or (op, key, name) == ("c", 116, "j"):  # Debezium cannot read a negative TIME
                continue
            assert (None if value is None else json_text(value, style)) == row[name]
            compared += 1
    assert compared >= 45


def test_reading_documents_of_many_lengths_keeps_no_memory() -> None:
    """Python's struct module keeps its last 100 formats; one format for a whole array was larger than the array."""
    documents = [encode({"k": [1] * length}, large=True) for length in range(1000, 1100)]
    tracemalloc.start()
    try:
        for document in documents:
            json_text(document)
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
