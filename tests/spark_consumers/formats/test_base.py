"""What the table formats share."""

import pytest

pytestmark = pytest.mark.spark


def test_a_table_without_rows_has_its_columns_and_needs_no_python_on_executors(spark) -> None:
    from rowtide.spark_consumers.formats.base import no_rows

    columns = (("a `name`", "int"), ("at", "timestamp_ntz"), ("place", "struct<wkb:binary,srid:int>"))
    rows = no_rows(spark, columns)
    assert tuple(rows.dtypes) == columns
    assert all(field.nullable for field in rows.schema.fields)
    assert rows.count() == 0
    assert "ExistingRDD" not in rows._jdf.queryExecution().toString(), "it is read from a list of Python"
