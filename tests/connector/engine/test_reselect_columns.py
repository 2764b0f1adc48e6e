"""ReselectColumnsPostProcessor on real servers: what the stream lacks comes from the table as it is now."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine import reselect_columns
from rowtide.connector.engine.decoding.forms import RecordForm
from rowtide.connector.engine.decoding.processes import decoder_processes
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.envelope.post_processors import RESELECT
from rowtide.envelope.schema import INT32
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.testing import change
from tests.support.configurations import PROPERTIES
from tests.support.mysql.live_database import configured, streamed
from tests.support.mysql.semi_sync import SemiSync
from tests.support.processes.worker_process import eventually
from tests.support.recordings.golden import written

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL

pytestmark = pytest.mark.servers
ROW = {"id": INT32, "a": INT32.with_optional(True)}


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    server: MySQL | MariaDB = request.getfixturevalue(request.param)
    server.execute("FLUSH BINARY LOGS")  # the binlog from here has the database and its tables
    with server.database() as found:
        yield found


def records(database: Database, properties: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The values of all records since the last FLUSH BINARY LOGS, with the table as it is now."""
    config = configured(
        database, {"post.processors": "again", "again.type": RESELECT, "rowtide.values": "exact", **(properties or {})}
    )
    files = database.server.query("SHOW BINARY LOGS")
    start = SourceOffset(str(files[-1][0]), 4)
    flavor = Flavor.MARIADB if database.server.name == "mariadb" else Flavor.MYSQL
    steps = streamed(config, Tables(Server(flavor)), start, (str(files[-1][0]), int(files[-1][1])))
    outputs = [output for step in steps for output in step.outputs]
    return [
        json.loads(message.value)
        for message in written(outputs)
        if message.value is not None and '"op":"' in message.value
    ]


