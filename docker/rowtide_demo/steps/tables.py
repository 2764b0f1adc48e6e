"""The steps with Spark: ``rowtide tables``, then ``rowtide verify``."""

import json
from pathlib import Path
from typing import Any

from rowtide_stack import spark_jars
from rowtide_stack.programs.host import java

from rowtide_demo.errors import DemoError
from rowtide_demo.shop.schema import DATABASE, TABLES
from rowtide_demo.steps.context import Context

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
    return _command(context, "tables")


def _command(context: Context, name: str) -> list[str]:
    folder = {"tables": "--output", "verify": "--tables"}[name]
    options = [("--config", context.config), (folder, context.folder / "tables"), ("--jars", jars())]
    options.append(("--master", MASTER))
    options += [("--spark-conf", f"{name}={value}") for name, value in settings(context).items()]
    return [str(context.rowtide), name, *(str(word) for option in options for word in option)]


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


def prove(context: Context) -> None:
    """Compare every row of every table in MySQL with Kafka, and in Kafka with Spark.

    Raises:
        DemoError: a table is different, or could not be compared. The message has the end of the report.
    """
    with context.screen.step("proof") as step:
        step.update("comparing MySQL, Kafka and Spark")
        context.finish(
            context.start("the proof", [*_command(context, "verify"), "--json"], environment(context.folder))
        )
        log = context.log("proof").read_text()
        report = json.loads(log[log.index('{\n  "outcome"') : log.rindex("\n}") + 2])
        for table in report["tables"]:
            (spark,) = table["spark_tables"]
            name = table["table"].removeprefix(f"{DATABASE}.")
            context.results.rows[name] = [table["source_rows"], table["topic_rows"], spark["table_rows"]]
        if report["outcome"] != "equal" or set(context.results.rows) != set(TABLES):
            raise DemoError(f"rowtide verify has not compared all tables: {json.dumps(report)}")
        rows = sum(source for source, *_ in context.results.rows.values())
        step.result = f"rowtide verify: {rows:,} rows of {len(TABLES)} tables are equal in MySQL, Kafka and Spark"
