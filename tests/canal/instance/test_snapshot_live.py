"""An instance that begins with a snapshot: all rows, with the texts of the stream, and no gap after them."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.canal.configuration.load import read_folder
from rowtide.canal.entries.sink import EntrySink
from rowtide.canal.instance.instance import Instance
from rowtide.canal.instance.kafka import KafkaInstance
from rowtide.canal.instance.snapshot import EntrySnapshot
from rowtide.canal.instance.source import CanalSource
from rowtide.canal.instance.storage import FolderStorage
from tests.support.canal.golden import flattened
from tests.support.canal.server import until
from tests.support.kafka.topic_tools import Topics

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

COLUMNS = """
    id BIGINT UNSIGNED PRIMARY KEY, ti TINYINT UNSIGNED, si SMALLINT, mi MEDIUMINT ZEROFILL, b1 BOOL, d DECIMAL(20,5),
    f FLOAT, db DOUBLE, c CHAR(5), v VARCHAR(30) CHARACTER SET latin1, t TEXT, bi BINARY(6), vb VARBINARY(6), bl BLOB,
    e ENUM('x','y,z','é'), s SET('a','b','c'), bt BIT(12), da DATE, dt DATETIME(3), ts TIMESTAMP(6) NULL, tm TIME(2),
    y YEAR, j JSON, g POINT, e2 ENUM('a', '')
"""
ROWS = r"""
    (18446744073709551615, 200, -3, 7, TRUE, -1234567.89010, 1.5, 0.1, 'ab ', 'café', '日本', 'a\0b', 'a\0', X'00FF80',
    'y,z', 'a,c', b'101000000001', '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.123456', '-12:00:01.5',
    1999, '{"k": [1, null, "x"]}', POINT(1, -2), 0),
    (1, 0, 32767, NULL, FALSE, 0, NULL, -1e100, '', '', '', '', '', '', 'x', '', 0, '0001-01-01', NULL, NULL,
    '00:00:00', 0, NULL, NULL, '')
"""
LOOSE = "SET SESSION sql_mode = ''"  # an ENUM may have no label


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    return found


def configured(folder: Path, database: Database, server: str = "", more: str = "") -> Path:
    (folder / "d").mkdir(exist_ok=True)
    (folder / "canal.properties").write_text(server)
    (folder / "d" / "instance.properties").write_text(
        f"canal.instance.master.address={database.server.host}:{database.server.port}\n"
        f"canal.instance.dbUsername={database.server.user}\ncanal.instance.dbPassword={database.server.password}\n"
        f"canal.instance.filter.regex={database.name}\\\\..*\ncanal.instance.snapshot=initial\n{more}"
    )
    return folder


def started(folder: Path) -> Instance:
    instance = Instance(read_folder(folder, {}).instances["d"], FolderStorage(folder / "d", "d"))
    instance.start()
    instance.destination.subscribe("1001")
    return instance


Entries = list[dict[str, Any]]


def read(instance: Instance, rows: int, *, ack: bool = True) -> Entries:
    """Read until so many rows and the end of their transaction have come."""
    found: Entries = []
    deadline = time.monotonic() + 90
    while count(found) < rows or found[-1]["entryType"] != 3:
        assert time.monotonic() < deadline
        batch = instance.destination.get("1001", 100)
        found += [flattened(entry) for entry in batch.entries]
        if ack:
            instance.destination.ack("1001", batch.id)
        elif count(found):
            return found
        time.sleep(0.05)
    return found


def count(entries: Entries) -> int:
    return sum(int(entry["header.props.0"].partition("\x12")[2][1:]) for entry in entries if is_row(entry))


def is_row(entry: dict[str, Any]) -> bool:
    return "header.props.0" in entry and "rowsCount" in entry["header.props.0"]


def columns(entries: Entries, table: str) -> dict[str, dict[str, Any]]:
    """All columns of the rows of a table, by their first value."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for entry in entries:
        if is_row(entry) and entry["header.tableName"] == table:
            for path, value in entry.items():
                part, _, rest = path.partition(".after.")
                if part.startswith("rows.") and rest:
                    found[entry[f"{part}.after.0.value"]][rest] = value
    return found