def test_null_and_omitted_values_are_those_of_the_table_now(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (k VARCHAR(20), d DATETIME(6), b VARBINARY(8), u BIGINT UNSIGNED, n INT, note TEXT, data BLOB, "
        "price DECIMAL(10,2), PRIMARY KEY (k, d, b, u))"
    )
    key = "'é''x', '2024-02-29 10:11:12.000001', x'00ff', 18446744073709551615"
    precise = {"bigint.unsigned.handling.mode": "precise"}
    database.execute(
        "SET SESSION binlog_row_image = 'NOBLOB'",
        f"INSERT INTO t VALUES ({key}, NULL, 'long', x'0102', NULL), ('other', NOW(), '', 1, 1, 'n', '', 2)",
        "UPDATE t SET n = 5 WHERE u > 1",
        "UPDATE t SET price = 12.5, note = 'longer' WHERE u > 1",
    )
    first, other, *updates = records(database, precise)
    expected = {"n": 5, "note": "longer", "data": "AQI=", "price": "BOI="}
    assert {name: first["after"][name] for name in expected} == expected | {"note": "long"}, "the insert had the text"
    assert other["after"]["n"] == 1
    for update in updates:
        assert update["op"] == "u"
        assert {name: update["after"][name] for name in expected} == expected
        assert update["before"]["note"] == "__debezium_unavailable_value", "it is not known any more"


def test_only_chosen_columns_are_read_again(database: Database) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    database.execute("INSERT INTO t VALUES (1, NULL, NULL)")
    database.execute("UPDATE t SET a = 1, b = 2")
    chosen = {"again.reselect.columns.include.list": rf"{database.name}\.t:B"}
    assert records(database, chosen)[0]["after"] == {"id": 1, "a": None, "b": 2}
    assert records(database, {"again.reselect.null.values": "false"})[0]["after"] == {"id": 1, "a": None, "b": None}


@pytest.mark.parametrize(
    ("ddl", "reason"),
    [
        ("DELETE FROM t", "1 of 1 rows no longer exist"),
        ("DROP TABLE t", "doesn't exist"),
        ("ALTER TABLE t MODIFY a VARCHAR(9)", "the type of column a has changed, or the column was dropped"),
        ("ALTER TABLE t DROP PRIMARY KEY", "it has no primary key"),
    ],
)
def test_what_cannot_be_read_stays_as_it_is_or_stops_the_connector(
    database: Database, ddl: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    database.execute("INSERT INTO t VALUES (1, NULL)")
    if not ddl.startswith("DELETE"):
        database.execute("UPDATE t SET a = 2")
    database.execute(ddl)
    assert records(database)[0]["after"] == {"id": 1, "a": None}
    assert f"again: columns of table {database.name}.t cannot be read again" in caplog.text
    assert reason in caplog.text
    with pytest.raises(SnapshotError, match=r"reselect\.error\.handling\.mode=fail"):
        records(database, {"again.reselect.error.handling.mode": "fail"})


def test_a_row_is_found_by_its_exact_key_in_every_form(database: Database) -> None:
    """Snapshots write some types in another way than the stream."""
    types = {
        "ts": ("TIMESTAMP(3)", "'2024-01-02 10:00:00.1'"),
        "number": ("DECIMAL(6,2)", "-12.5"),
        "bytes": ("BINARY(3)", "x'0100'"),
        "bool": ("BOOL", "1"),
        "big": ("BIGINT UNSIGNED", "18446744073709551615"),
        "text": ("VARCHAR(9) CHARACTER SET latin1", "'é '"),
    }
    for name, (column_type, value) in types.items():
        database.execute(f"CREATE TABLE {name} (k {column_type} PRIMARY KEY, v INT)")
        database.execute(f"INSERT INTO {name} VALUES ({value}, NULL)", f"UPDATE {name} SET v = 3")
    found = records(database, {"rowtide.values": "debezium", "decimal.handling.mode": "string"})
    assert [one["after"]["v"] for one in found] == [3] * len(found)
    assert len(found) == 2 * len(types)


def test_another_row_with_an_equal_key_is_never_read(database: Database) -> None:
    other = {
        "zero": ("DATE NOT NULL DEFAULT '2000-01-01'", "'0000-00-00'", "'2000-01-01'"),
        "partial": ("DATETIME", "'2024-00-00'", "'1970-01-01'"),
        "micros": ("DATETIME(6)", "'2024-01-02 10:00:00.000001'", "'2024-01-02 10:00:00'"),
        "letters": ("VARCHAR(4)", "'a'", "'A'"),
        "label": ("ENUM('a,b', 'a\\\\,b')", "'a,b'", "2"),
    }
    for name, (column_type, key, found) in other.items():
        database.execute(f"CREATE TABLE {name} (k {column_type} PRIMARY KEY, v INT)")
        database.execute(
            "SET SESSION sql_mode = ''",
            f"INSERT INTO {name} VALUES ({key}, NULL)",
            "SET SESSION sql_log_bin = 0",
            f"UPDATE {name} SET k = {found}, v = 666",
        )
    properties = {"rowtide.values": "debezium", "time.precision.mode": "connect"}
    assert [one["after"]["v"] for one in records(database, properties)] == [None] * len(other)


def test_a_key_of_another_scale_is_not_mistaken(database: Database) -> None:
    database.execute("CREATE TABLE t (k DECIMAL(6,2) PRIMARY KEY, v INT)")
    database.execute("INSERT INTO t VALUES (1.00, NULL), (0.10, NULL)", "ALTER TABLE t MODIFY k DECIMAL(6,1)")
    database.execute("SET SESSION sql_log_bin = 0", "DELETE FROM t WHERE k < 1", "UPDATE t SET v = 1")
    assert [one["after"]["v"] for one in records(database)] == [1, None], "1.00 is 1.0 now, and 0.10 was deleted"


def test_one_column_or_row_that_cannot_be_read_does_not_affect_others(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, k INT, a INT, b INT)")
    database.execute("INSERT INTO t VALUES (1, 1, NULL, 1), (2, 2, 2, NULL), (3, NULL, NULL, 3), (4, 4, NULL, 4)")
    database.execute("INSERT INTO t VALUES (5, 1, 5, 5)", "ALTER TABLE t DROP b")
    database.execute("SET SESSION sql_log_bin = 0", "UPDATE t SET a = 9")
    properties = {"message.key.columns": rf"{database.name}\.t:k", "again.reselect.use.event.key": "true"}
    assert [one["after"]["a"] for one in records(database, properties)] == [None, 2, None, 9, 5]
    assert "2 of 4 rows have a key that another row can also have; the type of column b has changed, or" in caplog.text


def test_types_that_only_the_statement_has_are_read_again(database: Database) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, yes BOOL, r REAL, j JSON)")
    database.execute("INSERT INTO t (id) VALUES (1)", "UPDATE t SET yes = 1, r = 1.5, j = '[]'")
    first, second = records(database, {"rowtide.values": "debezium"})
    assert first["after"] == second["after"] == {"id": 1, "yes": True, "r": 1.5, "j": "[]"}


def test_every_placeholder_is_replaced(database: Database) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, s TEXT NOT NULL, b BLOB NOT NULL)")
    database.execute("SET SESSION binlog_row_image = 'NOBLOB'", "INSERT INTO t VALUES (1, 1, 'text', 'blob')")
    database.execute("SET SESSION binlog_row_image = 'NOBLOB'", "UPDATE t SET n = 2")
    for mode, blob in (("bytes", "YmxvYg=="), ("hex", "626c6f62")):
        properties = {"unavailable.value.placeholder": "hex:ff00fe", "binary.handling.mode": mode}
        assert records(database, properties)[1]["after"] == {"id": 1, "n": 2, "s": "text", "b": blob}


