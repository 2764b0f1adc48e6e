"""Where a start resumes if a signal has set another position, and how a wrong one is undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.delivery.file_offset_store import FileOffsetStore
from rowtide.connector.engine.start.demanded_position import WrongDemand, resume_position
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.binlog_position import with_restart_position
from rowtide.connector.signals.signal import Signal
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import CONNECTORS, address
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL

STORED = SourceOffset("binlog.000001", 4, carried={"rowtide_signal_kafka": 5})
IGNORE = {"rowtide.ignore.set.binlog.position": "true"}


def stored(file: str, pos: int, gtids: str | None = None) -> SourceOffset:
    """A stored position while a signal demands another one."""
    signal = Signal("s-1", "set-binlog-position", {}, "http")
    return replace(STORED, carried=with_restart_position(STORED.carried, SourceOffset(file, pos, gtids), signal))


def test_without_a_signal_the_start_resumes_at_the_stored_position() -> None:
    assert resume_position(from_properties(PROPERTIES), STORED) == (STORED, "")


def test_the_position_of_a_signal_can_be_ignored() -> None:
    offset, note = resume_position(from_properties({**PROPERTIES, **IGNORE}), stored("binlog.000009", 7))
    assert (offset.file, offset.pos) == (STORED.file, STORED.pos)
    assert "rowtide_signal_restart" not in (offset.carried or {})
    assert (offset.carried or {})["rowtide_signal_kafka"] == 5
    assert note.startswith("signal 's-1' (set-binlog-position) has set the position binlog.000009:7, which")


def test_of_a_position_by_gtids_no_file_is_shown() -> None:
    config = from_properties({**PROPERTIES, **IGNORE})
    _, note = resume_position(config, stored(STORED.file, STORED.pos, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7"))
    assert "has set the position GTIDs 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7, which" in note


def test_a_damaged_position_names_the_way_out() -> None:
    damaged = replace(STORED, carried={"rowtide_signal_restart": "{"})
    with pytest.raises(WrongDemand, match=r"is damaged.* start once with rowtide\.ignore\.set\.binlog\.position=true"):
        resume_position(from_properties(PROPERTIES), damaged)


def configured(server: MySQL | MariaDB) -> Configuration:
    kind = {"connector.class": CONNECTORS[server.name]}
    return from_properties({**PROPERTIES, **kind, **address(server), "database.server.id": "184078"})


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_position_that_cuts_a_transaction_is_refused(kind: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{kind}_db")
    server = database.server
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    file, before = binlog_end(server)
    database.execute("INSERT INTO t VALUES (1)")
    _, end = binlog_end(server)
    events = {str(row[2]): int(row[1]) for row in server.query(f"SHOW BINLOG EVENTS IN '{file}' FROM {before}")}
    begin = events["Gtid"]  # a BINLOG_CHECKPOINT of MariaDB may come before it
    config = configured(server)

    offset, note = resume_position(config, stored(file, begin))
    assert (offset.file, offset.pos) == (file, begin)
    assert note.endswith("the start resumes there, not at the stored position binlog.000001:4")
    assert resume_position(config, stored(file, end)).offset.pos == end
    for pos, reason in (
        (events["Table_map"], "is not the beginning of a transaction: the event there is Table_map"),
        (events["Table_map"] + 3, f"{file}:{events['Table_map'] + 3}"),
        (end + 1000, f"the binlog file {file} ends at "),
    ):
        with pytest.raises(WrongDemand, match=r"signal 's-1' .set-binlog-position. has set the position") as refused:
            resume_position(config, stored(file, pos))
        assert reason in str(refused.value)
        assert "To resume at the stored position binlog.000001:4 instead, start once with" in str(refused.value)


@pytest.mark.servers
def test_a_compressed_transaction_begins_at_its_gtid(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    server = mysql_db.server
    file, begin = binlog_end(server)
    mysql_db.execute("SET SESSION binlog_transaction_compression = ON", "INSERT INTO t VALUES (1)")
    events = {str(row[2]): int(row[1]) for row in server.query(f"SHOW BINLOG EVENTS IN '{file}' FROM {begin}")}
    assert resume_position(configured(server), stored(file, begin)).offset.pos == begin
    with pytest.raises(WrongDemand, match="the event there is Transaction_payload"):
        resume_position(configured(server), stored(file, events["Transaction_payload"]))


@pytest.mark.servers
def test_the_check_shows_the_position_of_a_signal(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    file, pos = binlog_end(mysql_db.server)
    properties = {
        "name": "engine",
        "topic.prefix": "engine",
        "database.server.id": "184079",
        "database.include.list": mysql_db.name,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "snapshot.mode": "recovery",
        **address(mysql_db.server),
    }
    path = tmp_path / "library.properties"
    path.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    store = FileOffsetStore(tmp_path / "offsets", "engine", "engine")

    def checked(*options: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["check", "--sink", "python", str(path), *options])
        return result.exit_code, result.output

    store.save(stored(file, pos))
    code, text = checked()
    assert code == 0, text
    assert "warning: rowtide.ignore.set.binlog.position: signal 's-1'" in text
    assert f"(set-binlog-position) has set the position {file}:{pos}: the start resumes there" in text
    store.save(stored("binlog.999999", 4))
    code, text = checked()
    assert code == 1
    assert "error: rowtide.ignore.set.binlog.position: signal 's-1'" in text