def test_rows_have_the_texts_of_the_stream_which_continues_after_them(database: Database, tmp_path: Path) -> None:
    name = "transaction"  # as the topic of Debezium's transaction metadata
    database.execute(LOOSE, f"CREATE TABLE {name} ({COLUMNS})", f"INSERT INTO {name} VALUES {ROWS}")
    instance = started(configured(tmp_path, database))
    snapshot = read(instance, 2)
    assert [entry["entryType"] for entry in snapshot if not is_row(entry)] == [1, 3]
    assert all("initial" in str(entry.items()) for entry in snapshot)
    database.execute(LOOSE, f"CREATE TABLE u LIKE {name}", f"INSERT INTO u SELECT * FROM {name}")
    stream = read(instance, 2)
    assert len(columns(snapshot, name)) == 2
    for key, row in columns(snapshot, name).items():
        found = columns(stream, "u")[key]
        assert {
            path: (row.get(path), found.get(path)) for path in row | found if row.get(path) != found.get(path)
        } == {}
    assert instance.stop()
    instance = started(tmp_path)
    database.execute("DELETE FROM u WHERE id > 1")
    (deleted,) = [entry for entry in read(instance, 1) if is_row(entry)]
    assert deleted["content.eventType"] == 3
    assert instance.stop()


def test_a_table_that_is_created_while_the_snapshot_begins_is_in_it(mysql_db: Database, tmp_path: Path) -> None:
    settings = read_folder(configured(tmp_path, mysql_db), {}).instances["d"]
    snapshot = EntrySnapshot(CanalSource.connect(settings), EntrySink(settings.filter, settings.kinds))
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    assert len(list(snapshot.outputs())) > 0
    assert snapshot.rows == 2


def test_a_snapshot_that_was_not_read_to_its_end_begins_again(
    mysql_db: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)")
    for number in range(30):
        mysql_db.execute(f"INSERT INTO t VALUES ({number}, REPEAT('x', 3000))")
    folder = configured(tmp_path, mysql_db)
    instance = started(folder)
    read(instance, 30, ack=False)
    assert instance.stop()
    instance = started(folder)
    assert len(columns(read(instance, 30), "t")) == 30
    assert "was not completed; it starts over" in caplog.text
    assert instance.stop()


def test_rows_written_meanwhile_are_in_the_snapshot_or_behind_it(
    mysql_db: Database, topics: Topics, tmp_path: Path
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    topic = topics.new()
    servers = topics.client["bootstrap.servers"]
    settings = read_folder(
        configured(
            tmp_path,
            mysql_db,
            f"canal.serverMode=kafka\nkafka.bootstrap.servers={servers}\ncanal.mq.exactlyOnce=true\n"
            f"canal.mq.offsetsTopic={topic}-offsets\n",
            f"canal.mq.topic={topic}\n",
        ),
        {},
    ).instances["d"]
    assert settings.kafka is not None
    written = 0
    stop = threading.Event()

    def write() -> None:
        nonlocal written
        with mysql_db.server.connect(mysql_db.name) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute(f"INSERT INTO t VALUES ({written})")
                connection.commit()
                written += 1

    writing = threading.Thread(target=write)
    writing.start()
    until(lambda: written > 0)
    instance = KafkaInstance(settings, settings.kafka, FolderStorage(tmp_path / "d", "d"), 0.1)
    instance.start()
    until(lambda: instance.reading)
    read_from = written
    until(lambda: written > read_from + 10)
    stop.set()
    writing.join()

    def found() -> tuple[set[int], set[int]]:
        """The ids in the snapshot, and those in the stream."""
        both: tuple[set[int], set[int]] = set(), set()
        for record in topics.read(topic):
            message = json.loads(record.value or b"")
            both[not record.headers].update(int(row["id"]) for row in message["data"] or ())
        return both

    until(lambda: set().union(*found()) == set(range(written)))
    snapshot, stream = found()
    assert snapshot
    assert stream
    assert max(snapshot) < written - 1
    assert instance.stop()