def test_a_masked_key_is_never_looked_up(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute("CREATE TABLE t (id VARCHAR(9) PRIMARY KEY, a INT)")
    database.execute("INSERT INTO t VALUES ('abcdef', NULL), ('abc', 1)")
    found = records(database, {"column.truncate.to.3.chars": rf"{database.name}\.t\.id"})
    assert found[0]["after"]["a"] is None, "not the row abc"
    assert "column id of the key is masked, truncated or converted" in caplog.text


def test_tables_without_a_key_are_reported_once(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (NULL)", "INSERT INTO t VALUES (NULL)")
    found = records(database, {"again.reselect.error.handling.mode": "fail"})
    assert [one["after"] for one in found] == [{"a": None}] * 2
    assert caplog.text.count("it has no primary key") == 1


def test_the_key_of_the_record_can_be_used(database: Database) -> None:
    database.execute("CREATE TABLE t (code INT NOT NULL, a INT)")
    database.execute("INSERT INTO t VALUES (7, NULL)")
    database.execute("UPDATE t SET a = 3")
    properties = {"message.key.columns": rf"{database.name}\.t:code", "again.reselect.use.event.key": "true"}
    assert records(database, properties)[0]["after"] == {"code": 7, "a": 3}


def test_without_a_connection_the_stream_begins_again(mysql_db: Database) -> None:
    config = configured(
        mysql_db,
        {"post.processors": "again", "again.type": RESELECT, "database.port": "1", "database.ssl.mode": "disabled"},
    )
    transforms = pipeline_settings(config, "run").transforms
    assert transforms is not None
    record = change(ROW, after={"id": 1, "a": None}, key=("id",), topic=f"live.{mysql_db.name}.t")
    with pytest.raises(StreamBroken, match=r"post\.processors: again"):
        transforms.processors[0].apply([record])


def test_rows_are_decoded_in_the_process_of_the_post_processors() -> None:
    properties = {"post.processors": "again", "again.type": RESELECT}
    settings = pipeline_settings(from_properties({**PROPERTIES, **properties}), "run")
    assert decoder_processes(2, settings, RecordForm()) is None


def test_a_transaction_that_is_in_the_binlog_but_not_visible_is_waited_for(database: Database) -> None:
    server, semi_sync = database.server, SemiSync(database.server)
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, note TEXT)", "INSERT INTO t VALUES (1, 1, 'old')")
    before = server.query("SHOW BINARY LOGS")[-1]
    semi_sync.set(timeout=1500, wait_point="AFTER_SYNC", enabled="ON")  # no replica acknowledges: the commit waits
    statements = ["SET SESSION binlog_row_image = 'NOBLOB'", "BEGIN", "UPDATE t SET note = 'new'", "UPDATE t SET a = 2"]
    client = threading.Thread(target=database.execute, args=(*statements, "COMMIT"))
    client.start()
    try:
        eventually(lambda: server.query("SHOW BINARY LOGS")[-1] != before, "the transaction is in the binlog")
        assert [one["after"]["note"] for one in records(database)] == ["old", "new", "new"]
    finally:
        client.join()
        semi_sync.set(enabled="OFF")


@pytest.mark.parametrize("by_event_key", ["false", pytest.param("true", marks=pytest.mark.nightly)])
def test_without_gtids_a_locked_row_is_waited_for(
    database: Database, by_event_key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A transaction keeps its rows locked until others see them; other rows of the event are not."""
    monkeypatch.setattr(reselect_columns, "_COMMIT_S", 1)
    options = {"again.type": RESELECT, "again.reselect.use.event.key": by_event_key}
    config = configured(database, {"post.processors": "again", **options})
    transforms = pipeline_settings(config, "run").transforms
    assert transforms is not None
    (processor,) = transforms.processors
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
    with database.connect() as writer, writer.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE t SET a = a + 1 WHERE id = 1")
        cursor.execute("INSERT INTO t VALUES (4, 40)")
        given = [
            change(ROW, after={"id": number, "a": None}, key=("id",), topic=f"live.{database.name}.t")
            for number in (2, 1, 4, 9)
        ]
        commit = threading.Timer(0.3, writer.commit)
        commit.start()
        processor.apply(given)
        commit.join()
        assert [one.value["after"]["a"] for one in given] == [20, 11, 40, None]
        assert "1 of 4 rows no longer exist" in caplog.text
        cursor.execute("BEGIN")
        cursor.execute("DELETE FROM t WHERE id = 1")
        given = [change(ROW, after={"id": n, "a": None}, key=("id",), topic=f"live.{database.name}.t") for n in (2, 1)]
        processor.apply(given)
        assert [one.value["after"]["a"] for one in given] == [20, None]
        assert "Lock wait timeout exceeded" in caplog.text
    transforms.close()
