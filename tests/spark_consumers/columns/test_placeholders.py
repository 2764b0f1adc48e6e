"""Column names and defaults that look like the placeholders of the generated SQL."""

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
