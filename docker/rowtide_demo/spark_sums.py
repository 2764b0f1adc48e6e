"""The sums of Spark's side; a program of its own, as the demo itself runs without a Java machine.

python -m rowtide_demo.spark_sums REQUEST    (a JSON file: jars, tables' paths, columns, settings)

prints the sums as one line of JSON.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowtide_demo.canonical import Column, digest_in_spark, spark_name
from rowtide_demo.proof import ColumnSum, TableSum, to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["main", "sums_of"]


def sums_of(frame: "DataFrame", columns: list[Column]) -> TableSum:
    """The sums of a table.

    MySQL's columns say how each is to be read; a column that only one side has is left out here, or has a sum that
    nothing on the other side equals.
    """
    there = [column for column in columns if column.name in frame.columns]
    key = [column for column in columns if column.key] or columns
    if any(column not in there for column in key):
        key = there
    parts = ["count(*)"]
    for column in there:
        parts.append(f"count_if({spark_name(column.name)} IS NULL)")
        parts.append(f"coalesce(sum({digest_in_spark(key, column)}), 0)")
    count, *values = (int(value) for value in frame.selectExpr(*parts).collect()[0])
    pairs = zip(values[::2], values[1::2], strict=True)
    sums = {column.name: ColumnSum(*pair) for column, pair in zip(there, pairs, strict=True)}
    known = {column.name for column in columns}
    return TableSum(count, {**sums, **{name: ColumnSum(-1, -1) for name in frame.columns if name not in known}})


def main(arguments: Iterable[str]) -> None:
    """Do what the request says."""
    (path,) = arguments
    request: dict[str, Any] = json.loads(Path(path).read_text())
    from rowtide.spark_consumers.session import build_session  # noqa: PLC0415 - starts Java

    spark = build_session(
        delta=True, master=request["master"], jars=request["jars"], settings={**request["settings"], **SETTINGS}
    )
    spark.sparkContext.setLogLevel("ERROR")
    found = {}
    for name, table in request["tables"].items():
        frame = spark.read.format("delta").load(table["path"])
        found[name] = sums_of(frame, [Column(*column) for column in table["columns"]])
    print(json.dumps(to_json(found)))
    spark.stop()


SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""What the canonical texts rely on."""

if __name__ == "__main__":
    main(sys.argv[1:])
