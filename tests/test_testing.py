"""The tools for tests of users' transforms and column converters."""

from dataclasses import replace
from typing import Any

import pytest

from rowtide.envelope.custom_converter import Registration
from rowtide.envelope.schema import INT32, STRING, Schema
from rowtide.envelope.transforms import ConnectRecord, TransformConfigurationError, TransformError
from rowtide.testing import Converted, RelationalColumn, apply_transform, change, convert

ROW = {"id": INT32, "country": STRING}
ONE = {"id": 1, "country": "DE"}


class Upper:
    def configure(self, options: dict[str, str]) -> None:
        self.suffix = options.get("suffix", "")

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        if column.type_name == "VARCHAR":
            registration.register(STRING, lambda value: value.upper() + self.suffix)


class Wrong:
    def converter_for(self, _column: RelationalColumn, registration: Registration) -> None:
        registration.register(STRING, len)


def renamed(record: ConnectRecord) -> ConnectRecord:
    return replace(record, topic="other")


def dropped(_record: ConnectRecord) -> None:
    return None


def wrong(record: ConnectRecord) -> ConnectRecord:
    return record.with_content("value", Schema("int32"), "text")


def test_a_change_is_an_insert_an_update_or_a_delete() -> None:
    inserted = change(ROW, after=ONE, key=("id",))
    assert (inserted.key, inserted.value["op"], inserted.value["before"]) == ({"id": 1}, "c", None)
    assert inserted.is_envelope
    assert (inserted.value["source"]["db"], inserted.value["source"]["table"]) == ("shop", "orders")
    assert change(ROW, before=ONE, after=ONE).value["op"] == "u"
    deleted = change(ROW, before=ONE, key=("id",))
    assert (deleted.key, deleted.value["op"]) == ({"id": 1}, "d")
    assert change(ROW, after=ONE).key_schema is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a change needs a row"),
        ({"after": {"id": "1", "country": "DE"}}, "a str for value.after.id, which is int32"),
        ({"after": {"id": 1}}, "null for value.after.country"),
        ({"after": ONE, "topic": "orders"}, "topic must have the form prefix.database.table"),
    ],
)
def test_a_change_that_no_connector_writes(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        change(ROW, **arguments)


def test_a_transform_is_applied_as_in_a_connector() -> None:
    record = change(ROW, after=ONE)
    assert [one.topic for one in apply_transform(renamed, record)] == ["other"]
    assert apply_transform(dropped, record) == []
    assert [one.topic for one in apply_transform(f"python:{__name__}.renamed", record)] == ["other"]
    options = {"language": "python", "condition": "value.after.country == 'FR'"}
    assert apply_transform("io.debezium.transforms.Filter", record, options) == []
    (unwrapped,) = apply_transform("io.debezium.transforms.ExtractNewRecordState", record)
    assert unwrapped.value == ONE


def test_a_mistake_of_a_transform_is_an_error() -> None:
    record = change(ROW, after=ONE)
    with pytest.raises(TransformError, match="wrong returned a str for value, which is int32: 'text'"):
        apply_transform(wrong, record)
    with pytest.raises(TransformConfigurationError, match="rowtide has no Nothing"):
        apply_transform("Nothing", record)
    with pytest.raises(TransformError, match="a function takes no options"):
        apply_transform(renamed, record, {"a": "b"})


def test_a_column_converter_is_applied_as_in_a_connector() -> None:
    column = RelationalColumn("country", "shop.orders", "VARCHAR", optional=False)
    assert convert(Upper(), column, "de", {"suffix": "!"}) == Converted(STRING, "DE!")
    nullable = replace(column, optional=True)
    assert convert(Upper(), nullable, None) == Converted(STRING.with_optional(True), None)
    assert convert(Upper(), replace(column, type_name="INT"), 1) is None
    with pytest.raises(ValueError, match="an int for column country, which is string"):
        convert(Wrong(), column, "de")
