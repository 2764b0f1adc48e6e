"""The conversion of columns, also with names and defaults that look like placeholders of the generated SQL."""

import pytest

from rowtide.spark_consumers.columns.conversion import ConverterSettings, column_of

ENUM = {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "a\\,b,c"}, "optional": True}


@pytest.mark.parametrize("name", ["{rows}", "{value}", "{snapshot}"])
def test_a_name_is_not_replaced(name: str) -> None:
    column = column_of({**ENUM, "field": name}, ConverterSettings())
    value = f"e.after.`{name}`"
    assert column.expression(value, "S").count(value) == column.template.count("{value}")
    assert column.expression("V", "S") == column.expression(value, "S").replace(value, "V")


def test_a_default_is_not_replaced() -> None:
    column = column_of({**ENUM, "field": "c", "default": "{snapshot} {value}"}, ConverterSettings())
    assert "{snapshot} {value}" in column.default


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "int16"}, "smallint"),
        ({"type": "bytes"}, "binary"),
        ({"type": "string", "name": "io.debezium.data.Json"}, "string"),
        ({"type": "string", "name": "com.example.Unheard"}, "string"),
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp"}, "timestamp"),
        ({"type": "int64", "name": "io.debezium.time.MicroTimestamp"}, "timestamp_ntz"),
        ({"type": "int32", "name": "io.debezium.time.Date"}, "date"),
        ({"type": "array", "items": {"type": "float"}}, "array<float>"),
        ({"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}}, "decimal(20,0)"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
          "parameters": {"scale": "2", "connect.decimal.precision": "10"}}, "decimal(10,2)"),
        ({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
          "parameters": {"scale": "30", "connect.decimal.precision": "65"}}, "string"),
    ],
)  # fmt: skip
def test_types_of_columns(schema: dict[str, object], kind: str) -> None:
    assert column_of({**schema, "field": "c"}, ConverterSettings()).type == kind
