"""Mirrors of real servers: the files are those of the server, whatever happens to either."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.source.files.folder import binlog_files
from rowtide.connector.source.mirror.binlog_copy import without_in_use
from tests.support.processes.mirror_process import MirrorProcess, mirroring
from tests.support.processes.worker_process import eventually

if TYPE_CHECKING:
    from rowtide_stack import MariaDB, MySQL, SqlServer

pytestmark = pytest.mark.servers

KILLS = 30 if os.environ.get("ROWTIDE_CAMPAIGN") else 3


def data_of(server: SqlServer) -> Path:
    """The folder with the server's binlog files."""
    runner = server._runner
    folder = getattr(runner, "folder", None)
    if folder is None:
        pytest.skip("the files of a server in a container cannot be read")
    return Path(folder) / "data"


def listed(server: SqlServer) -> list[str]:
    """The names of the server's binlog files."""
    return [str(row[0]) for row in server.query("SHOW BINARY LOGS")]


def assert_equal(server: SqlServer, mirror: Path) -> None:
    """The mirror has the server's files, byte for byte."""
    for name in listed(server):
        assert (mirror / name).read_bytes() == (data_of(server) / name).read_bytes(), name


def write(server: SqlServer, database: str, rows: int) -> None:
    """Insert rows in transactions of several sizes."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for number in range(rows):
            cursor.execute("INSERT INTO t (v) VALUES (REPEAT(%s, %s))", (f"{number}-", number * 37 % 400))


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> SqlServer:
    """Each of the shared servers."""
    found: MySQL | MariaDB = request.getfixturevalue(request.param)
    return found


def wait_for_start(process: MirrorProcess) -> None:
    """Wait until a process mirrors; the log is that of all processes before it, too."""
    eventually(lambda: process.ended or process.own_log.count(": mirroring ") > 0, "the mirror")
    assert not process.ended, process.log


def mirror_all(server: SqlServer, folder: Path, *options: str) -> None:
    """Mirror everything, once the server writes nothing more by itself."""
    eventually(lambda: is_settled(server), "the last BINLOG_CHECKPOINT")
    with mirroring(server, folder, "--once", *options) as process:
        assert process.wait() == 0, process.log


def is_settled(server: SqlServer) -> bool:
    """Whether MariaDB has written the BINLOG_CHECKPOINT of its newest file; that takes some time after a rotation."""
    if server.name != "mariadb":
        return True
    newest = listed(server)[-1]
    events = server.query(f"SHOW BINLOG EVENTS IN '{newest}'")
    return any(kind == "Binlog_checkpoint" and info == newest for _, _, kind, _, _, info in events)


@pytest.mark.parametrize("server", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)], indirect=True)
def test_files_equal_the_servers_after_kills(server: SqlServer, tmp_path: Path) -> None:
    start = listed(server)[-1]
    chance = random.Random(7)
    with server.database() as database:
        database.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
        for _ in range(KILLS):
            with mirroring(server, tmp_path, "--start", start) as process:
                write(server, database.name, 40)
                wait_for_start(process)
                server.execute("FLUSH BINARY LOGS")
                write(server, database.name, chance.randrange(60))
        mirror_all(server, tmp_path, "--start", start)
        names = listed(server)
        assert [file.name for file in binlog_files(tmp_path / "mirror")] == names[names.index(start) :]
        for name in names[names.index(start) :]:
            assert (tmp_path / "mirror" / name).read_bytes() == (data_of(server) / name).read_bytes(), name


def restarted(server: SqlServer) -> None:
    """Crash and restart the server, restart it, and change its checksums."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE crashes")
        cursor.execute("CREATE TABLE crashes.t (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
    write(server, "crashes", 5)
    server.kill()
    server.start()
    write(server, "crashes", 5)
    server.restart()
    server.execute("SET GLOBAL binlog_checksum = NONE", "INSERT INTO crashes.t (v) VALUES ('without')")
    server.execute("SET GLOBAL binlog_checksum = CRC32", "INSERT INTO crashes.t (v) VALUES ('with')")


@pytest.mark.parametrize("name", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def test_a_mirror_follows_crashes_restarts_and_checksums_and_refuses_what_it_cannot_follow(
    name: str, tmp_path: Path
) -> None:
    from rowtide_stack import MariaDB, MySQL

    with (MySQL if name == "mysql" else MariaDB)() as server:
        with mirroring(server, tmp_path) as process:
            eventually(lambda: "mirroring binlog.000001" in process.log, "the mirror")
            restarted(server)
            eventually(lambda: is_settled(server), "the last BINLOG_CHECKPOINT")
            last = listed(server)[-1]
            theirs, path = data_of(server) / last, tmp_path / "mirror" / last
            eventually(lambda: path.exists() and path.stat().st_size == theirs.stat().st_size, "the last file")
            with mirroring(server, tmp_path, "--once") as second:
                assert second.wait() == 1
                assert "another process writes the mirror" in second.log
            assert process.stop() == 0, process.log
        assert "Traceback" not in process.log
        assert_equal(server, tmp_path / "mirror")
        if name == "mysql":
            compare_with_mysqlbinlog(server, tmp_path)
        _refused_after_reset(server, tmp_path)
        with (MySQL if name == "mysql" else MariaDB)({"server_id": 5}) as other:
            with mirroring(other, tmp_path, "--once") as process:
                assert process.wait() == 1
            assert f"is a mirror of {name} server" in process.log.splitlines()[-1]


def _refused_after_reset(server: SqlServer, folder: Path) -> None:
    server.execute("RESET BINARY LOGS AND GTIDS" if server.name == "mysql" else "RESET MASTER")
    with mirroring(server, folder, "--once") as process:
        assert process.wait() == 1
    assert "and the server has purged the following events (it has binlog.000001 to binlog.000001)" in process.log
    for file in list((folder / "mirror").glob("binlog.0*"))[:]:
        if file.name != "binlog.000001":
            file.unlink()
    write(server, "crashes", 50)
    with mirroring(server, folder, "--once") as process:
        assert process.wait() == 1
    assert "Its binlog was reset, or this is another server" in process.log.splitlines()[-1], process.log


def compare_with_mysqlbinlog(server: SqlServer, folder: Path) -> None:
    """Compare the finished files with those of ``mysqlbinlog --raw``, which clears the in-use flag."""
    from rowtide_stack.programs import catalogue

    raw = folder / "raw"
    raw.mkdir()
    program = catalogue.mysql_command("bin/mysqlbinlog")
    if not Path(program[-1]).exists():
        pytest.skip(f"there is no {program[-1]}")
    where = [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}", f"--password={server.password}"]
    names = listed(server)
    options = ["--no-defaults", "--read-from-remote-server", "--raw", f"--result-file={raw}/", "--to-last-log"]
    subprocess.run([*program, *options, *where, names[0]], check=True, capture_output=True)
    for name in names:
        mine, theirs = (folder / "mirror" / name).read_bytes(), (raw / name).read_bytes()
        assert mine[:4] + without_in_use(mine[4:]) == theirs, name


def test_a_purged_complete_file_is_passed_and_a_gap_is_refused(tmp_path: Path) -> None:
    from rowtide_stack import MySQL

    with MySQL() as server:
        server.execute("CREATE DATABASE d", "FLUSH BINARY LOGS")
        with mirroring(server, tmp_path, "--once") as process:
            assert process.wait() == 0, process.log
        (tmp_path / "mirror" / "binlog.000002").unlink()
        server.execute("FLUSH BINARY LOGS", "PURGE BINARY LOGS TO 'binlog.000002'")
        with mirroring(server, tmp_path, "--once") as process:
            assert process.wait() == 0, process.log
        assert "binlog.000001 is complete, and the server has purged it: continuing with binlog.000002" in process.log
        assert_equal(server, tmp_path / "mirror")
        shutil.copytree(tmp_path / "mirror", tmp_path / "copy")
        server.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS", "PURGE BINARY LOGS TO 'binlog.000005'")
        with mirroring(server, tmp_path, "--once") as process:
            assert process.wait() == 1
        assert "the server has purged the following events (it has binlog.000005 to binlog.000005)" in process.log


def test_a_new_mirror_begins_where_it_is_told(purged_mysql: MySQL, tmp_path: Path) -> None:
    mysql = purged_mysql  # the shared one may have transactions without GTIDs
    mysql.execute("FLUSH BINARY LOGS")
    executed = mysql.query("SELECT @@GLOBAL.gtid_executed")[0][0].replace("\n", "")
    first = listed(mysql)[-1]
    with mysql.database():
        mysql.execute("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    for number, (start, expected) in enumerate(
        [("newest", listed(mysql)[-1]), (first, first), (executed, first), ("oldest", listed(mysql)[0])]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with mirroring(mysql, folder, "--once", "--start", start) as process:
            assert process.wait() == 0, process.log
        assert binlog_files(folder / "mirror")[0].name == expected, start
    with mirroring(mysql, tmp_path, "--start", "binlog.9") as process:
        assert process.wait() == 1
    assert "the server has no binlog file binlog.9 (the server has binlog.0" in process.log
