"""The steps with Spark: ``rowtide tables``, then the comparison with MySQL."""

import json
import sys
from pathlib import Path
from typing import Any

from rowtide_stack import MySQL, spark_jars
from rowtide_stack.programs.host import java

from rowtide_demo.checksums.comparison import TableChecksum, compare, from_json
from rowtide_demo.checksums.mysql import checksums_in_mysql, columns_of
from rowtide_demo.errors import DemoError
from rowtide_demo.shop.schema import DATABASE, TABLES
from rowtide_demo.steps.context import Context
from rowtide_demo.steps.preparation import UTC

__all__ = ["environment", "make_tables", "prove", "tables_command"]

MASTER = "local[2]"
SPARK = {
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""Settings for a small machine."""
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Further settings for few rows, for which compiling plans and byte code takes longer than executing them."""
_FEW = 20_000


def settings(context: Context) -> dict[str, str]:
    """Spark's settings for the size of the shop."""
    return {**SPARK, **(SMALL if context.sizes.total < _FEW else {})}


def jars() -> str:
    """Return the Kafka and Delta jars of Spark, from the cache of the stack."""
    return ",".join(map(str, spark_jars()))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of Spark: its Java, and the folders of its temporary files, PySpark's included."""
    home = str(java().resolve().parents[1])
    return {"JAVA_HOME": home, "SPARK_LOCAL_DIRS": str(folder / "spark"), "TMPDIR": str(folder)}


def tables_command(context: Context) -> list[str]:
    """Return the command ``rowtide tables`` for the topics of the demo."""
    options = [("--config", context.config), ("--output", context.folder / "tables"), ("--jars", jars())]
    options.append(("--master", MASTER))
    options += [("--spark-conf", f"{name}={value}") for name, value in settings(context).items()]
    return [str(context.rowtide), "tables", *(str(word) for option in options for word in option)]


def make_tables(context: Context) -> None:
    """Update the Delta tables."""
    with context.screen.step("tables") as step:
        spark = context.start("rowtide tables", [*tables_command(context), "--json"], environment(context.folder))
        step.update("starting Spark")

        def report() -> None:
            done = len(_outcomes(context))
            step.update(f"{done} of {len(TABLES)} tables" if done else "Spark is reading the topics", done, len(TABLES))

        context.finish(spark, report)
        outcomes = _outcomes(context)
        results = context.results
        results.tables_records = sum(sum(outcome["read"].values()) for outcome in outcomes)
        results.tables_seconds = step.seconds
        step.result = f"rowtide tables: {results.tables_records:,} records into {len(outcomes)} Delta tables"


def _outcomes(context: Context) -> list[dict[str, Any]]:
    """Return the results that the command has printed so far: a JSON line for each table, among other lines."""
    lines = context.log("tables").read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"table"') and line.endswith("}")]


def prove(context: Context, mysql: MySQL) -> None:
    """Compare the number of rows of every table, and the NULLs and checksum of every column.

    Raises:
        DemoError: there are differences. The message lists all of them.
    """
    with context.screen.step("proof") as step:
        with mysql.connect(init_command=UTC) as connection:
            structure = columns_of(connection, DATABASE)
            request = {
                "jars": jars(),
                "master": MASTER,
                "settings": settings(context),
                "tables": {
                    name: {
                        "path": str(context.folder / "tables" / DATABASE / name),
                        "columns": [[c.name, c.type, c.size, c.key] for c in columns],
                    }
                    for name, columns in structure.items()
                },
            }
            path = context.folder / "proof.json"
            path.write_text(json.dumps(request))
            argv = [sys.executable, "-m", "rowtide_demo.checksums.spark", str(path)]
            spark = context.start("the proof", argv, environment(context.folder))
            step.update("checksums in MySQL and in Spark")
            expected = checksums_in_mysql(connection, DATABASE, structure)
            context.finish(spark)
        result = [line for line in context.log("proof").read_text().splitlines() if line.startswith("{")]
        _compare(context, expected, from_json(json.loads(result[-1])))
        columns = sum(len(table.columns) for table in expected.values())
        step.result = f"{len(expected)} tables, {columns} columns: rows, NULLs and checksums are equal"


def _compare(context: Context, mysql: dict[str, TableChecksum], spark: dict[str, TableChecksum]) -> None:
    wrong = compare(mysql, spark)
    if wrong:
        lines = "\n".join(f"  {difference}" for difference in wrong)
        raise DemoError(f"the tables in Spark differ from those in MySQL:\n{lines}")
    for name in TABLES:
        context.results.rows[name] = mysql[name].rows
        context.results.columns[name] = len(mysql[name].columns)
