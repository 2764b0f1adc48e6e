"""``rowtide verify --tables`` with real servers: every damage of a table is named, and no healthy table is accused."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from tests.support.processes.worker_process import Worker, WorkerConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.spark]

ROWS = 20
MORE = {
    "offset.flush.interval.ms": "200",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
}
TYPES = """
CREATE TABLE types (
    id INT PRIMARY KEY, bin BINARY(4), f FLOAT, d DOUBLE, price DECIMAL(10,2), wide DECIMAL(50,10), big BIGINT UNSIGNED,
    yes BOOLEAN, bits BIT(13), one BIT(1), e ENUM('a','b,c','d'), s SET('x','y z'), t TIME(6), dt DATETIME(6), da DATE,
    ts TIMESTAMP(3) NULL, y YEAR, j JSON, blb BLOB, txt TEXT CHARACTER SET utf8mb4, g GEOMETRY, z DATE
)"""
VALUES = (
    r"""(1, x'01020000', 16777217, 0.1, -12.50, -1234567890.5, 9223372036854775807, 2, b'1010', b'1', 'b,c', 'x,y z',
    '-838:59:58.999999', '9999-12-31 23:59:59.99', '1000-01-01', '2024-01-02 03:04:05.678', 1901,
    '{"b": [1.0, 1e30, null], "a": "é", "c": 12345678901234567890}', x'00ff', 'é😀', ST_GeomFromText('POINT(1 2)'),
    '0000-00-00')""",
    """(2, x'00000000', -0.0, 1e-300, 0, 0, 0, 0, b'0', b'0', 'a', '', '00:00:00', '0001-01-01 00:00:00', '0069-12-31',
    '1970-01-01 00:00:01', 0, 'null', '', '', ST_GeomFromText('LINESTRING(0 0, 1 1)'), '2024-02-00')""",
    """(3, x'ffffffff', 3.14159274, 1.7976931348623157e308, 99999999.99, 9999999999.0000000001, 1, 1, b'1111111111111',
    NULL, NULL, NULL, '838:59:59', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
)
METADATA = ("--metadata", "op,ts,file,pos,gtid,kafka.offset")
LOOSE = "SET SESSION sql_mode = '', time_zone = '+00:00'"


def report(config: WorkerConfig, output: Path, *options: str) -> tuple[int, dict[str, Any]]:

    arguments = ["--config", str(config.path), "--tables", str(output), "--timeout", "60", "--json", *options]
    result = CliRunner().invoke(main, ["verify", *arguments])
    assert result.exit_code in (0, 1, 2), result.output
    return result.exit_code, json.loads(result.stdout)


def update(config: WorkerConfig, output: Path, *options: str) -> None:

    arguments = ["--config", str(config.path), "--output", str(output), *options]
    result = CliRunner().invoke(main, ["tables", *arguments])
    assert result.exit_code == 0, result.output


def spark_tables(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["table"].partition(".")[2]: one["spark_tables"][0] for one in document["tables"]}


