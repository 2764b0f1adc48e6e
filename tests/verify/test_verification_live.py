"""``rowtide verify`` with real servers: every damage is found and named, and no healthy table is accused."""

from __future__ import annotations

import itertools
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtide.verify.topic import Topic, TopicRecord
from tests.support.mysql.random_values import LOOSE, RandomRows
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually
from tests.verify.damages import KINDS, MORE, ROWS, TABLES, Damages, fill, found, inserts, load, report, run

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    """A database with the tables that are damaged."""
    made: Database = request.getfixturevalue(f"{request.param}_db")
    fill(made)
    return made


@pytest.mark.parametrize("database", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)], indirect=True)
def test_every_damage_is_found_and_named_under_load(
    tmp_path: Path, database: Database, kafka: Kafka, topics: Topics
) -> None:
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    damages = Damages(database, topics, config, random.Random(11))
    with Worker(config) as worker:
        worker.streaming()
        with load(database):
            status, document = report(config, "--parallel", "3")
            assert status == 0, document
            assert sum(table["source_rows"] for table in document["tables"]) >= 3 * ROWS
            for name in KINDS:
                expected = damages.kinds[name]()
                status, document = report(config, "--parallel", "3")
                assert status == 1, (name, document)
                assert found(document) == {expected}, (name, document)
                damages.mend()
            assert report(config, "--parallel", "3")[0] == 0
        worker.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("database", ["mysql", "mariadb"], indirect=True)
def test_a_row_that_always_changes_is_not_a_difference(tmp_path: Path, database: Database, kafka: Kafka) -> None:
    """MyISAM has no views: a row is read as it is after the position at which the view was opened."""
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    database.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, n INT) ENGINE=MyISAM", "CREATE TABLE b (n INT) ENGINE=MyISAM",
        "CREATE TABLE c (id INT PRIMARY KEY, n INT)",
    )  # fmt: skip
    tables = [("--table", f"{database.name}.{name}") for name in "abc"]
    stop = threading.Event()

    def work() -> None:
        with database.server.connect(database.name) as connection, connection.cursor() as cursor:
            connection.autocommit(True)
            while not stop.is_set():
                for name in "abc":
                    cursor.execute(f"UPDATE {name} SET n = n + 1")

    threads = [threading.Thread(target=work) for _ in range(2)]
    with Worker(config).streaming() as worker:
        database.execute("INSERT INTO a VALUES (1, 0)", "INSERT INTO b VALUES (0)", "INSERT INTO c VALUES (1, 0)")
        try:
            for thread in threads:
                thread.start()
            for _ in range(4):
                status, document = report(config, *itertools.chain(*tables))
                assert status == 0, document
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        worker.stop()


@pytest.mark.nightly
def test_a_table_of_which_all_rows_differ_is_summarized(tmp_path: Path, mysql_db: Database, kafka: Kafka) -> None:
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    rows = ", ".join(f"({number}, 0)" for number in range(1, 20_001))
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)", f"INSERT INTO t VALUES {rows}")
    with Worker(config).streaming() as worker:
        mysql_db.execute(
            "SET sql_log_bin = 0", "UPDATE t SET n = 1 WHERE id BETWEEN 2001 AND 20000", "DELETE FROM t LIMIT 9"
        )
        status, document = report(config, "--max-differences", "10")
        worker.stop()
    (table,) = document["tables"]
    assert (status, table["more_differences"]) == (1, True)
    kinds = {kind: sum(one.get(kind, 0) for one in table["further_ranges"]) for kind in ("stale", "lost", "extra")}
    confirmed = [one["kind"] for one in table["differences"]]
    assert {kind: number + confirmed.count(kind) for kind, number in kinds.items()} == {
        "stale": 18_000, "lost": 0, "extra": 9,
    }  # fmt: skip
    assert (table["further_ranges"][0]["first"], table["further_ranges"][-2]["last"]["id"]) == ({"id": "2001"}, "20000")


