"""Where an instance begins: at an event, in the file that has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtide.canal.configuration.load import read_instance
from rowtide.canal.instance.client_positions import Resumption
from rowtide.canal.instance.positions import CanalPosition
from rowtide.canal.instance.source import CanalSource, find_start, located
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset
from tests.support.canal.server import configured
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers
TABLE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(200))"


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    found.execute(TABLE)
    return found


def source(folder: Path, database: Database, **more: str) -> CanalSource:
    configured(folder, database, **more)
    return CanalSource.connect(read_instance(folder, "example"))


def written(database: Database, lengths: range) -> tuple[str, dict[int, str]]:
    """Write transactions to a new binlog file: its name, and its types of events by their positions."""
    texts = [f"INSERT INTO t (name) VALUES ('{'x' * length}')" for length in lengths]
    database.execute("FLUSH BINARY LOGS", *texts)
    file, _ = binlog_end(database.server)
    return file, {int(row[1]): str(row[2]) for row in database.query(f"SHOW BINLOG EVENTS IN '{file}'")}


def stored(file: str, pos: int) -> Resumption:
    """A position of Canal."""
    return Resumption(SourceOffset(file, pos, ts_sec=7), CanalPosition(file, pos, 1, 7000))


def test_an_event_that_canal_has_stored_with_the_name_of_the_file_before(
    mariadb_db: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mariadb_db.execute(TABLE)
    before, old = written(mariadb_db, range(50, 54))
    file, new = written(mariadb_db, range(7))
    ends = [pos for pos, kind in new.items() if kind == "Xid"]
    missing = next(pos for pos in ends if pos not in old)
    found = source(tmp_path, mariadb_db)
    assert located(found, stored(before, missing)) == stored(file, missing)
    assert f"Canal has stored {before}:{missing}, which is a position in {file}" in caplog.text
    assert located(found, stored(file, ends[0])) == stored(file, ends[0])


def test_an_event_that_is_behind_the_end_of_the_file_before(mariadb_db: Database, tmp_path: Path) -> None:
    mariadb_db.execute(TABLE)
    before, old = written(mariadb_db, range(1))
    file, new = written(mariadb_db, range(20))
    last = max(pos for pos, kind in new.items() if kind == "Xid")
    assert last > max(old) + 100
    assert located(source(tmp_path, mariadb_db), stored(before, last)) == stored(file, last)


def test_the_name_of_a_file_of_mysql_is_right(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute(TABLE)
    before, _ = written(mysql_db, range(1))
    _, new = written(mysql_db, range(20))
    last = max(pos for pos, kind in new.items() if kind == "Xid")
    with pytest.raises(
        OffsetError, match=rf"the stored position {before}:{last} .*is not the position of an event there"
    ):
        located(source(tmp_path, mysql_db), stored(before, last))


def test_rows_at_the_position_are_not_what_canal_has_stored(database: Database, tmp_path: Path) -> None:
    file, found = written(database, range(3))
    rows = next(pos for pos, kind in found.items() if kind.startswith("Write_rows"))
    with pytest.raises(OffsetError, match=rf"stored position {file}:{rows} .*is not the position of an event there"):
        located(source(tmp_path, database), stored(file, rows))


def test_a_position_of_no_event_is_an_error_with_the_way_out(database: Database, tmp_path: Path) -> None:
    file, _ = written(database, range(3))
    with pytest.raises(OffsetError, match=rf"the stored position {file}:5 \(meta.dat, .*such as position 4"):
        located(source(tmp_path, database), stored(file, 5))


def test_what_is_not_a_position_of_canal_stays_as_it_is(database: Database, tmp_path: Path) -> None:
    own = Resumption(SourceOffset(binlog_end(database.server)[0], 5))
    purged = stored("binlog.000000", 5)
    found = source(tmp_path, database)
    assert located(found, own) == own
    assert located(found, purged) == purged


def test_a_configured_position_is_that_of_an_event(database: Database, tmp_path: Path) -> None:
    file, found = written(database, range(1))

    def begun(pos: int) -> CanalSource:
        prefix = "canal.instance.master."
        return source(tmp_path / str(pos), database, **{f"{prefix}journal.name": file, f"{prefix}position": str(pos)})

    assert find_start(begun(max(found))) == Resumption(SourceOffset(file, max(found)))
    with pytest.raises(
        OffsetError, match=rf"journal.name={file} and position=5: no event begins at {file}:5 .*4 is the"
    ):
        find_start(begun(5))