def found(document: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """Table, kind, first value of the key and columns of each difference of a Spark table."""
    return {
        (name, one["kind"], one["key"].get("id", one["key"].get("n", "")), ",".join(one["columns"]))
        for name, table in spark_tables(document).items()
        for one in table["differences"]
    }


@contextmanager
def replaced(table: Path, rows: DataFrame) -> Iterator[None]:
    """A Parquet table with other rows while the context is open."""
    made, kept = table.with_name("made"), table.with_name("kept")
    rows.write.parquet(str(made))
    shutil.copy(table / "_rowtide.json", made)
    table.rename(kept)
    made.rename(table)
    yield
    shutil.rmtree(table)
    kept.rename(table)


class Damages:
    """Damages of Delta tables. Each returns the difference that must be found."""

    def __init__(self, spark: SparkSession, folder: Path, chance: random.Random) -> None:
        self.spark, self.folder, self.chance = spark, folder, chance
        self.kinds: dict[str, Callable[[], tuple[str, str, str, str]]] = {
            name: getattr(self, name)
            for name in (
                "lost", "extra", "doubled", "old", "bit", "moved", "typed", "dropped", "keyless_lost", "keyless_doubled"
            )
        }  # fmt: skip
        self.versions: dict[str, int] = {}
        self.left: list[int] = []

    def row(self) -> int:
        """A row that is not damaged yet."""
        if not self.left:
            self.left = self.chance.sample(range(ROWS), ROWS)
        return self.left.pop()

    def path(self, table: str) -> str:
        return f"delta.`{self.folder / table}`"

    def sql(self, statement: str, table: str = "orders") -> None:
        self.spark.sql(statement.replace("TABLE_", self.path(table)))

    def overwrite(self, *columns: str, table: str = "orders", where: str = "true") -> None:
        rows = self.spark.read.format("delta").load(str(self.folder / table)).where(where).selectExpr(*columns)
        writer = rows.localCheckpoint().write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.save(str(self.folder / table))

    def mend(self) -> None:
        self.left = []
        for table, version in self.versions.items():
            self.spark.sql(f"RESTORE TABLE {self.path(table)} TO VERSION AS OF {version}")

    def note_versions(self) -> None:
        for table in ("orders", "visits"):
            rows = self.spark.sql(f"DESCRIBE HISTORY {self.path(table)} LIMIT 1").collect()
            self.versions[table] = rows[0]["version"]

    def lost(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.sql(f"DELETE FROM TABLE_ WHERE id = {i}")
        return "orders", "lost", str(i), ""

    def extra(self) -> tuple[str, str, str, str]:
        self.sql("INSERT INTO TABLE_ SELECT 900, n, price, note, doc, more FROM TABLE_ WHERE id = 1")
        return "orders", "extra", "900", ""

    def doubled(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.sql(f"INSERT INTO TABLE_ SELECT * FROM TABLE_ WHERE id = {i}")
        return "orders", "doubled", str(i), ""

    def old(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.sql(f"UPDATE TABLE_ SET note = 'order {i}', n = {i * 7} WHERE id = {i}")
        return "orders", "not applied", str(i), "n,note"

    def bit(self) -> tuple[str, str, str, str]:
        i, bit = self.row(), self.chance.randrange(31)
        self.sql(f"UPDATE TABLE_ SET n = n ^ {1 << bit} WHERE id = {i}")
        return "orders", "stale", str(i), "n"

    def moved(self) -> tuple[str, str, str, str]:
        i, j = self.row(), self.row()
        names = ("n", "price", "note", "doc", "more")
        struct = ", ".join(f"max(IF(id = {j}, {name}, NULL)) AS {name}" for name in names)
        self.sql(
            f"MERGE INTO TABLE_ t USING (SELECT {struct} FROM TABLE_) s ON t.id = {i} WHEN MATCHED THEN UPDATE SET "
            + ", ".join(f"{name} = s.{name}" for name in names)
        )
        return "orders", "stale", str(i), "n,price,note,doc"

    def typed(self) -> tuple[str, str, str, str]:
        self.overwrite("id", "CAST(n AS string) AS n", "price", "note", "doc", "more")
        return "orders", "column", "", "n"

    def dropped(self) -> tuple[str, str, str, str]:
        self.overwrite("id", "n", "price", "doc", "more")
        return "orders", "column", "", "note"

    def keyless_lost(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.sql(f"DELETE FROM TABLE_ WHERE n = {i}", "visits")
        return "visits", "lost", str(i), ""

    def keyless_doubled(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.sql(f"INSERT INTO TABLE_ SELECT * FROM TABLE_ WHERE n = {i}", "visits")
        return "visits", "extra", str(i), ""


TOGETHER = [
    ("lost", "extra", "doubled", "old", "bit", "moved"),
    ("typed",),
    ("dropped",),
    ("keyless_lost", "keyless_doubled"),
]
"""Damages that one run has to name."""
SINGLE = [(name,) for names in TOGETHER for name in names]


@pytest.mark.nightly  # minutes; the next test has one damage of each kind of table
@pytest.mark.parametrize("kinds", [TOGETHER, SINGLE * 20], ids=["4", "200"])
def test_every_damage_of_a_table_is_found_and_named(
    kinds: list[tuple[str, ...]], spark: SparkSession, tmp_path: Path, mysql_db: Database, kafka: Kafka
) -> None:
    database, output = mysql_db, tmp_path / "tables"
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    database.execute(
        LOOSE,
        "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, n INT, price DECIMAL(10,2), note VARCHAR(40), doc JSON)",
        "CREATE TABLE visits (n INT, at DATETIME(3), f FLOAT, note TEXT)",
        TYPES,
        *(f"INSERT INTO types VALUES {row}" for row in VALUES),
        *(f"INSERT INTO orders VALUES ({i}, {i * 7}, {i}.50, 'order {i}', '{{\"n\": {i}}}')" for i in range(ROWS)),
    )
    with Worker(config).streaming() as worker:
        database.execute(
            LOOSE,
            *(f"INSERT INTO visits VALUES ({i}, '2024-01-01 00:00:00.{i:03}', {i}.1, 'x')" for i in range(ROWS)),
            "UPDATE orders SET note = CONCAT(note, '!')",
            "UPDATE types SET id = id + 10",
            *(f"INSERT INTO types VALUES {row}" for row in VALUES),
        )
        assert report(config, output)[0] == 2, "there are no tables yet"
        update(config, output)
        status, document = report(config, output)
        assert status == 0, json.dumps(document)
        assert spark_tables(document)["types"]["table_rows"] == 2 * len(VALUES)

        database.execute("UPDATE orders SET n = 1 WHERE id = 1", "ALTER TABLE orders ADD more INT DEFAULT 5")
        database.execute("INSERT INTO orders (id) VALUES (100)")
        status, document = report(config, output)
        outcomes = {one["outcome"] for one in spark_tables(document).values()}
        assert (status, outcomes) == (2, {"equal"}), "what the table has not read is not a difference"
        assert next(one["reason"] for one in document["tables"] if one["outcome"] != "equal").count("more cannot be")
        assert spark_tables(document)["orders"]["behind"] > 0
        update(config, output)
        orders = ("--table", f"{database.name}.orders")
        status, document = report(config, output, *orders)
        assert (spark_tables(document)["orders"]["outcome"], spark_tables(document)["orders"]["behind"]) == ("equal", 0)
        assert spark_tables(document)["orders"]["not_compared"] == {"more": ROWS}
        database.execute("ALTER TABLE orders DROP more", "UPDATE orders SET n = id + 1000")
        update(config, output)
        assert report(config, output, *orders)[0] == 0

        damages = Damages(spark, output / database.name, random.Random(len(kinds)))
        damages.note_versions()
        for names in kinds:
            print(names)
            expected = {damages.kinds[name]() for name in names}
            (table,) = {one[0] for one in expected}
            status, document = report(config, output, "--table", f"{database.name}.{table}")
            assert status == 1, (names, document)
            assert found(document) == expected, (names, document)
            damages.mend()
        status, document = report(config, output)
        assert status == 0, json.dumps(document)
        assert spark_tables(document)["orders"]["other_commits"], "commits of other writers are named"

        damages.sql("DELETE FROM TABLE_")
        assert report(config, output, *orders, "--where", "id = 3")[0] == 1
        status, document = report(config, output, *orders)
        assert (status, len(found(document))) == (1, ROWS + 1)
        shutil.rmtree(output / database.name / "orders")
        document = report(config, output)[1]
        assert "the table is missing from" in spark_tables(document)["orders"]["reason"]
        document = report(config, output, "--state", str(tmp_path / "none"))[1]
        assert {one["outcome"] for one in spark_tables(document).values()} == {"undecided"}
        worker.stop()


def test_each_kind_of_table_is_compared(spark: SparkSession, tmp_path: Path, mysql_db: Database, kafka: Kafka) -> None:
    database, output, log = mysql_db, tmp_path / "tables", tmp_path / "log"
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    database.execute("CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "CREATE TABLE visits (n INT)")
    with Worker(config).streaming() as worker:
        database.execute(
            "INSERT INTO orders VALUES (1, 1), (2, 2)",
            "DELETE FROM orders WHERE id = 2",
            "INSERT INTO visits VALUES (1)",
        )
        output.mkdir()
        assert report(config, output)[0] == 2, "which waits until the topics have all of this"
        update(config, output, "--format", "parquet", "--metadata", "op,pos")
        update(config, log, "--soft-delete", "--keyless", "append")
        for folder in (output, log):
            status, document = report(config, folder)
            assert status == 0, json.dumps(document)
        spark.sql(f"UPDATE delta.`{log / database.name / 'orders'}` SET __deleted = false WHERE id = 2")
        spark.sql(f"DELETE FROM delta.`{log / database.name / 'visits'}`")
        status, document = report(config, log)
        assert (status, found(document)) == (
            1,
            {("orders", "not applied", "2", "__deleted"), ("visits", "lost", "1", "")},
        )
        damaged = str(output / database.name / "orders")
        spark.read.parquet(damaged).localCheckpoint().write.mode("append").parquet(damaged)
        status, document = report(config, output, "--table", f"{database.name}.orders")
        assert (status, {kind for _, kind, _, _ in found(document)}) == (1, {"doubled"})
        worker.stop()


@pytest.mark.nightly  # minutes
def test_parquet_and_appended_changes_are_compared(
    spark: SparkSession, tmp_path: Path, mysql_db: Database, kafka: Kafka
) -> None:
    database, output, log = mysql_db, tmp_path / "tables", tmp_path / "log"
    more = {"database.include.list": database.name, "topic.creation.default.partitions": "3"}
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | more)
    database.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE visits (n INT, note TEXT)",
        *(f"INSERT INTO orders VALUES ({i}, {i})" for i in range(ROWS)),
    )
    with Worker(config).streaming() as worker:
        database.execute("INSERT INTO visits VALUES (1, 'a'), (1, 'a'), (2, NULL)", "UPDATE visits SET n = n + 1")
        assert report(config, output)[0] == 2
        update(config, output, "--format", "parquet", *METADATA)
        update(config, log, "--soft-delete", "--keyless", "append", *METADATA)
        for folder in (output, log):
            status, document = report(config, folder)
            assert status == 0, json.dumps(document)
        assert spark_tables(document)["visits"]["table_rows"] == 6
        assert spark_tables(document)["visits"]["not_compared"].keys() == {
            "__source_gtid",
            "__source_ts",
            "__kafka_offset",
        }
        # A table gets what its topic lacked by the records of the repair.
        database.execute(
            "SET sql_log_bin = 0", "DELETE FROM orders WHERE id = 5", "UPDATE orders SET n = -1 WHERE id = 6"
        )
        status, document = report(config, output, "--repair", "--web", f"http://127.0.0.1:{worker.port}")
        assert (status, spark_tables(document)["orders"]["behind"]) == (0, 3), "read, deleted, and a tombstone"
        update(config, output, "--format", "parquet", *METADATA)
        status, document = report(config, output)
        assert (status, spark_tables(document)["orders"]["table_rows"]) == (0, ROWS - 1)
        assert spark.read.parquet(str(output / database.name / "orders")).where("n = -1").count() == 1
        database.execute("ALTER TABLE orders RENAME COLUMN n TO number", "INSERT INTO orders VALUES (900, 9)")
        database.execute("ALTER TABLE visits CHANGE note remark TEXT AFTER n", "INSERT INTO visits VALUES (9, 'new')")
        report(config, log)  # waits until the topics have all of this
        update(config, output, "--format", "parquet", *METADATA)
        update(config, log, "--soft-delete", "--keyless", "append", *METADATA)
        rows = spark.read.parquet(str(output / database.name / "orders"))
        assert rows.columns[:2] == ["id", "number"]
        assert rows.where("number IS NOT NULL").count() == ROWS
        changes = spark.read.format("delta").load(str(log / database.name / "visits"))
        assert changes.columns[:2] == ["n", "remark"]
        assert changes.where("remark = 'a'").count() == 4
        for folder in (output, log):
            status, document = report(config, folder)
            assert {one["outcome"] for one in spark_tables(document).values()} == {"equal"}, json.dumps(document)
        kept = spark.read.format("delta").load(str(log / database.name / "orders")).where("__deleted")
        assert [(row["id"], row["__op"]) for row in kept.collect()] == [(5, "d")]
        spark.sql(f"UPDATE delta.`{log / database.name / 'orders'}` SET __deleted = false WHERE id = 5")
        status, document = report(config, log, "--table", f"{database.name}.orders")
        assert (status, found(document)) == (1, {("orders", "stale", "5", "__deleted")})
        ice = tmp_path / "ice"
        update(config, ice, "--format", "iceberg")
        status, document = report(config, ice, "--format", "iceberg")
        assert {one["outcome"] for one in spark_tables(document).values()} == {"equal"}, json.dumps(document)
        session = spark.newSession()
        for name, value in (("", "SparkCatalog"), (".type", "hadoop"), (".warehouse", str(ice))):
            session.conf.set(f"spark.sql.catalog.ice{name}", value.replace("Spark", "org.apache.iceberg.spark.Spark"))
        session.sql(f"UPDATE ice.{database.name}.orders SET number = -7 WHERE id = 900")
        status, document = report(config, ice, "--format", "iceberg", "--table", f"{database.name}.orders")
        assert (status, found(document)) == (1, {("orders", "stale", "900", "number")})
        assert len(spark_tables(document)["orders"]["other_commits"]) == 1
        changes = tmp_path / "changes"
        update(config, changes, "--append")
        status, document = report(config, changes)
        assert {one["outcome"] for one in spark_tables(document).values()} == {"equal"}, json.dumps(document)
        spark.sql(f"DELETE FROM delta.`{changes / database.name / 'orders'}` WHERE __op = 'd'")
        document = report(config, changes, "--table", f"{database.name}.orders")[1]
        assert [one["kind"] for one in spark_tables(document)["orders"]["differences"]] == ["lost"]
        spark.sql(f"DELETE FROM delta.`{log / database.name / 'visits'}` WHERE __op = 'c' AND n = 2")
        status, document = report(config, log, "--table", f"{database.name}.visits")
        assert (status, found(document)) == (1, {("visits", "lost", "2", "")})
        few, job = tmp_path / "few", tmp_path / "few.yaml"
        job.write_text("tables: [{table: .*orders, columns: id}, {table: .*visits, columns: note}]")
        update(config, few, "--job", str(job))
        status, document = report(config, few)
        assert {one["outcome"] for one in spark_tables(document).values()} == {"equal"}, json.dumps(document)
        assert spark_tables(document)["orders"]["not_compared"] == {}
        spark.sql(f"DELETE FROM delta.`{few / database.name / 'orders'}` WHERE id = 7")
        status, document = report(config, few, "--table", f"{database.name}.orders")
        assert (status, found(document)) == (1, {("orders", "lost", "7", "")})
        history = tmp_path / "history"
        update(config, history, "--history", "--keyless", "append", "--metadata", "op,pos")
        status, document = report(config, history)
        assert {one["outcome"] for one in spark_tables(document).values()} == {"equal"}, json.dumps(document)
        versions = f"delta.`{history / database.name / 'orders'}`"
        spark.sql(f"UPDATE {versions} SET number = -2 WHERE NOT __current")  # which are not compared
        spark.sql(f"UPDATE {versions} SET __current = false WHERE id = 7")
        status, document = report(config, history, "--table", f"{database.name}.orders")
        assert (status, found(document)) == (1, {("orders", "lost", "7", "")})
        damaged = output / database.name / "orders"
        rows = spark.read.parquet(str(damaged))
        moved = rows.selectExpr("* EXCEPT (__source_pos)", "IF(id = 4, 4L, __source_pos) AS __source_pos")
        with replaced(damaged, moved.select(*rows.columns)):
            status, document = report(config, output)
            assert (status, found(document)) == (1, {("orders", "stale", "4", "__source_pos")})
        rows = spark.read.parquet(str(damaged)).where("id <> 3").localCheckpoint()
        rows.write.mode("append").parquet(str(damaged))
        status, document = report(config, output)
        assert (status, {kind for _, kind, _, _ in found(document)}) == (1, {"doubled"})
        worker.stop()
