"""A connector whose position the server has purged continues from a mirror, and then from the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtide
from rowtide.connector.errors import PositionPurged
from tests.support.connector_properties import connector_properties
from tests.support.mysql.live_database import purge_binlogs
from tests.support.processes.mirror_process import mirroring

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

pytestmark = pytest.mark.servers


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[SqlServer]:
    """Its own server, because its binlog is purged."""
    from rowtide_stack import MariaDB, MySQL

    without = {"gtid_mode": None, "enforce_gtid_consistency": None}
    kind = MariaDB if request.param == "mariadb" else MySQL
    with kind(without if request.param.endswith("GTIDs") else {}) as found:
        found.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
        yield found


def insert(server: SqlServer, *keys: int) -> None:
    """Insert rows, each in its own transaction and binlog file."""
    for key in keys:
        server.execute(f"INSERT INTO d.t VALUES ({key})", "FLUSH BINARY LOGS")


def keys(engine: rowtide.Engine, count: int) -> list[int]:
    """The keys of the next changes."""
    found: list[int] = []
    while len(found) < count:
        batch = engine.get(100, timeout=180)
        assert batch is not None, found
        found += [change.after["id"] for change in batch if change.after is not None]
        batch.ack()
    return found


def mirrored(server: SqlServer, folder: Path) -> None:
    """Bring the mirror up to date."""
    with mirroring(server, folder, "--once") as process:
        assert process.wait() == 0, process.log


@pytest.mark.parametrize("server", ["mysql", "mariadb", "mysql without GTIDs"], indirect=True)
def test_what_the_server_has_purged_comes_from_the_mirror_and_the_rest_from_the_server(
    server: SqlServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    history = {"schema.history.internal.file.filename": str(tmp_path / "history.jsonl")}
    properties = connector_properties("m", server, "d", history)
    properties |= {"offset.storage.file.filename": str(tmp_path / "offsets.dat")}
    with rowtide.Engine(properties) as engine:
        insert(server, 1)
        assert keys(engine, 1) == [1]
    insert(server, 2, 3)
    mirrored(server, tmp_path)
    server.execute("ALTER TABLE d.t ADD COLUMN v INT")
    server.execute("INSERT INTO d.t VALUES (4, 4)", "FLUSH BINARY LOGS")
    mirrored(server, tmp_path)
    purge_binlogs(server)
    server.execute("INSERT INTO d.t VALUES (5, 5)")
    with pytest.raises(PositionPurged), rowtide.Engine(properties) as engine:
        engine.get(1, timeout=180)
    with rowtide.Engine({**properties, "rowtide.mirror.directory": str(tmp_path / "mirror")}) as engine:
        assert keys(engine, 4) == [2, 3, 4, 5]
        server.execute("INSERT INTO d.t VALUES (6, 6)")
        assert keys(engine, 1) == [6]
    assert "The following events are read from the mirror" in caplog.text
    server.execute("INSERT INTO d.t VALUES (7, 7)", "FLUSH BINARY LOGS")
    purge_binlogs(server)
    with (
        pytest.raises(PositionPurged, match=r"the mirror .* (ends there, too|does not have)"),
        rowtide.Engine({**properties, "rowtide.mirror.directory": str(tmp_path / "mirror")}) as engine,
    ):
        engine.get(1, timeout=180)


@pytest.mark.parametrize("server", ["mysql"], indirect=True)
def test_a_mirror_that_grows_is_read_instead_of_the_server(server: SqlServer, tmp_path: Path) -> None:
    history = {"schema.history.internal.file.filename": str(tmp_path / "history.jsonl")}
    properties = connector_properties("m", server, "d", history)
    properties |= {
        "offset.storage.file.filename": str(tmp_path / "offsets.dat"),
        "rowtide.mirror.directory": str(tmp_path / "mirror"),
        "rowtide.mirror.read": "always",
    }
    insert(server, 1)
    mirrored(server, tmp_path)
    with mirroring(server, tmp_path), rowtide.Engine(properties) as engine:
        assert keys(engine, 1) == [1]
        for key in (2, 3, 4):
            insert(server, key)
            assert keys(engine, 1) == [key]
        readers = server.query("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        assert len(readers) == 1, "only the mirror reads from the server"


@pytest.mark.parametrize("server", ["mariadb", "mysql without GTIDs"], indirect=True)
def test_a_prepared_xa_transaction_that_the_server_has_purged_comes_from_the_mirror(
    server: SqlServer, tmp_path: Path
) -> None:
    history = {"schema.history.internal.file.filename": str(tmp_path / "history.jsonl")}
    properties = connector_properties("m", server, "d", history)
    properties |= {
        "offset.storage.file.filename": str(tmp_path / "offsets.dat"),
        "rowtide.mirror.directory": str(tmp_path / "mirror"),
    }
    with rowtide.Engine(properties) as engine:
        insert(server, 1)
        assert keys(engine, 1) == [1]
        with server.connect("d") as connection, connection.cursor() as cursor:
            for statement in ("START 'x'", "END 'x'", "PREPARE 'x'"):
                cursor.execute(f"XA {statement}")
                if statement.startswith("START"):
                    cursor.execute("INSERT INTO t VALUES (2)")
        insert(server, 3)
        assert keys(engine, 1) == [3]
    mirrored(server, tmp_path)
    purge_binlogs(server)
    server.execute("XA COMMIT 'x'")
    with rowtide.Engine(properties) as engine:
        assert keys(engine, 1) == [2]
