"""``rowtide canal`` with real servers: every change once and in order, over stops and new positions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtide.canal.instance.storage import META, OWN
from tests.support.canal.client import Change, changes, connected
from tests.support.canal.server import configured, running, until

if TYPE_CHECKING:
    from rowtide_stack import Database

    from rowtide.canal.service import CanalService
    from rowtide.tcp_server import Address

pytestmark = pytest.mark.servers


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    return found


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Address, CanalService]]:
    """A server that reads."""
    with running(folder) as (address, service):
        until(lambda: all(instance.reading for instance in service.instances.values()))
        yield address, service


def read(address: Address, wanted: int, *, ack: bool = True) -> list[Change]:
    """Read until so many rows have come."""
    found: list[Change] = []
    deadline = time.monotonic() + 180
    with connected(address, "example") as client:
        while sum(not change.sql for change in found) < wanted and time.monotonic() < deadline:
            number, entries = client.get()
            found += changes(entries)
            if ack and number != -1:
                client.ack(number)
        assert not ack or client.get(timeout_ms=-1)  # the server has handled the acknowledgement
    return found


def ids(found: list[Change]) -> list[str | None]:
    return [change.after["id"] for change in found if not change.sql]


def test_every_change_comes_once_and_in_order_over_stops(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    folder = configured(tmp_path, database)
    with serving(folder) as (address, _):
        with connected(address, "example"):
            pass
        database.execute("INSERT INTO t VALUES (1, 'a'), (2, NULL)", "UPDATE t SET name = 'b' WHERE id = 2")
        found = read(address, 3)
        assert [change[:4] for change in found if not change.sql] == [
            (1, "t", {}, {"id": "1", "name": "a"}),
            (1, "t", {}, {"id": "2", "name": None}),
            (2, "t", {"id": "2", "name": None}, {"id": "2", "name": "b"}),
        ]
        database.execute("INSERT INTO t VALUES (3, 'c')")
        assert ids(read(address, 1, ack=False)) == ["3"]
    assert '"journalName"' in (tmp_path / "example" / META).read_text()
    database.execute("ALTER TABLE t ADD COLUMN price DECIMAL(9,2)", "INSERT INTO t VALUES (4, 'd', 1.5)")
    with serving(folder) as (address, _):
        found = read(address, 2)
    assert ids(found) == ["3", "4"]
    assert found[-1].after == {"id": "4", "name": "d", "price": "1.50"}
    assert [change.sql for change in found if change.sql and change.kind == 5] == [
        "ALTER TABLE t ADD COLUMN price DECIMAL(9,2)"
    ]


def test_a_position_of_canal_itself_is_taken_over(database: Database, tmp_path: Path) -> None:
    """Without rowtide's own file, as after Canal: the event at the position is done."""
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    folder = configured(tmp_path, database)
    with serving(folder) as (address, _):
        with connected(address, "example"):
            pass
        database.execute("INSERT INTO t VALUES (1)")
        assert ids(read(address, 1)) == ["1"]
    (tmp_path / "example" / OWN).unlink()
    database.execute("INSERT INTO t VALUES (2)")
    with serving(folder) as (address, _):
        assert ids(read(address, 1)) == ["2"]


def test_a_position_that_canal_has_stored_with_the_name_of_the_file_before(
    mariadb_db: Database, tmp_path: Path
) -> None:
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    before = mariadb_db.query("SHOW BINARY LOGS")[-1][0]
    mariadb_db.execute("FLUSH BINARY LOGS")
    folder = configured(tmp_path, mariadb_db)
    with serving(folder) as (address, _):
        with connected(address, "example"):
            pass
        mariadb_db.execute("INSERT INTO t VALUES (1)")
        assert ids(read(address, 1)) == ["1"]
    (tmp_path / "example" / OWN).unlink()
    meta = tmp_path / "example" / META
    stored = json.loads(meta.read_text())
    stored["clientDatas"][0]["cursor"]["postion"] |= {"journalName": before, "gtid": ""}
    meta.write_text(json.dumps(stored))
    mariadb_db.execute("INSERT INTO t VALUES (2)")
    with serving(folder) as (address, _):
        assert ids(read(address, 1)) == ["2"]


