"""Transforms: configuration, order, predicates, and records that they process although the reference fails."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rowtide.envelope.schema import INT32, INT64, OPTIONAL_STRING, STRING, Field, Schema, struct
from rowtide.envelope.transforms import (
    PREDICATES,
    TRANSFORMS,
    ConnectRecord,
    Header,
    TransformConfigurationError,
    TransformError,
)
from rowtide.envelope.transforms.chain import INSTEAD
from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import SchemaCache
from tests.support.transforms import chain_from_properties

KAFKA = "org.apache.kafka.connect.transforms."
DEBEZIUM = "io.debezium.transforms."

ROW = struct(
    "s.d.t.Value",
    {"id": INT32, "name": Schema("string", optional=True, default="n"), "v": OPTIONAL_STRING},
    optional=True,
)
SOURCE = struct("io.debezium.connector.mysql.Source", {"ts_ms": INT64, "table": OPTIONAL_STRING})
ENVELOPE = struct(
    "s.d.t.Envelope", {"before": ROW, "after": ROW, "source": SOURCE, "op": OPTIONAL_STRING, "ts_ms": INT64}, version=2
)
KEY = struct("s.d.t.Key", {"id": INT32})


def change(before: Any, after: Any, op: str = "u") -> ConnectRecord:
    value = {"before": before, "after": after, "source": {"ts_ms": 5, "table": "t"}, "op": op, "ts_ms": 7}
    return ConnectRecord("s.d.t", None, KEY, {"id": 1}, ENVELOPE, value)


TOMBSTONE = ConnectRecord("s.d.t", None, KEY, {"id": 1}, None, None)
INSERT = change(None, {"id": 1, "name": None, "v": "x"}, "c")


def transform(name: str, **options: str) -> dict[str, str]:
    return {"transforms": "a", "transforms.a.type": name} | {
        f"transforms.a.{key.replace('_', '.')}": value for key, value in options.items()
    }


def problems_of(properties: dict[str, str]) -> list[tuple[str, str]]:
    with pytest.raises(TransformConfigurationError) as caught:
        chain_from_properties(properties)
    return [tuple(problem) for problem in caught.value.problems]


def test_without_transforms_records_are_not_changed() -> None:
    chain = chain_from_properties({"topic.prefix": "x"})
    assert chain.steps == ()
    assert chain.apply(INSERT) is INSERT


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (DEBEZIUM + "Something", "rowtide has no io.debezium.transforms.Something"),
        (DEBEZIUM + "EnforceRecordSize", "it cuts values off. Set rowtide.large.records, which loses nothing"),
    ],
)
def test_a_transform_that_rowtide_lacks(name: str, message: str) -> None:
    """A class of the same package is not a suggestion: Filter was answered by TimezoneConverter."""
    with pytest.raises(TransformConfigurationError) as raised:
        chain_from_properties({"topic.prefix": "x", "transforms": "a", "transforms.a.type": name})
    assert message in str(raised.value)
    assert "did you mean" not in str(raised.value)


def test_every_transform_and_predicate_of_debezium_and_kafka_connect_exists_or_has_a_way_out() -> None:
    """The classes of debezium-connect-plugins and debezium-connector-mysql 3.6.1 and of connect-transforms 4.3.1."""
    debezium = """ByLogicalTableRouter EnforceRecordSize ExtractChangedRecordState ExtractNewRecordState
        ExtractSchemaToNewRecord GeometryFormatTransformer HeaderToValue SchemaChangeEventFilter SwapGeometryCoordinates
        TimezoneConverter VectorToJsonConverter openlineage.OpenLineage outbox.EventRouter partitions.PartitionRouting
        tracing.ActivateTracingSpan"""
    sides = """Cast ExtractField Flatten HeaderFrom HoistField InsertField MaskField ReplaceField SetSchemaMetadata
        TimestampConverter"""
    whole = ["DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey"]
    scripting = [DEBEZIUM + "Filter", DEBEZIUM + "ContentBasedRouter"]
    kafka = [
        KAFKA + name for name in (*whole, *(f"{name}${side}" for name in sides.split() for side in ("Key", "Value")))
    ]
    read = "io.debezium.connector.mysql.transforms.ReadToInsertEvent"
    assert {*TRANSFORMS, *INSTEAD} == {*(DEBEZIUM + name for name in debezium.split()), *scripting, *kafka, read}
    assert not TRANSFORMS.keys() & INSTEAD.keys()
    predicates = "HasHeaderKey", "RecordIsTombstone", "TopicNameMatches"
    assert PREDICATES.keys() == {f"{KAFKA}predicates.{name}" for name in predicates}


def test_all_problems_are_reported_at_once_with_suggestions() -> None:
    properties = {
        "transforms": "a, b,c,d",
        "transforms.a.type": DEBEZIUM + "ExtractNewRecordStat",
        "transforms.b.type": DEBEZIUM + "ExtractNewRecordState",
        "transforms.b.add.field": "op",
        "transforms.b.delete.tombstone.handling.mode": "keep",
        "transforms.b.add.headers": "nope.x,a:b:c",
        "transforms.b.predicate": "isOther",
        "transforms.b.negate": "yes",
        "transforms.c.type": KAFKA + "RegexRouter",
        "transforms.c.regex": "(",
        "predicates": "isOutbox",
        "predicates.isOutbox.type": KAFKA + "predicates.TopicNameMatches",
        "predicates.isOutbox.patern": "x",
    }
    found = problems_of(properties)
    assert [name for name, _ in found] == [
        "predicates.isOutbox.pattern",
        "predicates.isOutbox.patern",
        "transforms.a.type",
        "transforms.b.negate",
        "transforms.b.predicate",
        "transforms.b.delete.tombstone.handling.mode",
        "transforms.b.add.headers",
        "transforms.b.add.headers",
        "transforms.b.add.field",
        "transforms.c.regex",
        "transforms.c.replacement",
        "transforms.d.type",
    ]
    messages = dict(found)
    assert messages["transforms.a.type"].endswith(f"did you mean {DEBEZIUM}ExtractNewRecordState?")
    assert messages["transforms.b.add.field"] == "this option does not exist; did you mean add.fields?"
    assert messages["predicates.isOutbox.patern"].endswith("did you mean pattern?")
    assert "drop, tombstone, rewrite" in messages["transforms.b.delete.tombstone.handling.mode"]
    assert messages["transforms.d.type"] == "is required"


@pytest.mark.parametrize(
    ("properties", "name", "message"),
    [
        (transform(KAFKA + "InsertField$Value", offset_field="o"), "transforms.a.offset.field", "is not supported"),
        (transform(KAFKA + "InsertField$Value"), "transforms.a.static.field", "no field to insert"),
        (transform(KAFKA + "InsertField$Value", static_field="s"), "transforms.a.static.value", "is required"),
        (transform(KAFKA + "ReplaceField$Value", renames="a"), "transforms.a.renames", "must be old:new"),
        (transform(KAFKA + "MaskField$Value"), "transforms.a.fields", "is required"),
        (transform(KAFKA + "MaskField$Value", fields="a", replacement=""), "transforms.a.replacement", "not be empty"),
        (transform(KAFKA + "HoistField$Value"), "transforms.a.field", "is required"),
        (transform(KAFKA + "SetSchemaMetadata$Value"), "transforms.a.schema.name", "is required, or schema.version"),
        (
            transform(KAFKA + "SetSchemaMetadata$Value", schema_version="one"),
            "transforms.a.schema.version",
            "must be an integer",
        ),
        (
            transform(DEBEZIUM + "SchemaChangeEventFilter"),
            "transforms.a.schema.change.event.exclude.list",
            "is required: CREATE, ALTER, DROP, TRUNCATE, DATABASE",
        ),
        (
            transform(DEBEZIUM + "SchemaChangeEventFilter", schema_change_event_exclude_list="CREATE,RENAME"),
            "transforms.a.schema.change.event.exclude.list",
            "not RENAME",
        ),
        (transform(DEBEZIUM + "TimezoneConverter"), "transforms.a.converted.timezone", "is required"),
        (
            transform(DEBEZIUM + "TimezoneConverter", converted_timezone="Mars/Olympus"),
            "transforms.a.converted.timezone",
            "neither a time zone",
        ),
        (
            transform(DEBEZIUM + "TimezoneConverter", converted_timezone="+25:00"),
            "transforms.a.converted.timezone",
            "neither a time zone",
        ),
        (
            transform(
                DEBEZIUM + "TimezoneConverter",
                converted_timezone="UTC",
                include_list="source:a",
                exclude_list="b:c:d:e",
            ),
            "transforms.a.exclude.list",
            "must not both be set",
        ),
        (
            transform(DEBEZIUM + "ByLogicalTableRouter", topic_regex="a", topic_replacement="$1"),
            "transforms.a.topic.replacement",
            "refers to group 1",
        ),
        (
            transform(DEBEZIUM + "ByLogicalTableRouter", topic_regex="a", topic_replacement="b", key_field_regex="c"),
            "transforms.a.key.field.replacement",
            "is required",
        ),
        (
            transform(
                DEBEZIUM + "ByLogicalTableRouter", topic_regex="a", topic_replacement="b", logical_table_cache_size="x"
            ),
            "transforms.a.logical.table.cache.size",
            "must be an integer",
        ),
        (
            transform(DEBEZIUM + "outbox.EventRouter", table_fields_additional_placement="a:somewhere"),
            "transforms.a.table.fields.additional.placement",
            "header, envelope, partition",
        ),
    ],
)
def test_invalid_options_are_reported(properties: dict[str, str], name: str, message: str) -> None:
    found = problems_of(properties)
    assert found[0][0] == name
    assert any(message in text for _, text in found)


def test_classes_may_be_named_without_their_package() -> None:
    chain = chain_from_properties(transform("ReplaceField$Value", exclude="ts_ms"))
    result = chain.apply(INSERT)
    assert result is not None
    assert "ts_ms" not in result.value


def test_classes_are_found_by_their_full_names() -> None:
    assert all(name.startswith((KAFKA, "io.debezium.")) for name in [*TRANSFORMS, *PREDICATES])


@pytest.mark.parametrize(("name", "make"), [*TRANSFORMS.items(), *PREDICATES.items()])
def test_every_class_is_in_its_module(name: str, make: Callable[[Options], object]) -> None:
    made = make(Options("transforms.a.", {}))
    assert type(made).__name__ == name.rpartition(".")[2].partition("$")[0]


def test_records_that_a_predicate_does_not_select_are_not_changed() -> None:
    properties = transform(KAFKA + "Filter", predicate="p", negate="true") | {
        "predicates": "p",
        "predicates.p.type": KAFKA + "predicates.RecordIsTombstone",
    }
    assert chain_from_properties(properties).apply(TOMBSTONE) is TOMBSTONE
    assert chain_from_properties(properties).apply(INSERT) is None


def test_records_and_their_values_are_never_changed_in_place() -> None:
    record = change({"id": 1, "name": "o", "v": "w"}, {"id": 1, "name": None, "v": "x"})
    before = repr(record)
    for name, options in (
        (DEBEZIUM + "ExtractNewRecordState", {"add.fields": "op", "add.headers": "op"}),
        (DEBEZIUM + "ByLogicalTableRouter", {"topic.regex": ".*", "topic.replacement": "x"}),
        (KAFKA + "MaskField$Key", {"fields": "id"}),
        (KAFKA + "InsertField$Key", {"static.field": "s", "static.value": "t"}),
    ):
        properties = {"transforms": "a", "transforms.a.type": name}
        properties |= {f"transforms.a.{key}": value for key, value in options.items()}
        chain_from_properties(properties).apply(record)
    assert repr(record) == before


def test_schemas_are_derived_once_for_each_schema() -> None:
    chain = chain_from_properties(transform(DEBEZIUM + "ExtractNewRecordState", add_fields="op"))
    first, second = chain.apply(INSERT), chain.apply(INSERT)
    assert first is not None
    assert second is not None
    assert first.value_schema is second.value_schema


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (KAFKA + "HoistField$Value", {"field": "f"}),
        (KAFKA + "SetSchemaMetadata$Value", {"schema_name": "n"}),
        (DEBEZIUM + "ExtractChangedRecordState", {"header_changed_name": "c"}),
        (DEBEZIUM + "SchemaChangeEventFilter", {"schema_change_event_exclude_list": "DATABASE"}),
        (DEBEZIUM + "HeaderToValue", {"headers": "h", "fields": "f", "operation": "copy"}),
        (DEBEZIUM + "SwapGeometryCoordinates", {}),
        (DEBEZIUM + "GeometryFormatTransformer", {}),
        (DEBEZIUM + "VectorToJsonConverter", {}),
        (KAFKA + "Cast$Value", {"spec": "ts_ms:string"}),
        (KAFKA + "Flatten$Value", {}),
        (KAFKA + "TimestampConverter$Value", {"field": "ts_ms", "target_type": "Date"}),
        ("io.debezium.connector.mysql.transforms.ReadToInsertEvent", {}),
    ],
)
def test_a_tombstone_stays_one(name: str, options: dict[str, str]) -> None:
    assert chain_from_properties(transform(name, **options)).apply(TOMBSTONE) == TOMBSTONE


def test_headers_stay_when_a_read_becomes_an_insertion() -> None:
    name = "io.debezium.connector.mysql.transforms.ReadToInsertEvent"
    read = replace(change(None, {"id": 1, "name": None, "v": "x"}, "r"), headers=(Header("h", STRING, "a"),))
    made = chain_from_properties(transform(name)).apply(read)
    assert made is not None
    assert (made.value["op"], read.value["op"], made.headers) == ("c", "r", read.headers)


def dropping(**options: str) -> dict[str, str]:
    return transform(DEBEZIUM + "ExtractNewRecordState", drop_fields_header_name="gone", **options)


def test_fields_that_a_header_lists_are_dropped() -> None:
    gone = Header("gone", Schema("array", items=STRING), ["id", "v"])
    record = replace(INSERT, headers=(gone,))
    result = chain_from_properties(dropping()).apply(record)
    assert result is not None
    assert result.value == {"id": 1, "name": "n"}  # id is required; ReplaceField puts defaults in
    assert result.key == {"id": 1}
    result = chain_from_properties(
        dropping(drop_fields_keep_schema_compatible="false", drop_fields_from_key="true")
    ).apply(record)
    assert result is not None
    assert (result.key, result.value) == ({}, {"name": "n"})


def test_a_header_that_is_not_a_list_is_an_error() -> None:
    record = replace(INSERT, headers=(Header("gone", STRING, "id"),))
    with pytest.raises(TransformError, match=r"transforms\.a: a record of topic s\.d\.t: the header gone must"):
        chain_from_properties(dropping()).apply(record)


def test_a_row_is_routed_by_one_of_its_fields() -> None:
    chain = chain_from_properties(transform(DEBEZIUM + "ExtractNewRecordState", route_by_field="v"))
    result = chain.apply(INSERT)
    assert result is not None
    assert result.topic == "x"
    unrouted = chain.apply(change(None, {"id": 1, "name": None, "v": None}))
    assert unrouted is not None
    assert unrouted.topic == "s.d.t"
    deleted = chain.apply(change({"id": 1, "name": None, "v": "y"}, None, "d"))
    assert deleted is not None
    assert (deleted.topic, deleted.value) == ("y", None)
    with pytest.raises(TransformError, match=r"field 'id' of s\.d\.t\.Value has type int32, not string"):
        chain_from_properties(transform(DEBEZIUM + "ExtractNewRecordState", route_by_field="id")).apply(INSERT)


def test_a_field_cannot_be_inserted_twice() -> None:
    chain = chain_from_properties(transform(KAFKA + "InsertField$Key", static_field="id", static_value="x"))
    with pytest.raises(TransformError, match="two fields with the name 'id'"):
        chain.apply(INSERT)


MASKED = struct(
    None,
    {
        "d": Schema("bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=(("scale", "2"),)),
        "f": Schema("float"),
        "i": Schema("int8"),
        "t": Schema("int32", name="org.apache.kafka.connect.data.Date", version=1),
        "b": Schema("bytes"),
        "l": Schema("array", items=STRING),
    },
)
MASKED_VALUE = {"d": 150, "f": 1.5, "i": 1, "t": 5, "b": b"x", "l": ["y"]}


def masked(fields: str, **options: str) -> Any:
    chain = chain_from_properties(transform(KAFKA + "MaskField$Value", fields=fields, **options))
    result = chain.apply(ConnectRecord("t", None, None, None, MASKED, MASKED_VALUE))
    assert result is not None
    return result.value


def test_masks_are_zero_or_the_replacement_in_the_type_of_the_field() -> None:
    assert masked("d,f,i,t,l") == {"d": 0, "f": 0.0, "i": 0, "t": 0, "b": b"x", "l": []}
    # The reference fails on a decimal whose scale is not that of the replacement.
    assert masked("d,f,i", replacement="300.5") == MASKED_VALUE | {"d": 30050, "f": 300.5, "i": 44}
    above = "1.00000005960464477539062501"  # rounded to a double first, this is a tie
    assert masked("f", replacement=above) == MASKED_VALUE | {"f": 1 + 2**-23}


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ("b", {}, "has type bytes, which cannot be masked"),
        ("t", {"replacement": "5"}, "cannot be masked"),
        ("i", {"replacement": "x"}, "'x' is not a number of type int8"),
        ("d", {"replacement": "1.234"}, "'1.234' is not a number of type decimal"),
    ],
)
def test_a_field_that_cannot_be_masked_is_an_error(fields: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(TransformError, match=message):
        masked(fields, **options)


@pytest.mark.parametrize("name", ["MaskField$Value", "ReplaceField$Value", "InsertField$Value"])
def test_field_transforms_do_not_change_tombstones(name: str) -> None:
    options = {"fields": "a"} if name.startswith("Mask") else {"static_field": "s", "static_value": "t"}
    chain = chain_from_properties(transform(KAFKA + name, **({} if name.startswith("Replace") else options)))
    assert chain.apply(TOMBSTONE) is TOMBSTONE


OUTBOX_ROW = struct(
    "s.d.outbox.Value",
    {"id": STRING, "aggregatetype": OPTIONAL_STRING, "aggregateid": STRING, "payload": OPTIONAL_STRING},
)


def event(payload: str, aggregate: str | None = "Order", op: str = "c", **options: str) -> ConnectRecord | None:
    fields = tuple(
        Field(one.name, OUTBOX_ROW if one.name in ("before", "after") else one.schema) for one in ENVELOPE.fields
    )
    row = {"id": "e", "aggregatetype": aggregate, "aggregateid": "k", "payload": payload}
    value = {"before": None, "after": None if op == "t" else row, "source": {}, "op": op, "ts_ms": 7}
    record = ConnectRecord("s.d.outbox", None, None, None, replace(ENVELOPE, fields=fields), value)
    return chain_from_properties(transform(DEBEZIUM + "outbox.EventRouter", **options)).apply(record)


@pytest.mark.parametrize(
    "payload", ['[{"a":1}]', '{"a":[{"b":1},{"b":"x"}]}', '{"a":123456789012345678901234567890}', "[]"]
)
def test_json_without_a_schema_is_kept_as_text(payload: str, caplog: pytest.LogCaptureFixture) -> None:
    result = event(payload, table_expand_json_payload="true")
    assert result is not None
    assert (result.value_schema, result.value) == (OPTIONAL_STRING, payload)
    assert "is kept as text" in caplog.text


def test_truncating_the_outbox_table_produces_no_event() -> None:
    assert event("", op="t") is None


def test_updates_of_the_outbox_table_are_errors_if_configured(caplog: pytest.LogCaptureFixture) -> None:
    assert event("", op="u", table_op_invalid_behavior="error") is None
    assert caplog.records[0].levelname == "ERROR"
    with pytest.raises(TransformError, match="was updated"):
        event("", op="u", table_op_invalid_behavior="fatal")


def test_an_event_without_an_aggregate_has_no_topic() -> None:
    with pytest.raises(TransformError, match=r"aggregatetype \(route.by.field\) is null"):
        event("x", None)


def test_a_missing_column_is_an_error_that_lists_the_existing_ones() -> None:
    with pytest.raises(TransformError, match="no field 'body'; its fields are id, aggregatetype, aggregateid, payload"):
        event("x", table_field_event_payload="body")


def test_the_schemas_of_very_many_topics_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SchemaCache, "LIMIT", 10)
    chain = chain_from_properties(
        transform(f"{DEBEZIUM}ByLogicalTableRouter", topic_regex="s\\.(\\w+)\\.t", topic_replacement="all.$1")
    )
    for number in range(50):
        made = chain.apply(replace(INSERT, topic=f"s.d{number}.t"))
        assert made is not None
        assert made.topic == f"all.d{number}"
        assert made.key_schema is not None
        assert made.value_schema is not None
        assert (made.key_schema.name, made.value_schema.name) == (f"{made.topic}.Key", f"{made.topic}.Envelope")
    kept = [one for one in gc.get_objects() if isinstance(one, Schema) and (one.name or "").startswith("all.d")]
    assert 0 < len({one.name for one in kept}) <= 3 * 10


@pytest.mark.parametrize(
    ("name", "time"), [("MicroTimestamp", 2**62), ("Timestamp", -(2**62)), ("ZonedTimestamp", "9999-12-31T23:59:59Z")]
)
def test_a_time_that_no_zone_has_is_an_error_of_the_transform(name: str, time: Any) -> None:
    schema = Schema("string" if isinstance(time, str) else "int64", name=f"io.debezium.time.{name}")
    row = struct("s.d.t.Value", {"at": schema}, optional=True)
    envelope = struct("s.d.t.Envelope", {"after": row, "op": STRING})
    record = ConnectRecord("s.d.t", None, None, None, envelope, {"after": {"at": time}, "op": "c"})
    chain = chain_from_properties(transform(DEBEZIUM + "TimezoneConverter", converted_timezone="+02:00"))
    with pytest.raises(TransformError, match="field 'at': the time is not one of the years 1 to 9999"):
        chain.records(record)
