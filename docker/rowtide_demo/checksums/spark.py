"""The checksums of Delta tables, computed by Spark in its own process, because the demo has no Java VM.

``python -m rowtide_demo.checksums.spark REQUEST`` prints the checksums as one line of JSON. REQUEST is a JSON file with
the jars, the Spark settings, and the path and columns of each table.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowtide_demo.checksums.canonical_text import Column, digest_in_spark, key_in_spark, spark_text
from rowtide_demo.checksums.comparison import ColumnChecksum, TableChecksum, to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["checksum_in_spark", "main"]


def checksum_in_spark(frame: "DataFrame", columns: list[Column]) -> TableChecksum:
    """Return the checksums of a table.

    The types are those of the columns in MySQL. A column that only MySQL has is missing in the result; one that only
    Spark has gets a checksum that no column in MySQL can have.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual alias; an extra

    common = [column for column in columns if column.name in frame.columns]
    key = [column for column in columns if column.key] or columns
    if any(column not in common for column in key):
        key = common
    # One row for each text, instead of one aggregate for each column, makes a small plan that Spark compiles faster.
    texts = ", ".join(map(spark_text, common))
    rows = frame.selectExpr(f"{key_in_spark(key)} AS row", f"posexplode(array({texts})) AS (position, text)")
    grouped = rows.groupBy("position").agg(
        F.expr("count(*)"), F.expr("count_if(text IS NULL)"), F.expr(f"sum({digest_in_spark('row', 'text')})")
    )
    found = {position: (count, nulls, int(digest)) for position, count, nulls, digest in grouped.collect()}
    count = found[0][0] if found else 0
    checksums = {
        column.name: ColumnChecksum(*found[position][1:]) if found else ColumnChecksum(0, 0)
        for position, column in enumerate(common)
    }
    for name in set(frame.columns) - {column.name for column in columns}:
        checksums[name] = ColumnChecksum(-1, -1)
    return TableChecksum(count, checksums)


def main(arguments: Iterable[str]) -> None:
    """Compute the checksums of the tables in the request file, and print them."""
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
        found[name] = checksum_in_spark(frame, [Column(*column) for column in table["columns"]])
    print(json.dumps(to_json(found)))
    spark.stop()


SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""The settings that the canonical texts depend on."""

if __name__ == "__main__":
    main(sys.argv[1:])