def test_rows_after_a_statement_that_canal_has_read_have_the_structure_of_the_present(
    database: Database, tmp_path: Path
) -> None:
    """The row events fit both structures, so only the present one shows the names that columns have."""
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, width INT, height INT)")
    folder = configured(tmp_path, database)
    with serving(folder) as (address, _):
        with connected(address, "example"):
            pass
        database.execute("INSERT INTO t VALUES (1, 2, 3)")
        assert ids(read(address, 1)) == ["1"]
    database.execute("ALTER TABLE t CHANGE width depth INT, CHANGE height width INT")
    (version,) = database.query("SELECT VERSION()")[0]
    mariadb = "MariaDB" in version
    file, position, *_ = database.query("SHOW MASTER STATUS" if mariadb else "SHOW BINARY LOG STATUS")[0]
    (gtids,) = database.query(f"SELECT @@GLOBAL.{'gtid_binlog_pos' if mariadb else 'gtid_executed'}")[0]
    meta = tmp_path / "example" / META
    stored = json.loads(meta.read_text())
    stored["clientDatas"][0]["cursor"]["postion"] |= {"journalName": file, "position": int(position), "gtid": gtids}
    meta.write_text(json.dumps(stored))
    database.execute("INSERT INTO t VALUES (4, 5, 6)")
    with serving(folder) as (address, _):
        found = read(address, 1)
    assert found[-1].after == {"id": "4", "depth": "5", "width": "6"}


def test_a_client_that_has_acknowledged_nothing_loses_nothing_by_a_restart(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    folder = configured(tmp_path, database)
    with serving(folder) as (address, _), connected(address, "example"):
        database.execute("INSERT INTO t VALUES (1)")
    with serving(folder) as (address, _):
        assert ids(read(address, 1)) == ["1"]


def test_beginning_at_a_time(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    time.sleep(1.1)
    (now,) = database.query("SELECT UNIX_TIMESTAMP()")[0]
    time.sleep(1.1)
    database.execute("INSERT INTO t VALUES (2)")
    folder = configured(tmp_path, database, **{"canal.instance.master.timestamp": f"{now}000"})
    with serving(folder) as (address, _):
        assert ids(read(address, 1)) == ["2"]


def test_destinations_appear_change_and_vanish(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)")
    folder = configured(tmp_path, database)
    text = (folder / "example" / "instance.properties").read_text()
    with serving(folder) as (_, service):
        (folder / "second").mkdir()
        (folder / "second" / "instance.properties").write_text(text)
        until(lambda: "second" in service.instances and service.instances["second"].reading)
        first = service.instances["example"]
        (folder / "example" / "instance.properties").write_text(text + "canal.instance.gtidon=maybe\n")
        time.sleep(2)
        assert service.instances["example"] is first
        (folder / "example" / "instance.properties").write_text(text + "canal.instance.get.ddl.isolation=true\n")
        until(lambda: service.instances.get("example") not in (None, first) and service.instances["example"].reading)
        (folder / "second" / "instance.properties").unlink()
        until(lambda: "second" not in service.instances)


def test_a_full_store_waits_for_its_client_and_loses_nothing(database: Database, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, filler VARCHAR(200))")
    folder = configured(
        tmp_path,
        database,
        **{"canal.instance.memory.buffer.size": "8", "canal.instance.memory.batch.mode": "ITEMSIZE"},
    )
    with serving(folder) as (address, service):
        with connected(address, "example"):
            pass
        for number in range(60):
            database.execute(f"INSERT INTO t VALUES ({number}, REPEAT('x', 200))")
        until(lambda: service.instances["example"].destination.store.unread >= 8)
        assert ids(read(address, 60)) == [str(number) for number in range(60)]