TYPES = """
CREATE TABLE types (
    id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_general_ci, at TIMESTAMP(3) DEFAULT '2024-01-01 00:00:00',
    bin BINARY(4), f FLOAT, d DOUBLE, dec1 DECIMAL(40,10), big BIGINT UNSIGNED, yes BOOLEAN, bits BIT(13), one BIT(1),
    e ENUM('a','b,c','d'), s SET('x','y z'), t TIME(6), dt DATETIME(2), da DATE, y YEAR, j JSON, blb BLOB,
    txt TEXT CHARACTER SET utf8mb4, g GEOMETRY, c CHAR(5) CHARACTER SET utf16, z DATE, PRIMARY KEY (id, at, bin)
)"""
VALUES = (
    r"""('a', '2024-01-02 03:04:05.678', x'01020000', 16777217, 0.1, -1234567890.5, 9223372036854775807, 2, b'1010',
    b'1', 'b,c', 'x,y z', '-838:59:58.999999', '9999-12-31 23:59:59.99', '1000-01-01', 1901,
    '{"b": [1.0, 1e30, null], "a": "é", "c": 12345678901234567890}', x'00ff', 'é😀', ST_GeomFromText('POINT(1 2)'),
    'ab ', '0000-00-00')""",
    """('é', '1970-01-01 00:00:01', x'00000000', -0.0, 1e-300, 0, 0, 0, b'0', b'0', 'a', '', '00:00:00',
    '0001-01-01 00:00:00', '0069-12-31', 0, '[]', '', '', ST_GeomFromText('LINESTRING(0 0, 1 1)'), '', '2024-02-00')""",
    """('ü', '2038-01-19 03:14:07.999', x'ffffffff', 3.14159274, 1.7976931348623157e308, 9999999999.0000000001, 1, 1,
    b'1111111111111', NULL, NULL, NULL, '838:59:59', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
)


@pytest.mark.parametrize(
    ("values", "schemas"),
    [
        ("exact", "true"),
        pytest.param("exact", "false", marks=pytest.mark.nightly),
        pytest.param("debezium", "true", marks=pytest.mark.nightly),
    ],
)
def test_no_type_has_a_false_difference(
    values: str, schemas: str, tmp_path: Path, database: Database, kafka: Kafka
) -> None:
    """Each row comes from a snapshot, from an INSERT and from an UPDATE in the binlog.

    test_random_values_live.py does the same with millions of random values.
    """
    more = {f"{side}.converter.schemas.enable": schemas for side in ("key", "value")}
    given = MORE | more | {"database.include.list": database.name, "rowtide.values": values}
    given |= {"bigint.unsigned.handling.mode": "precise"}
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, given)
    loose = "SET SESSION sql_mode = '', time_zone = '+00:00'"
    database.execute(loose, TYPES, *(f"INSERT INTO types VALUES {row}" for row in VALUES))
    mixed = RandomRows(database.server.name, "mixed", seed=1)
    database.execute(LOOSE, mixed.table, *mixed.inserts(50))
    with Worker(config).streaming() as worker:
        database.execute(LOOSE, *mixed.inserts(50), *mixed.changes(10))
        database.execute(
            loose, "CREATE TABLE copies LIKE types", "INSERT INTO copies SELECT * FROM types",
            "UPDATE copies SET y = 2000, id = UPPER(id) WHERE f < 1",
            "ALTER TABLE copies ADD more INT DEFAULT 5, MODIFY y INT",
        )  # fmt: skip
        status, document = report(config)
        assert status == 2, document
        outcomes = {table["table"].partition(".")[2]: table["outcome"] for table in document["tables"]}
        assert outcomes == {
            "mixed": "equal",
            "orders": "equal",
            "parts": "equal",
            "types": "equal",
            "visits": "equal",
            "flags": "equal",
            "copies": "undecided",
        }
        copies = next(table for table in document["tables"] if table["table"].endswith(".copies"))
        assert copies["source_rows"] == len(VALUES)
        assert copies["not_compared"] == {"more": len(VALUES)}
        assert copies["differences"] == []
        database.execute(
            "SET SESSION sql_log_bin = 0", "UPDATE types SET bits = bits ^ 1 WHERE f > 4", "SET SESSION sql_log_bin = 1"
        )
        status, document = report(config, "--table", f"{database.name}.types")
        assert status == 1
        assert [(one["kind"], one["columns"]) for one in document["tables"][0]["differences"]] == [("stale", ["bits"])]
        status, document = report(config, "--table", f"{database.name}.types", "--columns", "f,d,j")
        assert status == 0, document
        worker.stop()


FORMS = (
    """CREATE TABLE forms (id INT PRIMARY KEY, f FLOAT, again INT, n INT, s VARCHAR(10) CHARACTER SET latin1,
        at DATETIME(3), e ENUM('a','b'), same VARCHAR(9))""",
    "CREATE TABLE ids (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE made (id INT PRIMARY KEY)",
)
ALTERED = (
    "ALTER TABLE forms MODIFY f DOUBLE",
    "ALTER TABLE forms DROP again, ADD again INT DEFAULT 9",
    "ALTER TABLE forms MODIFY n VARCHAR(10), MODIFY at DATETIME",
    "ALTER TABLE forms MODIFY s VARCHAR(10) CHARACTER SET ascii, MODIFY e ENUM('b','c'), ADD KEY (same)",
    "ALTER TABLE ids MODIFY id VARCHAR(10)",
)
OLD_FORM = {"f", "again", "at", "s", "e"}


@pytest.mark.parametrize("server", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def test_a_record_older_than_the_structure_is_not_a_difference(
    server: str, tmp_path: Path, request: pytest.FixtureRequest, kafka: Kafka
) -> None:
    database: Database = request.getfixturevalue(f"{server}_db")
    more = MORE | {"database.include.list": database.name, "rowtide.values": "debezium"}
    more |= {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, more)
    rows = [f"INSERT INTO forms VALUES ({i}, 0.1, 5, 7, 'é', '2024-01-01 00:00:00.6', 'a', 'x')" for i in range(4)]
    loose = "SET SESSION sql_mode = ''"
    database.execute(loose, *FORMS, *rows[:2], "INSERT INTO ids VALUES (1, 1)", "INSERT INTO made VALUES (1), (2)")
    with Worker(config).streaming() as worker:
        database.execute(loose, *rows[2:], "INSERT INTO ids VALUES (2, 2)", *ALTERED)
        database.execute("DROP TABLE made", FORMS[2], "INSERT INTO made VALUES (1)")
        status, document = report(config)
        tables = {table["table"].partition(".")[2]: table for table in document["tables"]}
        assert (status, found(document)) == (1, {("made", "extra", "2", "")}), "rows of an earlier table are gone"
        assert [tables[name]["outcome"] for name in ("forms", "ids")] == ["undecided", "undecided"], tables["forms"][
            "reason"
        ]
        assert {name: one["rows"] for name, one in tables["forms"]["old_form"].items()} == dict.fromkeys(OLD_FORM, 4), (
            tables["forms"]["reason"]
        )
        assert tables["forms"]["old_form"]["f"]["statement"] == ALTERED[0]
        assert tables["ids"]["old_form"]["id"]["rows"] == 4, "two keys on each side"
        assert "f cannot be compared" in run(config, "--table", f"{database.name}.forms", "--columns", "f").output
        assert report(config, "--table", f"{database.name}.forms", "--columns", "n,same")[0] == 0
        # What changed after the statements, and columns that they did not change, are compared.
        database.execute(
            "UPDATE forms SET n = 8 WHERE id < 2", "SET SESSION sql_log_bin = 0",
            "UPDATE forms SET again = 1 WHERE id = 1", "UPDATE forms SET same = 'y' WHERE id = 2",
            "SET SESSION sql_log_bin = 1",
        )  # fmt: skip
        status, document = report(config, "--table", f"{database.name}.forms")
        assert found(document) == {("forms", "stale", "1", "again"), ("forms", "stale", "2", "same")}, document
        assert document["tables"][0]["old_form"]["f"]["rows"] == 2
        worker.stop()


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE orders ADD more INT", "the table was altered during the run"),
        ("DROP TABLE orders", "the table was dropped or renamed during the run"),
    ],
)
def test_a_table_that_changes_during_the_run_is_not_decided(
    statement: str, reason: str, tmp_path: Path, mysql_db: Database, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    mysql_db.execute(TABLES[0], *inserts(1)[:1])
    read = Topic.new_records

    def changing(topic: Topic) -> Iterator[TopicRecord]:
        monkeypatch.undo()
        mysql_db.execute(statement)
        return read(topic)

    with Worker(config).streaming() as worker:
        monkeypatch.setattr(Topic, "new_records", changing)
        status, document = report(config)
        worker.stop()
    assert status == 2
    assert reason in document["tables"][0]["reason"]


@pytest.mark.nightly
def test_a_server_that_is_lost_leaves_a_result_for_the_tables_so_far(
    tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rowtide_stack import MySQL

    with MySQL() as server, server.database() as database:
        config = WorkerConfig(tmp_path, server, kafka.bootstrap, MORE | {"database.include.list": database.name})
        for name in "abc":
            database.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES (1)")
        read = Topic.new_records

        def losing(topic: Topic) -> Iterator[TopicRecord]:
            if topic.names == [config.topic(f"{database.name}.b")]:
                server.kill()
            return read(topic)

        with Worker(config).streaming():
            assert report(config)[0] == 0
            monkeypatch.setattr(Topic, "new_records", losing)
            result = run(config, "--json")
            server.start()
    document = json.loads(result.stdout)
    assert (result.exit_code, document["outcome"]) == (2, "undecided")
    assert document["error"]
    assert [table["outcome"] for table in document["tables"]] == ["equal", "undecided"]


@pytest.mark.nightly
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_rows_that_go_without_records_during_the_run_are_found(
    server: str, tmp_path: Path, request: pytest.FixtureRequest, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows were read before; the structure is the same in the end."""
    database: Database = request.getfixturevalue(f"{server}_db")
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, MORE | {"database.include.list": database.name})
    config.properties["skipped.operations"] = "t"
    create = "CREATE TABLE {} (id INT PRIMARY KEY, n INT)"
    changes = {
        "emptied": ("TRUNCATE emptied",),
        "made": ("DROP TABLE made", create.format("made"), "INSERT INTO made VALUES (1, 1)"),
        "swapped": ("RENAME TABLE swapped TO old, other TO swapped",),
    }
    database.execute(create.format("other"), "INSERT INTO other VALUES (1, 1), (2, 3)")
    for name in changes:
        database.execute(create.format(name), f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    read = Topic.new_records
    with Worker(config).streaming() as worker:
        for name, statements in changes.items():

            def changing(topic: Topic, statements: tuple[str, ...] = statements) -> Iterator[TopicRecord]:
                monkeypatch.setattr(Topic, "new_records", read)
                database.execute(*statements)
                return read(topic)

            monkeypatch.setattr(Topic, "new_records", changing)
            status, document = report(config, "--table", f"{database.name}.{name}")
            assert status == 1, document
            kinds = {(kind, key) for _, kind, key, _ in found(document)}
            assert (
                kinds
                == {
                    "emptied": {("extra", "1"), ("extra", "2")},
                    "made": {("extra", "2")},
                    "swapped": {("stale", "2")},
                }[name]
            ), document
        worker.stop()


def test_a_topic_with_records_of_another_table_is_not_decided(
    tmp_path: Path, mysql_db: Database, kafka: Kafka, topics: Topics
) -> None:
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    mysql_db.execute(*TABLES, *inserts(1))
    damages = Damages(mysql_db, topics, config, random.Random(1))
    with Worker(config).streaming() as worker:
        eventually(lambda: damages.records("orders", 1), "the row")
        record = damages.records("orders", 1)[-1]
        damages.send("parts", record.key, record.value)
        status, document = report(config)
        worker.stop()
    outcomes = {table["table"].partition(".")[2]: table["outcome"] for table in document["tables"]}
    assert (status, outcomes) == (2, {"orders": "equal", "parts": "undecided", "visits": "equal", "flags": "equal"})


CONVERTER = """
from rowtide.envelope.schema import STRING

class Prefixed:
    def converter_for(self, column, registration):
        if column.name == "code":
            registration.register(STRING, lambda value: f"k-{value}")
"""


def test_a_key_that_a_converter_changes_is_not_looked_up(
    tmp_path: Path, mysql_db: Database, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of such a key is found when it is read again, and not reported as extra."""
    (tmp_path / "prefixed.py").write_text(CONVERTER)
    monkeypatch.syspath_prepend(tmp_path)
    more = {"database.include.list": mysql_db.name, "converters": "c", "c.type": "python:prefixed.Prefixed"}
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | more)
    mysql_db.execute(
        "CREATE TABLE t (code VARCHAR(80) PRIMARY KEY, n INT)",
        *(f"INSERT INTO t VALUES ('c{i}', {i})" for i in range(5)),
    )
    with Worker(config).streaming() as worker:
        mysql_db.execute("SET sql_log_bin = 0", "UPDATE t SET n = 9 WHERE code = 'c3'")
        status, document = report(config)
        assert (status, found(document)) == (1, {("t", "stale", "k-c3", "n")}), document
        status, document = report(config, "--repair", "--channel", "http", "--web", f"http://127.0.0.1:{worker.port}")
        assert (status, found(document)) == (1, {("t", "stale", "k-c3", "n")}), document
        assert "converted" in document["tables"][0]["not_repaired"]
        worker.stop()


def test_what_cannot_be_decided_is_never_equal(tmp_path: Path, mysql_db: Database, kafka: Kafka) -> None:
    database, user = mysql_db, f"u{mysql_db.name[-8:]}"
    config = WorkerConfig(
        tmp_path, database.server, kafka.bootstrap, MORE | {"table.include.list": f"{database.name}.orders"}
    )
    database.execute(*TABLES, *inserts(1))
    status, document = report(config, "--timeout", "1")
    assert (status, document["tables"][0]["outcome"]) == (2, "undecided"), "no topic yet"
    assert "it has stored no position" in document["tables"][0]["reason"]
    with Worker(config).streaming() as worker:
        assert report(config)[0] == 0
        worker.stop()
    assert report(config)[0] == 0, "a stopped connector that has delivered all"
    database.execute(*inserts(2))
    status, document = report(config, "--timeout", "1")
    assert status == 2
    assert "the connector has not delivered the source's position" in document["tables"][0]["reason"]
    status, document = report(config, "--table", f"{database.name}.nothing")
    assert status == 2
    assert "the user lacks SELECT" in document["tables"][0]["reason"]
    database.execute(
        f"CREATE USER {user} IDENTIFIED BY 'pw'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
        f"GRANT INSERT ON {database.name}.orders TO {user}",
    )
    config.properties |= {"database.user": user, "database.password": "pw"}
    status, document = report(config)
    assert status == 2
    assert "Grant the user SELECT" in document["tables"][0]["reason"]
    config.properties["rowtide.values"] = "debezium"
    assert "spell some values in two ways" in run(config).output
    config.properties["database.password"] = "wrong"
    result = run(config)
    assert result.exit_code == 2
    database.execute(f"DROP USER {user}")
