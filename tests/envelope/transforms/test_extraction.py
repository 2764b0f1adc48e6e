"""ValueToKey and ExtractField, alone and as the chain that makes a column the key."""

import pytest

from rowtide.envelope.schema import INT32, STRING, Field, Schema, struct
from rowtide.envelope.transforms import (
    ConnectRecord,
    TransformConfigurationError,
    TransformError,
)
from tests.support.transforms import chain_from_properties

KAFKA = "org.apache.kafka.connect.transforms."
NAME = Schema("string", optional=True, default="n")
ROW = struct("s.d.t.Value", {"id": INT32, "name": NAME, "code": STRING})
KEY = struct("s.d.t.Key", {"id": INT32})
RECORD = ConnectRecord("s.d.t", None, KEY, {"id": 1}, ROW, {"id": 1, "name": None, "code": "c"})
TOMBSTONE = ConnectRecord("s.d.t", None, KEY, {"id": 1}, None, None)


def chain(**transforms: dict[str, str]) -> dict[str, str]:
    found = {"transforms": ",".join(transforms)}
    for name, options in transforms.items():
        found |= {f"transforms.{name}.{option}": text for option, text in options.items()}
    return found


def applied(properties: dict[str, str], record: ConnectRecord) -> ConnectRecord:
    result = chain_from_properties(properties).apply(record)
    assert result is not None
    return result


TO_KEY = {"type": KAFKA + "ValueToKey", "fields": "code,name"}
EXTRACT = {"type": KAFKA + "ExtractField$Key", "field": "code"}


def test_fields_of_the_value_become_the_key() -> None:
    record = applied(chain(a=TO_KEY), RECORD)
    assert record.key == {"code": "c", "name": "n"}
    assert record.key_schema == Schema("struct", fields=(Field("code", STRING), Field("name", NAME)))
    assert (record.value_schema, record.value) == (ROW, RECORD.value)


def test_nulls_stay_nulls_if_they_are_not_replaced_by_defaults() -> None:
    keep = {"replace.null.with.default": "false"}
    assert applied(chain(a=TO_KEY | keep), RECORD).key == {"code": "c", "name": None}
    name = {"type": KAFKA + "ExtractField$Value", "field": "name"}
    assert applied(chain(a=name), RECORD).value == "n"
    assert applied(chain(a=name | keep), RECORD).value is None


def test_a_column_becomes_a_plain_key() -> None:
    record = applied(chain(a=TO_KEY, b=EXTRACT), RECORD)
    assert (record.key_schema, record.key) == (STRING, "c")


def test_the_schema_of_a_key_is_made_once_per_table() -> None:
    made = chain_from_properties(chain(a=TO_KEY))
    first, second = made.apply(RECORD), made.apply(RECORD)
    assert first is not None
    assert second is not None
    assert first.key_schema is second.key_schema


def test_a_tombstone_has_no_value_to_make_a_key_of() -> None:
    with pytest.raises(TransformError, match=r"transforms\.a: .*tombstone.*tombstones\.on\.delete=false"):
        applied(chain(a=TO_KEY), TOMBSTONE)


def test_a_schema_change_has_no_row_to_make_a_key_of() -> None:
    change = struct("io.debezium.connector.mysql.SchemaChangeValue", {"ddl": STRING})
    record = ConnectRecord("s", 0, None, None, change, {"ddl": "DROP TABLE t"})
    with pytest.raises(TransformError, match=r"include\.schema\.changes=false"):
        applied(chain(a=TO_KEY), record)


def test_the_field_of_a_tombstones_key_is_extracted() -> None:
    by_id = {"type": KAFKA + "ExtractField$Key", "field": "id"}
    record = applied(chain(a=by_id), TOMBSTONE)
    assert (record.key_schema, record.key, record.value) == (INT32, 1, None)
    value = {"type": KAFKA + "ExtractField$Value", "field": "id"}
    assert applied(chain(a=value), TOMBSTONE) == TOMBSTONE


@pytest.mark.parametrize("options", [TO_KEY | {"fields": "nothing"}, EXTRACT | {"field": "nothing"}])
def test_an_unknown_field_is_an_error(options: dict[str, str]) -> None:
    with pytest.raises(TransformError, match="no field 'nothing'"):
        applied(chain(a=options), RECORD)


def test_a_field_of_a_plain_key_is_an_error() -> None:
    with pytest.raises(TransformError, match="expected a struct, not string"):
        applied(chain(a=TO_KEY, b=EXTRACT, c=EXTRACT), RECORD)


def test_what_is_missing_or_not_supported_is_reported() -> None:
    wrong = chain(
        a={"type": KAFKA + "ValueToKey"},
        b={"type": KAFKA + "ExtractField$Key", "field.syntax.version": "V2"},
    )
    with pytest.raises(TransformConfigurationError) as caught:
        chain_from_properties(wrong)
    names = [problem.property for problem in caught.value.problems]
    assert names == ["transforms.a.fields", "transforms.b.field.syntax.version", "transforms.b.field"]


@pytest.mark.parametrize(
    ("kind", "options", "told"),
    [
        ("unwrap", {"drop.tombstones": "false"}, {"drop.tombstones": "=tombstone"}),
        (
            "unwrap",
            {"drop.tombstones": "true", "delete.handling.mode": "rewrite"},
            {"drop.tombstones": "=rewrite", "delete.handling.mode": "=rewrite"},
        ),
        (
            "unwrap",
            {"drop.tombstones": "false", "delete.handling.mode": "rewrite"},
            {"drop.tombstones": "=rewrite-with-tombstone", "delete.handling.mode": "=rewrite-with-tombstone"},
        ),
        ("unwrap", {"delete.handling.mode": "none"}, {"delete.handling.mode": "=delete-to-tombstone"}),
        ("unwrap", {"operation.header": "true"}, {"operation.header": "add.headers=op"}),
        ("unwrap", {"add.source.fields": "table,ts_ms"}, {"add.source.fields": "=source.table,source.ts_ms"}),
        ("replace", {"blacklist": "a"}, {"blacklist": "use exclude"}),
        ("replace", {"whitelist": "a"}, {"whitelist": "use include"}),
    ],
)
def test_former_options_name_what_replaces_them(kind: str, options: dict[str, str], told: dict[str, str]) -> None:
    types = {"unwrap": "io.debezium.transforms.ExtractNewRecordState", "replace": KAFKA + "ReplaceField$Value"}
    with pytest.raises(TransformConfigurationError) as caught:
        chain_from_properties(chain(a={"type": types[kind], **options}))
    found = {problem.property.removeprefix("transforms.a."): problem.message for problem in caught.value.problems}
    assert found.keys() == told.keys()
    for name, message in told.items():
        assert found[name].startswith("is no longer an option: ")
        assert found[name].endswith(message)
