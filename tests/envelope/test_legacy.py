"""The envelope of Debezium's first releases, as a guide for consumers described it."""

import json

from rowtide.envelope.json.text import schema_text, value_text
from rowtide.envelope.legacy import LegacyEnvelope
from rowtide.envelope.schema import INT32, STRING, Schema, struct
from rowtide.envelope.source import source_value
from rowtide.envelope.table import envelope_schema
from rowtide.envelope.transforms import ConnectRecord

TOPIC = "mysql-server-1.inventory.customers"
ROW = struct(f"{TOPIC}.Value", {"id": INT32, "first_name": STRING, "last_name": STRING, "email": STRING}, optional=True)
KEY = struct(f"{TOPIC}.Key", {"id": INT32})
ANNE = {"id": 1004, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}


def record(op: str, before: object, after: object, *, snapshot: str | None, server_id: int = 0) -> ConnectRecord:
    source = source_value(
        "mysql",
        "mysql-server-1",
        "inventory",
        "customers",
        micros=1465491411815123,
        snapshot="true",
        server_id=server_id,
        gtid=None,
        file="mysql-bin.000003",
        pos=154,
        row=0,
        thread=7,
        query=None,
    )
    source["snapshot"] = snapshot
    value = {
        "before": before, "after": after, "source": source, "transaction": None, "op": op,
        "ts_ms": 1465491411815, "ts_us": 1465491411815000, "ts_ns": 1465491411815000000,
    }  # fmt: skip
    envelope = envelope_schema(f"{TOPIC}.Envelope", ROW, "mysql")
    return ConnectRecord(TOPIC, None, KEY, {"id": 1004}, envelope, value)


def payload(given: ConnectRecord) -> dict[str, object]:
    made = LegacyEnvelope().apply(given)
    assert made.value_schema is not None
    found: dict[str, object] = json.loads(value_text(made.value_schema, made.value))
    return found


def test_the_schema_is_the_old_one() -> None:
    made = LegacyEnvelope().apply(record("c", None, ANNE, snapshot="true")).value_schema
    assert made is not None
    schema = json.loads(schema_text(made))
    assert (schema["name"], schema["version"], schema["optional"]) == (f"{TOPIC}.Envelope", 1, False)
    assert [(one["field"], one["type"], one["optional"]) for one in schema["fields"]] == [
        ("op", "string", False),
        ("before", "struct", True),
        ("after", "struct", True),
        ("source", "struct", False),
        ("ts_ms", "int64", True),
    ]
    assert {one["name"] for one in schema["fields"] if one["field"] in ("before", "after")} == {f"{TOPIC}.Value"}
    source = schema["fields"][3]
    assert source["name"] == "io.debezium.connector.mysql.Source"
    assert "version" not in source
    assert [(one["field"], one["type"], one["optional"]) for one in source["fields"]] == [
        ("name", "string", False),
        ("server_id", "int64", False),
        ("ts_sec", "int64", False),
        ("gtid", "string", True),
        ("file", "string", False),
        ("pos", "int64", False),
        ("row", "int32", False),
        ("snapshot", "boolean", True),
    ]


def test_a_snapshot_record_equals_that_of_the_guide() -> None:
    assert payload(record("c", None, ANNE, snapshot="true")) == {
        "op": "c",
        "ts_ms": 1465491411815,
        "before": None,
        "after": ANNE,
        "source": {
            "name": "mysql-server-1",
            "server_id": 0,
            "ts_sec": 0,
            "gtid": None,
            "file": "mysql-bin.000003",
            "pos": 154,
            "row": 0,
            "snapshot": True,
        },
    }


def test_every_marker_of_a_snapshot_is_true() -> None:
    for marker in ("first", "first_in_data_collection", "last_in_data_collection", "last", "incremental"):
        source = payload(record("r", None, ANNE, snapshot=marker))["source"]
        assert isinstance(source, dict)
        assert source["snapshot"] is True


def test_a_streamed_record_has_a_null_snapshot_the_server_id_and_seconds() -> None:
    for unset in (None, "false"):
        found = payload(record("u", ANNE, ANNE, snapshot=unset, server_id=223344))
        source = found["source"]
        assert isinstance(source, dict)
        assert (source["server_id"], source["ts_sec"], source["snapshot"]) == (223344, 1465491411, None)
        assert (found["op"], found["before"], found["after"]) == ("u", ANNE, ANNE)


def test_other_records_are_not_changed() -> None:
    tombstone = ConnectRecord(TOPIC, None, KEY, {"id": 1004}, None, None)
    assert LegacyEnvelope().apply(tombstone) is tombstone
    heartbeat = ConnectRecord("h", 0, None, None, struct("h", {"ts_ms": Schema("int64")}), {"ts_ms": 1})
    assert LegacyEnvelope().apply(heartbeat) is heartbeat


def test_schemas_are_derived_once_for_a_table() -> None:
    legacy, given = LegacyEnvelope(), record("c", None, ANNE, snapshot=None)
    assert legacy.apply(given).value_schema is legacy.apply(given).value_schema
