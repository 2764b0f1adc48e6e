"""The sums of Spark's side; a program of its own, as the demo itself runs without a Java machine.

python -m rowtide_demo.checksums.spark REQUEST    (a JSON file: jars, tables' paths, columns, settings)

prints the sums as one line of JSON.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowtide_demo.checksums.canonical_text import Column, digest_in_spark, key_in_spark, spark_text
from rowtide_demo.checksums.comparison import ColumnSum, TableSum, to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["main", "sums_of"]


def sums_of(frame: "DataFrame", columns: list[Column]) -> TableSum:
    """The sums of a table.

    MySQL's columns say how each is to be read; a column that only one side has is left out here, or has a sum that
    nothing on the other side equals.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own convention; an extra

    there = [column for column in columns if column.name in frame.columns]
    key = [column for column in columns if column.key] or columns
    if any(column not in there for column in key):
        key = there
    # Texts below one another instead of an aggregate for each column: a small plan, which Spark has ready much sooner.
    texts = ", ".join(map(spark_text, there))
    rows = frame.selectExpr(f"{key_in_spark(key)} AS row", f"posexplode(array({texts})) AS (place, text)")
    grouped = rows.groupBy("place").agg(
        F.expr("count(*)"), F.expr("count_if(text IS NULL)"), F.expr(f"sum({digest_in_spark('row', 'text')})")
    )
    found = {place: (count, ColumnSum(nulls, int(digest))) for place, count, nulls, digest in grouped.collect()}
    count = found[0][0] if found else 0
    sums = {column.name: found[place][1] if found else ColumnSum(0, 0) for place, column in enumerate(there)}
    known = {column.name for column in columns}
    return TableSum(count, {**sums, **{name: ColumnSum(-1, -1) for name in frame.columns if name not in known}})


def main(arguments: Iterable[str]) -> None:
    """Do what the request says."""
    (path,) = arguments
    request: dict[str, Any] = json.loads(Path(path).read_text())
    from rowtide.spark_consumers.jvm.session import build_session  # noqa: PLC0415 - starts Java

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
