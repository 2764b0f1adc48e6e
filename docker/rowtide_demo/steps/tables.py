"""The steps of Spark: ``rowtide tables``, then the proof."""

import json
import sys
from pathlib import Path
from typing import Any

from rowtide_stack import MySQL, spark_jars
from rowtide_stack.programs.host import java

from rowtide_demo.checksums.comparison import TableSum, compare, from_json
from rowtide_demo.checksums.mysql import columns_of, sums_of
from rowtide_demo.errors import DemoError
from rowtide_demo.shop.schema import DATABASE, TABLES
from rowtide_demo.steps.context import Stage
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
"""For one small machine."""
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""For few rows besides: compiling, of plans and by the Java machine, would take longer than running."""
_FEW = 20_000


def settings(stage: Stage) -> dict[str, str]:
    """Spark's settings for the size of the shop."""
    return {**SPARK, **(SMALL if stage.sizes.total < _FEW else {})}


def jars() -> str:
    """Spark's jars for Kafka and Delta, from the cache of the stack."""
    return ",".join(map(str, spark_jars()))


def environment(folder: Path) -> dict[str, str]:
    """Spark's environment: which Java, and where to keep what it cannot keep in memory."""
    return {"JAVA_HOME": str(java().resolve().parents[1]), "SPARK_LOCAL_DIRS": str(folder / "spark")}


def tables_command(stage: Stage) -> list[str]:
    """``rowtide tables`` for the demo's topics."""
    options = [("--config", stage.config), ("--output", stage.folder / "tables"), ("--jars", jars())]
    options += [("--master", MASTER), *(("--spark-conf", f"{name}={value}") for name, value in settings(stage).items())]
    return [str(stage.rowtide), "tables", *(str(word) for option in options for word in option)]


def make_tables(stage: Stage) -> None:
    """Bring the Delta tables up to date, by the command."""
    with stage.screen.step("tables") as step:
        spark = stage.start("rowtide tables", [*tables_command(stage), "--json"], environment(stage.folder))
        step.update("starting Spark")

        def told() -> None:
            done = len(_outcomes(stage))
            step.update(f"{done} of {len(TABLES)} tables" if done else "Spark is reading the topics", done, len(TABLES))

        stage.finish(spark, told)
        outcomes = _outcomes(stage)
        facts = stage.facts
        facts.tables_records = sum(sum(outcome["read"].values()) for outcome in outcomes)
        facts.tables_seconds = step.seconds
        step.result = f"rowtide tables: {facts.tables_records:,} records into {len(outcomes)} Delta tables"


def _outcomes(stage: Stage) -> list[dict[str, Any]]:
    """What the command has told: a line of JSON for each table, among other lines."""
    lines = stage.log("tables").read_text(errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"table"') and line.endswith("}")]


def prove(stage: Stage, mysql: MySQL) -> None:
    """Compare every table's rows, and every column's nulls and checksum, as MySQL and Spark compute them.

    Raises:
        DemoError: something is not the same; all of it is told.
    """
    with stage.screen.step("proof") as step:
        with mysql.connect(init_command=UTC) as connection:
            structure = columns_of(connection, DATABASE)
            request = {
                "jars": jars(),
                "master": MASTER,
                "settings": settings(stage),
                "tables": {
                    name: {
                        "path": str(stage.folder / "tables" / DATABASE / name),
                        "columns": [[c.name, c.type, c.size, c.key] for c in columns],
                    }
                    for name, columns in structure.items()
                },
            }
            path = stage.folder / "proof.json"
            path.write_text(json.dumps(request))
            argv = [sys.executable, "-m", "rowtide_demo.checksums.spark", str(path)]
            spark = stage.start("the proof", argv, environment(stage.folder))
            step.update("checksums in MySQL and in Spark")
            expected = sums_of(connection, DATABASE, structure)
            stage.finish(spark)
        result = [line for line in stage.log("proof").read_text().splitlines() if line.startswith("{")]
        _judge(stage, expected, from_json(json.loads(result[-1])))
        columns = sum(len(table.columns) for table in expected.values())
        step.result = f"{len(expected)} tables, {columns} columns: rows, nulls and checksums are equal"


def _judge(stage: Stage, mysql: dict[str, TableSum], spark: dict[str, TableSum]) -> None:
    wrong = compare(mysql, spark)
    if wrong:
        lines = "\n".join(f"  {difference}" for difference in wrong)
        raise DemoError(f"the tables in Spark are not those of MySQL:\n{lines}")
    for name in TABLES:
        stage.facts.rows[name] = mysql[name].rows
        stage.facts.columns[name] = len(mysql[name].columns)
