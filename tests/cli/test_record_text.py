"""The readable text of a record, as ``rowtide peek`` prints it."""

from __future__ import annotations

import json

import click
import pytest

from rowtide.cli.record_text import lacks_schema, record_lines
from tests.support.recordings.golden import Case, cases


def plain(key: object, value: object) -> list[str]:
    """The lines of a record without colours; messages are bytes, None, or values for JSON."""
    return [click.unstyle(line) for line in record_lines(message(key), message(value))]


def message(data: object) -> bytes | None:
    return data if data is None or isinstance(data, bytes) else json.dumps(data).encode()


def lines(case: str, topic: str, number: int) -> list[str]:
    """The lines of a recorded message of a topic."""
    record = [record for record in Case(case).records if record["topic"] == topic][number]
    key, value = (None if text is None else text.encode() for text in (record["key"], record["value"]))
    return plain(key, value)


def test_a_change_event_has_its_operation_and_source_and_its_values_are_decoded() -> None:
    operation, key, after = lines("temporal-nanoseconds", "temporal-nanoseconds.tim.n", 5)
    gtid = "aa7d5f2e-e591-11f1-904d-02fc00000001:4"
    assert operation == f"  create   binlog.000001:1347  {gtid}  2026-11-21 10:09:15.649 UTC"
    assert key == "  key     id=13"
    assert after == (
        "  after   id=13, d=2262-04-11, dt=2262-04-11 23:47:16, dt3=2262-04-11 23:47:16.854, dt6=NULL, t=838:59:59, "
        't3=-838:59:59, t6=-00:00:00.000001, s="2038-01-19T03:14:07.999999Z"'
    )


def test_changed_columns_are_highlighted() -> None:
    value = {"op": "u", "source": {}, "before": {"id": 1, "a": 2}, "after": {"id": 1, "a": 3}}
    *_, before, after = record_lines(b'{"id":1}', json.dumps(value).encode())
    assert before == f"  before  id=1, {click.style('a=2', bold=True)}"
    assert after == f"  after   id=1, {click.style('a=3', bold=True)}"


def test_change_events_without_schemas() -> None:
    event = {"op": "c", "source": {}, "after": {"id": 1}}
    assert lacks_schema(json.dumps(event).encode())
    assert not lacks_schema(json.dumps({"schema": {"type": "struct"}, "payload": event}).encode())
    assert not any(map(lacks_schema, (None, b"text", b'{"id":1}')))


def test_a_tombstone() -> None:
    assert plain({"id": 1}, None) == ["  tombstone", "  key     id=1"]


def test_a_schema_change_has_its_statement() -> None:
    operation, *statement = lines("temporal-types", "temporal-types", -1)
    assert operation.startswith("  ddl      binlog.000001:")
    assert statement[0].startswith("          alter table d add column e1 datetime(6)")


@pytest.mark.parametrize(
    ("value", "schema", "text"),
    [
        ("AeQ=", {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}, "4.84"),
        ("/w==", {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "0"}}, "-1"),
        ("no base64", {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}, '"no base64"'),
        ("AP8=", {"type": "bytes"}, "0x00ff"),
        (-1, {"name": "io.debezium.time.Date"}, "1969-12-31"),
        (10**9, {"name": "io.debezium.time.Date"}, "1000000000"),
        (1.5, {"type": "double"}, "1.5"),
        ([1.5, None], {"type": "array", "items": {"type": "double"}}, "[1.5, NULL]"),
        ({"x": 1}, {"type": "struct", "fields": [{"field": "x", "name": "io.debezium.time.Year"}]}, "{x=1}"),
        ("ü", {"type": "string"}, '"ü"'),
    ],
)
def test_values_are_decoded_by_their_schema(value: object, schema: dict[str, object], text: str) -> None:
    struct = {"type": "struct", "fields": [{"field": "c", **schema}]}
    assert plain(None, {"schema": struct, "payload": {"c": value}}) == [f"  value   c={text}"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"no JSON", "'no JSON'"),
        (b"\xff\x00", "0xff00"),
        ([1, {"a": None}], "[1, {a=NULL}]"),
        (12345678901234567890123, "12345678901234567890123"),
        (b"0.10000000000000000000001", "0.10000000000000000000001"),
    ],
)
def test_other_messages(value: object, text: str) -> None:
    assert plain(None, value) == [f"  value   {text}"]


@pytest.mark.parametrize("case", cases())
def test_every_recorded_message_has_a_text(case: str) -> None:
    for record in Case(case).records:
        key, value = (None if text is None else text.encode() for text in (record["key"], record["value"]))
        found = plain(key, value)
        assert found
        assert all(line.startswith("  ") for line in found)
