"""Rows as Python values: every recorded stream in both forms, and what each type of column becomes."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal
from itertools import count
from typing import Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change, Geometry, Row
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.envelope.json.reader import schema_from_json, value_from_json
from rowtide.envelope.schema import Schema
from tests.support.recordings.differences import NOT_REPLAYED, PENDING, STOPS
from tests.support.recordings.golden import Case, cases


def settings_of(name: str) -> PipelineSettings:
    """A case's settings without transforms, which apply to messages only, and without topics that have no rows."""
    others = ("value.converter", "header.converter") if "cloudevents" in name else ()
    _, more = STOPS.get(name, ("", {}))
    properties = {
        key: value
        for key, value in (Case(name).properties() | more).items()
        if not key.startswith(("transforms", "predicates", "notification.", *others))
    }
    return replace(pipeline_settings(from_properties(properties), "run"), schema_changes=False)


def outputs(name: str, settings: PipelineSettings) -> Iterator[Batch]:
    case = Case(name)
    clock = count(1_700_000_000_000_000_000)
    try:
        for output in replay(case.binlog, settings, case.start, lambda: next(clock) // 1 and 1_700_000_000_000_000_000):
            if isinstance(output, Batch):
                yield output
    except ConnectorError:
        if name not in STOPS:
            raise


@pytest.mark.parametrize("name", [name for name in cases() if name not in NOT_REPLAYED and name not in PENDING])
def test_a_change_becomes_the_message_that_the_other_form_writes(name: str) -> None:
    settings = settings_of(name)
    transactions = settings.naming.transaction
    written = [batch for batch in outputs(name, settings) if batch.topic != transactions]
    messages = [(batch.topic, key, value) for batch in written for key, value, _ in batch.messages if value is not None]
    offsets = [batch.offset for batch in written]
    batches = list(outputs(name, replace(settings, changes=True)))
    changes = [change for batch in batches for change in batch.changes]
    made = [(change.topic, change.debezium_key(), change.to_debezium()) for change in changes]
    assert made == [(topic, None if key is None else key.decode(), value.decode()) for topic, key, value in messages]
    assert [batch.offset for batch in batches] == offsets
    for change in changes:
        check_values(change)


def test_the_size_of_a_batch_counts_its_objects() -> None:
    """The limit in bytes is one of memory: a row of six bytes in the binlog is an object of three hundred."""
    name = next(name for name in cases() if name not in NOT_REPLAYED and name not in PENDING)
    batches = [batch for batch in outputs(name, replace(settings_of(name), changes=True)) if batch.changes]
    assert batches
    for batch in batches:
        assert batch.size >= sum(sys.getsizeof(change) + sys.getsizeof(change.image) for change in batch.changes)


def check_values(change: Change) -> None:
    """Compare a change with its message: position, rows, and each value by way of its Connect schema."""
    envelope = json.loads(change.to_debezium(), parse_float=Decimal)
    schema = schema_from_json(envelope["schema"]) if "payload" in envelope else None
    envelope = envelope.get("payload", envelope)
    assert envelope["op"] == change.op
    for name in ("before", "after"):
        row: Row | None = getattr(change, name)
        assert (envelope[name] is None) == (row is None)
        if row is None or schema is None:
            continue
        fields = next(field.schema for field in schema.fields if field.name == name).fields
        assert len(row) == len(fields)
        for field, column in zip(fields, row, strict=True):
            stored = value_from_json(field.schema, envelope[name][field.name])
            check_value(field.schema, stored, row[column])
    source = envelope["source"]
    assert (source["file"], source["pos"]) == (change.position.file, change.position.pos)
    assert (source["db"], source["table"]) == (change.database, change.table)
    assert source["ts_us"] == change.position.ts_us
    transaction = change.transaction
    assert envelope["transaction"] == (None if transaction is None else transaction._asdict())


def check_value(schema: Schema, stored: Any, value: Any) -> None:
    """A Connect value and a Python value are the same, as far as the Connect value tells."""
    if value == stored and type(value) is type(stored):  # always, for a column converter's
        return
    if value is UNAVAILABLE:
        assert "unavailable" in str(stored if isinstance(stored, str) else bytes(stored))
    elif schema.name == "io.debezium.data.Json" and stored is not None:
        assert value in (stored, parsed(stored)) or (value is None and (schema.default is not None or stored == "{}"))
    elif value is None:  # a NOT NULL column has its default or 1970 instead
        assert stored is None or schema.default is not None or not schema.optional
    elif isinstance(value, str) and schema.name in TEMPORAL:
        with pytest.raises(ValueError, match=r"day|month|year"):  # no calendar has it
            dt.datetime.fromisoformat(value)
    elif isinstance(value, str):
        assert stored.replace("\\,", ",").replace("\\\\", "\\") == value.replace("\\\\", "\\")
    elif stored is None or (
        schema.name in OF_A_DAY and not dt.timedelta(0) <= value <= DAY
    ):  # it has no form in this mode
        assert schema.name in TEMPORAL or "Time" in str(schema.name)
    elif not (isinstance(value, dt.date) and value.year < 100):  # where Debezium moves the year into a century
        assert expected_value(schema, stored, value) == value


def parsed(text: str) -> Any:
    """A JSON document; MariaDB's columns may hold other texts too."""
    try:
        return json.loads(text)
    except ValueError:
        return text


TEMPORAL = {
    "io.debezium.time.Date", "org.apache.kafka.connect.data.Date", "io.debezium.time.IsoDate",
    "io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", "io.debezium.time.NanoTimestamp",
    "org.apache.kafka.connect.data.Timestamp", "io.debezium.time.IsoTimestamp", "io.debezium.time.ZonedTimestamp",
}  # fmt: skip
OF_A_DAY = {"org.apache.kafka.connect.data.Time", "io.debezium.time.IsoTime"}
DAY = dt.timedelta(days=1)
UNITS = {
    "Timestamp": 1000,
    "MicroTimestamp": 1,
    "NanoTimestamp": -1000,
    "Time": 1000,
    "MicroTime": 1,
    "NanoTime": -1000,
}


def expected_value(schema: Schema, stored: Any, value: Any) -> Any:
    """The Python value that a Connect value stands for; what its form has lost is taken from ``value``."""
    kind = (schema.name or "").rpartition(".")[2]
    if isinstance(value, bool) or (isinstance(value, int) and schema.type.startswith("int")):
        return stored if stored is not None and (not isinstance(stored, int) or stored >= 0 or value < 0) else value
    match value:
        case int() if kind == "Bits":
            return int.from_bytes(stored, "little")
        case int():
            return int(stored)
        case Decimal():
            scale = int(dict(schema.parameters).get("scale", "0"))
            exact = Decimal(stored).scaleb(-scale, Context(prec=100)) if kind == "Decimal" else Decimal(str(stored))
            return value if schema.type == "double" and float(exact) == float(value) else exact
        case float():
            return pytest.approx(float(stored), rel=1e-6)
        case dt.timedelta() if schema.type == "string":
            return value
        case dt.timedelta():
            return dt.timedelta(microseconds=micros(stored, UNITS[kind]) + lost_micros(value.microseconds, kind))
        case dt.datetime() if isinstance(stored, str):
            return dt.datetime.fromisoformat(stored).replace(tzinfo=value.tzinfo)
        case dt.datetime():
            after = dt.timedelta(microseconds=micros(stored, UNITS[kind]) + lost_micros(value.microsecond, kind))
            return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + after).replace(tzinfo=value.tzinfo)
        case dt.date() if isinstance(stored, str):
            return dt.date.fromisoformat(stored.removesuffix("Z"))
        case dt.date():
            return dt.date(1970, 1, 1) + dt.timedelta(days=stored)
        case bytes() if isinstance(stored, str):
            return value
        case Geometry():
            return Geometry(stored["wkb"], stored["srid"] or 0)
        case list() if kind == "FloatVector":
            return pytest.approx([float(number) for number in stored])
    return stored


def lost_micros(microseconds: int, kind: str) -> int:
    """What a form of milliseconds leaves out."""
    return microseconds % 1000 if UNITS[kind] == 1000 else 0


def micros(stored: int, unit: int) -> int:
    return stored * unit if unit > 0 else stored // -unit


@pytest.mark.parametrize("changes", [False, True])
def test_lossy_conversions_are_reported_for_messages_only(caplog: pytest.LogCaptureFixture, *, changes: bool) -> None:
    list(outputs("ddl-stream", replace(settings_of("ddl-stream"), changes=changes)))
    assert any("bigint.unsigned.handling.mode" in message for message in caplog.messages) != changes
